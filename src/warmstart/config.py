"""Settings from `config.toml` and the environment. Nothing else reads os.environ."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

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


class ReviewSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [review] of config.toml: a second look at sessions. All that costs or writes is off unless set."""

    url: str = ""  # of an OpenAI-compatible endpoint, up to and with /v1; empty: no model is asked
    model: str = ""  # that is asked there
    key_env: str = ""  # name of the environment variable with its key
    apply: tuple[Literal["memory", "skill", "template"], ...] = ()  # kinds written at once; others wait for a person
    steps: Annotated[int, Meta(ge=1, le=16)] = 16  # answers of the model in a review, at most
    budget: Annotated[int, Meta(ge=0)] = 200_000  # tokens of a review; those from the cache count a tenth
    timeout: Annotated[float, Meta(gt=0, le=3_600)] = 120.0  # seconds that an answer may take
    every_turns: Annotated[int, Meta(ge=0)] = 10  # turns of the user after which memory is reviewed; 0: never
    every_calls: Annotated[int, Meta(ge=0)] = 10  # tool calls after which skills are reviewed; 0: never
    memory_folder: str = ""  # of MEMORY.md and USER.md; empty: memory under the home
    skills_folder: str = ""  # of the skills' folders; empty: skills under the home
    hermes: bool = False  # review in Hermes after turns
    claude_code: bool = False  # review when Claude Code's sessions end


class Settings(Struct, frozen=True, kw_only=True):
    """What a user can set. Every field but `home`, `review_key`, `secrets` and `places` is a key of config.toml."""

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
    review: ReviewSettings = ReviewSettings()  # a second look at sessions; its keys are in howto/review.md
    review_key: str = ""  # value of the variable that review.key_env names
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
    review: ReviewSettings = ReviewSettings()


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
        review=file.review,
        review_key=(key := env.get(file.review.key_env, "").strip()),
        secrets=_secrets(env) | ({file.review.key_env: key} if key else {}),
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


class ConfirmationSettings(Struct, frozen=True, kw_only=True):
    """What the environment says about the confirmation daemon. Empty or None: nothing."""

    host: str = ""  # CONFIRMATION_HOST: where it listens
    port: int | None = None  # CONFIRMATION_PORT
    rate_limit: int | None = None  # CONFIRMATION_RATE_LIMIT: requests of one action within an hour
    notify: tuple[str, ...] = ()  # CONFIRMATION_NOTIFY: apprise addresses, with spaces between
    url: str = ""  # WARMSTART_CONFIRM_URL: where it is asked
    token: str = ""  # WARMSTART_CONFIRM_TOKEN: who asks


def load_confirmation(environ: Mapping[str, str] | None = None) -> ConfirmationSettings:
    """The confirmation daemon's part of the environment. Raises ConfigError for a number that is none."""
    env = os.environ if environ is None else environ
    return ConfirmationSettings(
        host=env.get("CONFIRMATION_HOST", "").strip(),
        port=_number("CONFIRMATION_PORT", env, 0, 65_535),
        rate_limit=_number("CONFIRMATION_RATE_LIMIT", env, 1, 1_000_000_000),
        notify=tuple(env.get("CONFIRMATION_NOTIFY", "").split()),
        url=env.get("WARMSTART_CONFIRM_URL", "").strip(),
        token=env.get("WARMSTART_CONFIRM_TOKEN", "").strip(),
    )


def _number(name: str, env: Mapping[str, str], least: int, most: int) -> int | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise ConfigError(f"{name}={text}: a whole number from {least} to {most} is needed")
    return int(text)


def read_variable(name: str, environ: Mapping[str, str] | None = None) -> str:
    """A variable that another program's settings name; empty where it is not set."""
    return (os.environ if environ is None else environ).get(name, "").strip()
