"""Names and values: how strongly a name announces a secret, and whether a value could be one."""

from __future__ import annotations

from functools import lru_cache

from warmstart.redact.matching import Regex, word_set
from warmstart.redact.opaque import drawn_score, is_opaque, looks_random, parts

# How strongly a name announces a secret. A secret is under STRONG any value, under TOKEN any but a plain word, under WEAK
# a random one.
NONE, WEAK, TOKEN, STRONG = range(4)

_SPLIT = Regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STRONG = word_set(
    """
    password passwd passwort kennwort pwd passphrase passcode secret psk contrasena senha motdepasse
    userpassword dbpassword pgpassword mysqlpwd sshpass rootpw bindpw requirepass masterauth apisecret
    clientsecret
    """
)
_TOKEN = word_set(
    """
    apikey secretkey privatekey accesskey authorization token authtoken accesstoken refreshtoken apitoken bearer
    credential credentials creds jwt dsn xsrf
    """
)
_WEAK = word_set(
    """
    pass pw pin pat otp auth cookie session sessionid sessid sid sig signature salt mnemonic seed webhook hash
    key keys csrf nonce passkey assertion tokens secrets
    """
)
# The words before `key` that make it secret.
_SECRET_KEYS = word_set(
    """
    api secret private access signing encryption master hmac aes decryption cipher account storage shared
    service deploy subscription license licence auth client app application admin consumer webhook ssh rsa jwt
    integration ingest ingestion write server session root host sas activation product
    """
)
_PAIR_STRONG = frozenset(
    {("connection", "string"), ("secret", "base"), ("key", "base"), ("pass", "word"), ("pass", "phrase")}
)
_PAIR_TOKEN = frozenset({("auth", "code"), ("seed", "phrase"), ("recovery", "code"), ("recovery", "phrase")})
# Words after the announcing one that change nothing; any other (`token_count`, `password_field`) changes the meaning.
SUFFIXES = word_set(
    """
    value val base prod production dev development test testing staging stage live sandbox old new backup b64
    base64 hex raw plain plaintext text string str env default primary secondary admin user root db main local
    current here
    """
)
_NOT_TOKENS = word_set(
    """
    max min num n total input output prompt completion next prev previous page eos bos pad unk sep cls mask
    special start stop end cancel cancellation continuation sync current first last per design syntax lexer
    image
    """
)
_NOT_KEYS = word_set(
    """
    public primary foreign sort partition cache index row unique map dict object composite
    """
)


@lru_cache(maxsize=4096)
def strength(name: str) -> int:
    """Return how strongly a name (`DB_PASSWORD`, `apiKey`, `x-auth-token`) announces a secret value."""
    words = [word.lower() for word in _SPLIT.findall(name[-96:])]
    while len(words) > 1 and (words[-1] in SUFFIXES or words[-1].isdigit()) and tuple(words[-2:]) not in _PAIR_STRONG:
        words.pop()
    if not words:
        return NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if (before, last) in _PAIR_STRONG or last in _STRONG or before + last in _STRONG:
        return STRONG
    singular = last.removesuffix("s") if before else last
    if singular in _STRONG:
        return STRONG if last in ("secrets", "passwords") else TOKEN
    if singular in ("key", "token") and before:
        return _compound(before, singular, plural=singular != last)
    if (before, last) in _PAIR_TOKEN or last in _TOKEN or before + last in _TOKEN:
        return TOKEN
    return WEAK if last in _WEAK and not (last in ("key", "keys") and before in _NOT_KEYS) else NONE


def _compound(before: str, noun: str, *, plural: bool) -> int:
    if noun == "token":
        if before in _NOT_TOKENS or (plural and before not in ("api", "access", "auth", "refresh", "bearer")):
            return NONE
        return TOKEN
    if before in _SECRET_KEYS:
        return TOKEN
    return NONE if before in _NOT_KEYS or plural else WEAK


_REFERENCE = Regex(
    r"\$[A-Za-z_{(\[]|\$\$|%[A-Za-z_]\w*%|%[(sdr]|\{\w*\}\Z|\{\{|\{[A-Za-z_$][\w.$\[\]'\"]*\}|<[^>]*>?\Z|@[A-Za-z_]+\(|#\{"
    r"|\[\[?[A-Za-z_ -]+\]|!(?:Ref|Sub|GetAtt|secret|vault|env_var)\b"
    r"|(?:process\.env|os\.environ|os\.getenv|getenv|import\.meta|env\.|env\(|ENV\[|secrets\.|vars?\.|data\.|vault:"
    r"|op://|arn:|file:|keyring:|System\.|Deno\.)"
    r"|~?\.{0,2}/(?:[\w.-]+/)*[\w.-]*\Z|[A-Za-z]:\\|https?://[^@\s]*\Z",
)
_FILLERS = word_set(
    """
    true false none null nil undefined yes no on off default required optional string str bytes bool boolean int
    integer number float object any unknown text char varchar secret password passwd token key value hidden
    masked redacted removed pass disabled enabled example sample test todo tbd n/a na empty unset none, null,
    invalid missing expired valid basic bearer digest
    """
)
_VERSION = Regex(r"[\^~<>=v ]{0,3}\d+(?:\.\d+){1,3}(?:[-+.][a-z0-9.]{1,16})?\Z")
_FILLER = Regex(
    r"(?i)#[0-9a-f]{3,8}\Z|[*\u2022.x_\-#?=\s]{3,}\Z|x{4,}|\*{3,}|(?:<|\[|\()?(?:redacted|masked|hidden|removed"
    r"|filtered|sanitized|omitted)|\{\{SECRET:"
    r"|(?:your|my|insert|enter|replace|change)[-_ ]?(?:own|the|this|super|api|auth|access|secret|token|key|password"
    r"|me|here)|(?:.{0,20}[-_ ])?(?:goes[-_ ])?here\Z",
)
_STAND_IN = Regex(
    r"(?i)(?:true|false|null|none|nil|undefined|yes|no|on|off)\Z|[*\u2022.x#?_-]{3,}\Z|\$\{?[a-z_][\w.:-]*\}?\Z|\$\{|\$\(|\{\{"
    r"|%[a-z_]\w*%\Z|<[^<>]*>\Z|\[?(?:redacted|masked|hidden|removed|filtered)\]?\Z|process\.env\b|os\.environ\b"
    r"|your[-_ ](?:api|auth|access|secret|token|key|password)"
)
_TALK = word_set(
    """
    a an the is are was be been must should may can cannot not your you our we enter please and or of to for
    with from this that when if in on at by required invalid incorrect wrong forgot reset confirm password
    passwords token key secret field user users username login sign options option flag argument error failed
    missing least characters will has have it its new old does
    """
)
_EMAIL = Regex(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+\Z")
_WORDY = Regex(r"[A-Za-z]+(?:[-_'./ ][A-Za-z]+)*[.,:;!?]?\Z")


def is_filler(value: str) -> bool:
    """Return whether a value is a filler in place of a secret: `****`, `your-api-key`, `None`, a version."""
    bare = value.strip("\"'`., ;").lower()
    if bare in _FILLERS or _VERSION.match(bare):
        return True
    return _FILLER.match(value) is not None or (len(value) >= 6 and len(set(value[-16:].lower())) <= 2)


def is_stand_in(value: str) -> bool:
    """Return whether a value is no secret even under a secret's name: empty, a boolean, a mask, `${VAR}`, `<token>`."""
    return not value.strip() or _STAND_IN.match(value.strip()) is not None


def is_reference(value: str) -> bool:
    """Return whether a value refers to a secret kept elsewhere: `${TOKEN}`, `os.environ[...]`, a path, a plain URL."""
    return _REFERENCE.match(value) is not None


def is_wordy(value: str) -> bool:
    """Return whether a value is one or more readable words, letters only."""
    return _WORDY.match(value) is not None and (len(value) < 8 or drawn_score(value) >= -1.5)


def is_talk(value: str) -> bool:
    """Return whether a value of several words is a sentence about secrets, such as a label or an error message."""
    return any(word.strip(".,:;!?\"'`()") in _TALK for word in value.lower().split())


def is_drawn(value: str) -> bool:
    """Return whether a value looks generated or made by password rules, rather than like a name or a number."""
    if looks_random(value):
        return True
    if len(value) < 8 or not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)) or is_reference(value):
        return False
    if any(sign in value for sign in "!@#$^*+~"):
        return not any(bracket in value for bracket in "()[]{}<>|/") and _EMAIL.match(value) is None
    return value.lower() != value != value.upper() and value.isalnum() and drawn_score(value) < 0


def could_be_secret(value: str, name_says: int) -> bool:
    """Return whether a separate value (a JSON string, a quoted literal) is secret under a name of such strength."""
    if len(value) < 4 or is_filler(value) or is_reference(value):
        return False
    if name_says == STRONG:
        return True
    if name_says == TOKEN:
        return len(value) >= 6
    return name_says == WEAK and len(value) <= 256 and (is_opaque(value) or (is_drawn(value) and not parts(value)))
