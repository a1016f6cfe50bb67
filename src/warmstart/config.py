"""Settings from `config.toml` and the environment. Nothing else reads os.environ."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from warmstart.errors import ConfigError
from warmstart.model import Price

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|PASSPHRASE|CREDENTIALS?|AUTH|APIKEY|PAT|DSN|COOKIE|PRIVATE)(?:$|_)"
    r"|(?:^|_)(?:DATABASE|REDIS|MONGO|MONGODB|POSTGRES|AMQP|BROKER)_UR[IL]$",
    re.I,
)
_NO_SECRET = frozenset(("PWD", "OLDPWD", "SSH_AUTH_SOCK", "GPG_KEY", "XDG_SESSION_COOKIE"))


class Settings(Struct, frozen=True, kw_only=True):
    """What a user can set. Every field but `home`, `secrets` and `places` is a key of config.toml."""

    home: Path  # where Warmstart keeps its data (WARMSTART_HOME)
    store: str = ""  # URL or path of the store (WARMSTART_STORE); empty: warmstart.db under home
    tools: dict[str, str] = field(default_factory=dict)  # further tool names -> base tool, for judging and kinds
    trivial_tools: tuple[str, ...] = ()  # further tools whose calls teach nothing
    min_support: int = 2  # own sessions a mined template needs before the local policy may activate it
    max_active: int = 5  # active templates a category and project
    budget: int = 1_500  # tokens of a seed
    examples: int = 3  # examples in a seed, at most
    holdout: float = 0.1  # share of sessions kept cold, to compare with, while no experiment runs (WARMSTART_HOLDOUT)
    prices: dict[str, Price] = field(default_factory=dict)  # by model, US dollars for a million tokens: above our own
    secrets: dict[str, str] = field(default_factory=dict)  # values of secret-looking environment variables
    places: dict[str, Path] = field(default_factory=dict)  # folders that agents' own variables point to
    user_home: Path = Path("~")  # where the agents' usual places are looked for

    @property
    def store_url(self) -> str:
        return self.store or str(self.home / "warmstart.db")


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    store: str = ""
    tools: dict[str, str] = field(default_factory=dict)
    trivial_tools: tuple[str, ...] = ()
    min_support: Annotated[int, Meta(ge=2)] = 2
    max_active: Annotated[int, Meta(ge=1)] = 5
    budget: Annotated[int, Meta(ge=0)] = 1_500
    examples: Annotated[int, Meta(ge=0)] = 3
    holdout: Annotated[float, Meta(ge=0, le=0.9)] = 0.1
    prices: dict[str, Price] = field(default_factory=dict)


def load(
    home: Path | str | None = None, store: str | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Settings: what is passed in wins over the environment, that over the file, that over the defaults."""
    env = os.environ if environ is None else environ
    user_home, chosen = find_homes(home, env)
    file = _read(chosen / "config.toml")
    return Settings(
        home=chosen,
        store=store or env.get("WARMSTART_STORE") or file.store,
        tools=file.tools,
        trivial_tools=file.trivial_tools,
        min_support=file.min_support,
        max_active=file.max_active,
        budget=file.budget,
        examples=file.examples,
        holdout=_share("WARMSTART_HOLDOUT", env, file.holdout),
        prices=file.prices,
        secrets=_secrets(env),
        places={
            name: Path(env[name]).expanduser()
            for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME")
            if env.get(name)
        },
        user_home=user_home,
    )


def find_homes(home: Path | str | None = None, environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """The user's home and ours."""
    env = os.environ if environ is None else environ
    user_home = Path(env.get("HOME") or env.get("USERPROFILE") or "~").expanduser()
    return user_home, Path(home or env.get("WARMSTART_HOME") or user_home / ".warmstart").expanduser()


def is_off(environ: Mapping[str, str] | None = None) -> bool:
    """Whether WARMSTART_OFF tells the doors into agents to do nothing."""
    env = os.environ if environ is None else environ
    return env.get("WARMSTART_OFF", "").strip().lower() not in ("", "0", "false", "no", "off")


def _share(name: str, env: Mapping[str, str], otherwise: float) -> float:
    """A share from the environment, held to the same limits as in the file."""
    if not (text := env.get(name, "").strip()):
        return otherwise
    try:
        share: float = msgspec.convert(text, Annotated[float, Meta(ge=0, le=0.9)], strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}={text}: {error}") from error
    return share


def _read(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _File()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    try:
        return msgspec.convert(tomllib.loads(text), _File)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: no valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error


def _secrets(env: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in env.items() if len(v) >= 6 and _SECRET_NAME.search(k) and k not in _NO_SECRET}
