r"""Values that a name beside them makes secret: `password=..`, `"apiKey": ".."`, `--token ..`, `<secret>..`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warmstart.redact.matching import BytesPattern, Regex, Span, word_set
from warmstart.redact.opaque import drawn_score, looks_random
from warmstart.redact.values import (
    NONE,
    STRONG,
    TOKEN,
    WEAK,
    could_be_secret,
    is_drawn,
    is_talk,
    is_wordy,
    strength,
)

# A word that announces a secret, the rest of the name, and the separator. Python decides about the value.
NAMED = BytesPattern(
    r"(?i)(?:passw(?:or)?[dt]|passwd|passphrase|passcode|kennwort|contrase.a|senha|pwd|psk|secret|token|credential"
    r"|creds|api[_\-. ]?key"
    r"|[a-z0-9][_\-. ]?key|\bkey|(?:_|\b|[a-z])pass|_pw|\bpw|\bpin|otp|auth|authorization|bearer|cookie"
    r"|sess(?:ion)?_?id|\bsid|signature|\bsig|salt|dsn"
    r"|connection[_ ]?string|jwt|mnemonic|webhook|key_?base|\bpat|_pat|(?:recovery|backup)[ _\-]?code)"
    r"[A-Za-z0-9_\-.]{0,24}"
    r"(?:[ \t]{0,4}:[ \t]{0,4}[&?]?[A-Za-z][A-Za-z<>\[\]?|.']{1,24}[ \t]{0,4}=[ \t]{0,4}"
    r"|[\\\"'`\])]{0,8}[ \t]{0,24}(?::=|=>|={1,3}|!={1,2}|:|\|)[ \t]{0,24}"
    r"|[\\]{0,4}[\"'`][ \t]{0,4},[ \t\n]{0,24}[\\]{0,4}[\"'`]"
    r"|[\\]{0,4}[\"']?[ \t]{1,8}(?i:value|content|default)[ \t]{0,4}=[ \t]{0,4}"
    r"|[\\\"' \t]{0,8}\n[\n \t\-]{0,40}[\"']?value[\"']?[ \t]{0,4}:[ \t]{0,4}"
    r"|>)"
)
FLAG = BytesPattern(
    r"(?i)(?:^|[\s\"'`(,\[])--?[a-z0-9_\-]{0,32}(?:pass(?:w(?:or)?d|phrase|wd|code)?|pwd|pw|token|secret|key|auth"
    r"|credentials?|pat|user)(?:-[a-z]{1,8})?"
    r"[\"'`]?(?:[ \t]{1,4}|,[ \t\n]{0,24}|=)[\"'`\\]{0,3}"
)
SETTING = BytesPattern(
    r"(?i)\b(?:set|setx|add|config|ENV|ARG|put|define|setenv|putenv"
    r"|export)[ \t]+(?:--?[a-z]+[ \t]+)*[A-Za-z0-9_\-./:]{0,64}"
    r"(?:passw(?:or)?d|passwd|secret|token|key|pwd)[A-Za-z0-9_\-]{0,16}[ \t]+[\"'`\\]{0,3}"
)
_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_NAME = Regex(r"[A-Za-z0-9_.\- ]*")
_LIMIT = 1024  # bytes of a value that the patterns take
_BARE = Regex(rb"[^\s\"'`<>\x01]{1,1024}")
_TO_SPACE = Regex(rb"[^\s\x01]{1,1024}")
_VARIABLE = Regex(rb"\A[A-Z][A-Z0-9_]{2,}=\Z")
_REST = Regex(rb"[^\s\"'`<>\x01]*")
_QUOTED = {quote: Regex(rb"[^%b\n\x01]{0,1024}" % quote) for quote in (b'"', b"'", b"`")}
_ESCAPED = {quote: Regex(rb"(?:[^%b\\\n\x01]|\\.){0,1024}" % quote) for quote in (b'"', b"'", b"`")}
_BARE_ESCAPED = Regex(rb"(?:[^\s\"'`<>\\\x01]|\\[^\s\x01]){1,1024}")
_OPENING = Regex(rb"[rbuf@$]{0,2}[\\]{0,8}(\"{1,3}|'{1,3}|`)")
_SCHEME = Regex(
    rb"(?i)(?:basic|bearer|token|apikey|api-key|digest|negotiate|aws4-hmac-sha256|ntlm|key|splunk|sso-key|genie-?key"
    rb"|bot)[ \t+]+"
)
_TAGGED = Regex(rb"[ \t\n]{0,40}([^<\x01]{1,1024})</")
_LINE_LEAD = Regex(
    rb"[\s\"'`$>+#;*-]*(?:\d+[:|?\t ]+)?[\s\"'`+-]*(?:export|set|setx|env|declare|local|ENV|ARG|const|let|var|-e"
    rb"|--env|--build-arg)?[ \t:\"']*\Z"
)
_CODE = Regex(
    r"[A-Za-z_][A-Za-z_.]*[)\]}]+(?:[.,;]|\Z)|"
    r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*|\[[^\]]*\]|\?\.|->|::)*[(\[{]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[,;)\]}]*\Z"
    r"|[(\[{&*!|+)\]}.,;?<>=/\\^]|lambda\b|function\b|async\b|await\b|new\b|not\b|f\"|:"
    r"|[A-Za-z_]\w*(?:\[|\()|\\[a-zA-Z(\[]|[A-Za-z_]+::|[a-z]+\|"
)
_NUMBER = Regex(r"-\d+\Z|0x[0-9a-fA-F]{1,16}\Z|[-+]?\d{1,5}(?:\.\d+)?[a-z%]{0,2}[,;)\]}]*\Z|\d+\.\d+")
_IDENTIFIER = Regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TYPES = word_set(
    """
    str string bytes optional list dict set tuple union any object callable literal secretstr self cls this
    """
)


def find_named(data: bytes) -> Iterator[Span]:
    """Yield the values after a name that announces a secret."""
    done = 0
    for start, end in NAMED.spans(data):
        if start < done:
            continue
        span = _find_after_name(data, start, end)
        if span is not None:
            done = span.end
            yield span


def find_flagged(data: bytes) -> Iterator[Span]:
    """Yield the values after a command line flag or in a `set NAME value` command."""
    for start, end in FLAG.spans(data):
        yield from _find_after_flag(data, start, end)
    for start, end in SETTING.spans(data):
        name = data[start:end].decode("ascii").strip("\"'`\\ \t").split()[-1]
        level = strength(name.split(":")[-1].split("/")[-1])
        if level >= TOKEN and _has_digit(data, end):
            yield from _find_argument(data, end, level)


def _has_digit(data: bytes, at: int) -> bool:
    match = _BARE.match(data, at)
    return match is not None and any(48 <= c <= 57 for c in match.group()) and match.group()[:1] not in b"([{"


def _find_after_flag(data: bytes, start: int, end: int) -> Iterator[Span]:
    text = data[start:end].decode("ascii")
    if "," in text[1:] and text[-1] not in "\"'`\\":
        return  # the next item of a list is an expression
    flag = text.strip(" \t\n\"'`(,[\\=")
    level = strength(flag.lstrip("-"))
    if level == NONE or (level == WEAK and flag.lstrip("-") in ("key", "keys", "auth", "pass")):
        return
    yield from _find_argument(data, end, level)


def _find_argument(data: bytes, at: int, level: int) -> Iterator[Span]:
    match = _BARE.match(data, at)
    if match is None:
        return
    value = match.group().decode("ascii").rstrip("\\,;)]}")
    if value.startswith("-") or _NUMBER.match(value) or _is_code(value) or not could_be_secret(value, level):
        return
    if is_wordy(value) and (
        level < STRONG or is_talk(value) or (data[at - 1 : at] in b" \t" and not _follows_flag(data, at))
    ):
        return
    end = at + len(value)
    yield Span(at, end, _kind_of(level))


def _follows_flag(data: bytes, at: int) -> bool:
    """Return whether the word before is a long flag, so that even a plain word is its value."""
    return b"--" in data[max(at - 48, 0) : at]


def _kind_of(level: int) -> str:
    return "password" if level == STRONG else "token"


def _find_after_name(data: bytes, start: int, end: int) -> Span | None:
    head = data[max(start - 64, 0) : start]
    name_start = start - len(head) + len(head.rstrip(_NAME_BYTES))
    matched = _NAME.match(data[name_start:end].decode("ascii"))
    name = matched.group().strip(" .-") if matched else ""
    if " " in name:  # `api key: ...`: the last two words of a phrase decide
        name = " ".join(name.split()[-2:])
    level = strength(name)
    if level == NONE:
        return None
    separator = data[name_start + len(matched.group() if matched else "") : end]
    if separator.lstrip(b"\"'").startswith(b":") and data[name_start - 1 : name_start] == b":":
        return None  # one of many parts between colons: an ARN, a type name
    if separator.endswith(b">"):
        return _find_tagged(data, name_start, end, level)
    return _find_value(data, name_start, end, name, separator, level)


def _find_tagged(data: bytes, name_start: int, at: int, level: int) -> Span | None:
    """Find the value of `<password>value</password>`."""
    before = data[max(name_start - 24, 0) : name_start]
    if b"<" not in before[-1:] and not re.search(rb"<[\w.-]{1,20}:\Z", before):
        return None
    match = _TAGGED.match(data, at)
    if match is None:
        return None
    value = match.group(1).strip()
    text = value.decode("ascii")
    if not could_be_secret(text, level) or (" " in text and is_talk(text)):
        return None
    begin = match.start(1)
    return Span(begin, begin + len(match.group(1).rstrip()), _kind_of(level))


def _find_value(data: bytes, name_start: int, at: int, name: str, separator: bytes, level: int) -> Span | None:
    header = level >= TOKEN and name.lower().endswith(("authorization", "auth", "token", "key", "secret"))
    opening = _OPENING.match(data, at)
    if b"," in separator and separator[-1:] in b"\"'`":
        span = _find_quoted(data, at, separator[-1:], level, header)
        if span is None or not _is_second(data[span.start : span.end].decode("ascii"), separator, level):
            return None
        return span
    if opening is not None:
        quote = opening.group(1)[:1]
        if (
            opening.group() == quote
            and data[name_start - 1 : name_start] == quote
            and not separator.strip(b":= \t").strip()
        ):
            return None  # the label `"Password:"` ends here
        return _find_quoted(data, opening.end(), quote, level, header, b"\\" in opening.group())
    if b"==" in separator or b"!=" in separator:
        return None
    if header:
        scheme = _SCHEME.match(data, at)
        at = scheme.end() if scheme else at
    return _find_bare(data, name_start, at, separator, level)


def _is_second(value: str, separator: bytes, level: int) -> bool:
    """Return whether `"password", "value"` is a name and its value rather than two items of a list."""
    if is_drawn(value):
        return True
    return (
        level == STRONG
        and b"\n" not in separator
        and not is_wordy(value)
        and not _IDENTIFIER.match(value)
        and ":" not in value
    )


def _find_quoted(data: bytes, at: int, quote: bytes, level: int, header: bool, escaped: bool = False) -> Span | None:
    if header:
        scheme = _SCHEME.match(data, at)
        at = scheme.end() if scheme else at
    match = _QUOTED[quote].match(data, at)
    if match is None:
        return None
    if match.group().endswith(b"\\") and not escaped:
        match = _ESCAPED[quote].match(data, at) or match  # the quote belongs to the value
    raw = match.group()
    if len(raw) == _LIMIT and not raw.strip():
        return None
    value = raw.decode("ascii").rstrip("\\")
    if not value.strip() or not could_be_secret(value, level) or _is_code_in_quotes(value):
        return None
    if (
        " " in value.strip()
        and not is_drawn(value.replace(" ", ""))
        and (is_talk(value) or level < STRONG or len(value) > 120)
    ):
        return None
    if level < STRONG and (
        is_wordy(value) or _is_plain_name(value) or not (is_drawn(value) or any(map(str.isdigit, value)))
    ):
        return None
    if level == STRONG and is_wordy(value) and (strength(value) > NONE or is_talk(value) or value.istitle()):
        return None
    return _make_span(data, at, value, raw, level)


def _make_span(data: bytes, at: int, value: str, raw: bytes | str, level: int) -> Span:
    """Return the span of a value. One that fills the pattern's limit goes on to the end of its word."""
    end = at + len(value)
    if len(raw) == _LIMIT and (rest := _REST.match(data, end)):
        end = rest.end()
    return Span(at, end, _kind_of(level))


def _is_code_in_quotes(value: str) -> bool:
    name, equals, _ = value.partition("=")
    return (value[0] in "({[,:;)\\" and not looks_random(value)) or (bool(equals) and strength(name) > NONE)


def _is_plain_name(value: str) -> bool:
    """Return whether a value is a name made of words and a few digits: `access_token_v2`, `utf8mb4`."""
    return _IDENTIFIER.match(value) is not None and sum(map(str.isdigit, value)) <= 2 and drawn_score(value) >= -1.5


def _find_bare(data: bytes, name_start: int, at: int, separator: bytes, level: int) -> Span | None:
    match = _BARE.match(data, at)
    if match is None:
        return None
    lead = _find_lead(data, name_start, separator)
    spaced = b" " in separator or b"\t" in separator
    variable = not spaced and b"=" in separator and _VARIABLE.search(data[name_start:at]) is not None
    config = variable or (lead is not None and (b"=" in separator or spaced))
    stop = match.end()
    if config and lead is not None and not lead.strip(b" \t+->$") and data[stop : stop + 1] in (b'"', b"'", b"`"):
        match = _TO_SPACE.match(data, at) or match  # a quote inside the value, not around it
    elif data[stop - 1 : stop + 1] == b'\\"' and data[name_start - 2 : name_start] != b'\\"':
        match = _BARE_ESCAPED.match(data, at) or match
    raw = match.group().decode("ascii")
    value = raw.rstrip("\\") if config else re.split(r"[;&,\\]", raw, maxsplit=1)[0]
    value = value.rstrip(",;") if not config or _closes_code(data, match.end(), value) else value
    if not config:
        value = value.rstrip(").]}!?:*")
    if config and level == STRONG:
        phrase = _phrase_end(data, at, match.end(), lead or b"")
        if phrase > match.end():
            return Span(at, phrase, "password")
    if not value or not could_be_secret(value, level) or _is_code(value) or _NUMBER.match(value):
        return None
    if value.lower().strip("?,;") in _TYPES or (b"|" in separator and not is_drawn(value)):
        return None
    after = data[match.end() : match.end() + 1]
    ends = after in (b"", b"\n", b"\r") or (after in (b'"', b"'", b"`") and lead is not None and lead.endswith(after))
    if not _is_plausible(value, level, config, whole=ends and value == raw):
        return None
    return _make_span(data, at, value, raw, level)


def _find_lead(data: bytes, name_start: int, separator: bytes) -> bytes | None:
    """Return the characters before a name at the start of its line or string; None for a name elsewhere."""
    quote = data[name_start - 1 : name_start]
    if quote in (b'"', b"'", b"`") and quote not in separator:
        return quote
    line_start = data.rfind(b"\n", max(name_start - 64, 0), name_start) + 1
    lead = data[max(line_start, name_start - 64) : name_start]
    return lead if _LINE_LEAD.match(lead) else None


def _is_plausible(value: str, level: int, config: bool, *, whole: bool) -> bool:
    """Return whether an unquoted value is a secret rather than a variable's name or a word of a sentence."""
    words = value.rstrip(",;)")
    if not _IDENTIFIER.match(words) or looks_random(words):
        if is_wordy(value):
            return level == STRONG and config and not is_talk(value)
        return level == STRONG or looks_random(value) or any(map(str.isdigit, value))
    digits = sum(map(str.isdigit, words))
    if level < STRONG:
        return digits >= 3 and drawn_score(words) < 2
    if strength(words) > NONE or is_talk(words):
        return False
    if digits or drawn_score(words) < -1.5:
        return "_" not in words.strip("_") or digits > 0
    return config and whole and len(words) >= 6 and "_" not in words and words == words.lower()


def _is_code(value: str) -> bool:
    """Return whether an unquoted value is an expression; a password may begin like one but has digits and no brackets."""
    if _CODE.match(value) is None:
        return False
    if value[0].isalnum() or value[0] == "_":
        return True
    drawn = any(map(str.isdigit, value)) and any(map(str.islower, value)) and any(map(str.isupper, value))
    return not drawn or any(bracket in value for bracket in "()[]{}:|")


def _closes_code(data: bytes, end: int, value: str) -> bool:
    return value.endswith((",", ";")) and data[end : end + 1] in (b"", b"\n", b"\r", b" ")


def _phrase_end(data: bytes, at: int, word_end: int, lead: bytes) -> int:
    """Return the end of an unquoted passphrase of several words that fills its line; else the end of the word."""
    if data[word_end : word_end + 1] != b" ":
        return word_end
    line_end = data.find(b"\n", at, at + 160)
    line_end = min(at + 160, len(data)) if line_end < 0 else line_end
    line = data[at:line_end]
    if lead[-1:] in (b'"', b"'", b"`"):
        line = line.split(lead[-1:])[0]
    text = line.decode("ascii").rstrip("\"' \t,\r")
    words = text.split(" ")
    fits = 2 <= len(words) <= 12 and all(word.isalpha() and word.islower() for word in words)
    return at + len(text) if fits and not is_talk(text) and len(text) >= 12 else word_end
