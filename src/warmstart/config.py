"""Settings from `config.toml` and the environment. Nothing else reads os.environ, but for hooks at calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field, structs

from warmstart import lazy_regex as re
from warmstart.addresses import SERVERS, find_passwords
from warmstart.errors import ConfigError
from warmstart.model import Price

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|PASSPHRASE|CREDENTIALS?|AUTH|APIKEY|PAT|DSN|COOKIE|PRIVATE)(?:$|_)"
    r"|^PGPASSWORD$|(?:^|_)(?:DATABASE|REDIS|MONGO|MONGODB|POSTGRES|AMQP|BROKER)_UR[IL]$",
    re.I,
)
_NO_SECRET = frozenset(("PWD", "OLDPWD", "SSH_AUTH_SOCK", "GPG_KEY", "XDG_SESSION_COOKIE"))


class ReviewSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [review] of config.toml: a second look at sessions. Everything that costs or writes is off by default."""

    url: str = ""  # base URL of an OpenAI-compatible endpoint, including /v1; empty: no model is called
    model: str = ""  # name of the model to call there
    key_env: str = ""  # name of the environment variable that holds the API key
    apply: tuple[Literal["memory", "skill", "template"], ...] = ()  # kinds written at once; others wait for a person
    steps: Annotated[int, Meta(ge=1, le=16)] = 16  # maximum number of model answers per review
    budget: Annotated[int, Meta(ge=0)] = 200_000  # tokens per review; cached tokens count a tenth
    daily_budget: Annotated[int, Meta(ge=0)] = 1_000_000  # tokens of all reviews in a day (UTC), counted alike
    timeout: Annotated[float, Meta(gt=0, le=3_600)] = 120.0  # seconds to wait for one answer
    every_turns: Annotated[int, Meta(ge=0)] = 10  # user turns between reviews of memory; 0: never
    every_calls: Annotated[int, Meta(ge=0)] = 10  # tool calls between reviews of skills; 0: never
    memory_folder: str = ""  # folder of MEMORY.md and USER.md; empty: `memory` under the home
    skills_folder: str = ""  # folder that holds one folder per skill; empty: `skills` under the home
    hermes: bool = False  # review in Hermes after turns
    claude_code: bool = False  # review when sessions of Claude Code end


Level = Literal["off", "tell", "correct", "stop"]


class AdviceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [advice] of config.toml: what happens at a call that a note is about. A kind without a level has `level`."""

    level: Level = "tell"  # off; tell: add it to the result; correct: rewrite the call; stop: refuse it once
    path: Level | None = None  # a path that is not here
    command: Level | None = None  # a form of a command that fails
    works: Level | None = None  # another form than the usual one
    check: Level | None = None  # a rule that the project's checks stop on
    baseline: Level | None = None  # a failure that was there before
    tool: Level | None = None  # a rule of the agent's own tools
    large: Level | None = None  # a file too large for one read
    slow: Level | None = None  # a command that takes minutes or times out
    refusal: Level | None = None  # a call that a person refuses
    environment: Level | None = None  # a program, module or variable that is not here


class BundleSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [bundle] of config.toml: notes and templates shared with a team; see howto/team.md."""

    url: str = ""  # address of the team's bundle, for `bundle push` and `bundle pull` without one
    branch: str = ""  # branch that `bundle push` and `bundle pull` use; empty: the repository's main one
    author: str = ""  # "Name <address>" on your commits; empty: they name nobody
    hosts: tuple[str, ...] = ()  # git servers whose names may stand in shared project names; well-known ones always may
    hide: tuple[str, ...] = ()  # names and words that never leave, besides those that are found


ArchiveMode = Literal["off", "plain", "redacted"]


class FileSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of config.toml."""

    store: str = ""  # path or postgresql://... of the store (WARMSTART_STORE); empty: warmstart.db under the home
    store_projects: tuple[
        str, ...
    ] = ()  # projects that a server's store takes; names, folders, globs; "*": all sessions
    tools: dict[str, str] = field(default_factory=dict)  # your tool names -> base tool, for judging and kinds of calls
    trivial_tools: tuple[str, ...] = ()  # additional tools whose calls teach nothing
    min_support: Annotated[int, Meta(ge=2)] = 2  # sessions that must support a mined template before it may activate
    max_active: Annotated[int, Meta(ge=1)] = 5  # active templates per category and project
    budget: Annotated[int, Meta(ge=0)] = 1_500  # maximum tokens of a seed
    examples: Annotated[int, Meta(ge=0)] = 8  # maximum examples in a seed; the budget is usually used up before
    holdout: Annotated[float, Meta(ge=0, le=0.9)] = 0.1  # share kept cold while no experiment runs (WARMSTART_HOLDOUT)
    prices: dict[str, Price] = field(default_factory=dict)  # by model; these override the built-in prices
    brief: Annotated[int, Meta(ge=0, le=2_000)] = 300  # maximum tokens of the brief; 0: no brief
    archive: ArchiveMode = "off"  # keep the transcripts that hooks read: as they are, or redacted; see howto/keep.md
    advice: AdviceSettings = AdviceSettings()  # at calls that a note is about; see notes.md
    bundle: BundleSettings = BundleSettings()  # notes and templates shared with a team; see howto/team.md
    review: ReviewSettings = ReviewSettings()  # a second look at sessions; see howto/review.md


class Settings(FileSettings, frozen=True, kw_only=True):
    """The settings of one Warmstart: config.toml, overridden by the environment and the caller."""

    home: Path  # folder that holds the data (WARMSTART_HOME)
    review_key: str = ""  # value of the variable that review.key_env names
    secrets: dict[str, str] = field(default_factory=dict)  # values of secret-looking environment variables
    places: dict[str, Path] = field(default_factory=dict)  # folders that agents' own variables point to
    user_home: Path = Path("~")  # folder under which agents' usual places are looked up

    def __repr__(self) -> str:
        """Name the home only: the other values may be secret, and tools print the repr of what they hold."""
        return f"Settings(home={str(self.home)!r})"

    @property
    def store_url(self) -> str:
        """The URL or path of the store."""
        return self.store or str(self.home / "warmstart.db")

    @property
    def is_shared(self) -> bool:
        """Whether a server holds the store, which others may read: it takes the sessions of `store_projects` only."""
        return self.store_url.startswith(SERVERS)

    @property
    def takes_all(self) -> bool:
        """Whether sessions of every project may be stored."""
        return not self.is_shared or "*" in self.store_projects


PLACES = {  # variables of agents, each with the agent's folder in the one that it names
    "CLAUDE_CONFIG_DIR": "",
    "CODEX_HOME": "",
    "COPILOT_HOME": "",
    "HERMES_HOME": "",
    "GEMINI_CLI_HOME": ".gemini",
    "QWEN_HOME": "",
    "CONTINUE_GLOBAL_DIR": "",
    "INSPECT_LOG_DIR": "",
    "PI_CODING_AGENT_DIR": "",
    "PI_CODING_AGENT_SESSION_DIR": "",
    "XDG_CONFIG_HOME": "",
    "XDG_DATA_HOME": "",
}


def load(
    home: Path | str | None = None, store: str | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Load the settings. Arguments win over the environment, the environment over config.toml, that over defaults."""
    env = os.environ if environ is None else environ
    user_home, chosen = find_homes(home, env)
    file = _read(chosen / "config.toml")
    review_key = env.get(file.review.key_env, "").strip()
    keys = structs.asdict(file) | {
        "store": store or env.get("WARMSTART_STORE") or file.store,
        "store_projects": _read_names(env.get("WARMSTART_STORE_PROJECTS")) or file.store_projects,
        "holdout": _read_share("WARMSTART_HOLDOUT", env, file.holdout),
    }
    return Settings(
        **keys,
        home=chosen,
        review_key=review_key,
        secrets=_find_secrets(env)
        | ({file.review.key_env: review_key} if review_key else {})
        | _find_store_passwords(store, env.get("WARMSTART_STORE"), file.store),
        places={name: Path(env[name]).expanduser() / folder for name, folder in PLACES.items() if env.get(name)},
        user_home=user_home,
    )


def find_homes(home: Path | str | None = None, environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """Return the user's home and the home of Warmstart."""
    env = os.environ if environ is None else environ
    user_home = Path(env.get("HOME") or env.get("USERPROFILE") or "~").expanduser()
    return user_home, Path(home or env.get("WARMSTART_HOME") or user_home / ".warmstart").expanduser()


def is_off(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether WARMSTART_OFF switches the doors into agents off."""
    env = os.environ if environ is None else environ
    return env.get("WARMSTART_OFF", "").strip().lower() not in ("", "0", "false", "no", "off")


def _read_share(name: str, env: Mapping[str, str], default: float) -> float:
    """Read a share from the environment, within the same limits as in the file."""
    if not (text := env.get(name, "").strip()):
        return default
    try:
        share: float = msgspec.convert(text, Annotated[float, Meta(ge=0, le=0.9)], strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}={text}: must be a number from 0 to 0.9") from error
    return share


def _read_names(text: str | None) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    return tuple(filter(None, (name.strip() for name in (text or "").split(","))))


def _read(path: Path) -> FileSettings:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return FileSettings()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    import tomllib  # most homes have no such file

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    try:
        return msgspec.convert(data, FileSettings)
    except msgspec.ValidationError as error:
        from warmstart.mismatch import explain_setting  # hooks load the settings, and an agent waits for them

        raise ConfigError(f"{path}: {explain_setting(error, data, FileSettings, text)}") from error


def _find_secrets(env: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in env.items() if len(v) >= 6 and _SECRET_NAME.search(k) and k not in _NO_SECRET}


def _find_store_passwords(*addresses: str | None) -> dict[str, str]:
    """Return the passwords in the addresses of stores, also of one that another overrides, under names of ours."""
    passwords = dict.fromkeys(found for address in addresses if address for found in find_passwords(address))
    return {f"STORE_{number}_PASSWORD": password for number, password in enumerate(passwords)}


class ConfirmationSettings(Struct, frozen=True, kw_only=True):
    """The environment variables of the confirmation daemon. Empty or None: not set."""

    host: str = ""  # CONFIRMATION_HOST: address that the daemon listens on
    port: int | None = None  # CONFIRMATION_PORT
    rate_limit: int | None = None  # CONFIRMATION_RATE_LIMIT: requests per action and hour
    notify: tuple[str, ...] = ()  # CONFIRMATION_NOTIFY: apprise addresses, separated by spaces
    anchors: tuple[str, ...] = ()  # CONFIRMATION_ANCHOR: places elsewhere for the audit's anchor, separated by spaces
    url: str = ""  # WARMSTART_CONFIRM_URL: daemon that clients ask
    token: str = ""  # WARMSTART_CONFIRM_TOKEN: token that clients send


def load_confirmation(environ: Mapping[str, str] | None = None) -> ConfirmationSettings:
    """Load the variables of the confirmation daemon. Raises ConfigError for an invalid number."""
    env = os.environ if environ is None else environ
    return ConfirmationSettings(
        host=env.get("CONFIRMATION_HOST", "").strip(),
        port=_read_number("CONFIRMATION_PORT", env, 0, 65_535),
        rate_limit=_read_number("CONFIRMATION_RATE_LIMIT", env, 1, 1_000_000_000),
        notify=tuple(env.get("CONFIRMATION_NOTIFY", "").split()),
        anchors=tuple(env.get("CONFIRMATION_ANCHOR", "").split()),
        url=env.get("WARMSTART_CONFIRM_URL", "").strip(),
        token=env.get("WARMSTART_CONFIRM_TOKEN", "").strip(),
    )


def _read_number(name: str, env: Mapping[str, str], low: int, high: int) -> int | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ConfigError(f"{name}={text}: must be a whole number from {low} to {high}")
    return int(text)


def read_variable(name: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the value of a variable that a settings file names; empty if it is not set."""
    return (os.environ if environ is None else environ).get(name, "").strip()
