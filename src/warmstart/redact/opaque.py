"""Opaque tokens: long, mixed and random. Names, paths, digests and ids are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from warmstart.redact.matching import BytesPattern, Prefilter, Regex, word_set
from warmstart.redact.odd import make_odd
from warmstart.redact.vendors import TOKENS
from warmstart.redact.views import from_base64, from_hex

RUN_CLASS = r"[A-Za-z0-9_+/=~.\-]"
RUN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=~.-"
# A run of token characters with a core that short names lack: 20 letters and digits in a row, or digits between letters.
CORES = ("[A-Za-z0-9]{20}", "(?:[A-Za-z][0-9]+[A-Za-z]+[0-9]|[0-9][A-Za-z]+[0-9]+[A-Za-z])")
_RUN = BytesPattern(f"{RUN_CLASS}*(?:{'|'.join(CORES)}){RUN_CLASS}*")
SHORTEST = 16
_SAMPLE = 512  # a longer run is judged by so many characters
HARMLESS: set[bytes] = set()  # runs that hold nothing: names repeat all the time
_MOST_HARMLESS = 1 << 15
LINE = 56  # bytes of the shortest line of base64 that is broken into lines

# The letter pairs that make up 95 % of the pairs in English words and in program names.
_PAIRS = {
    row[0] + second
    for row in word_set(
        """
    aabcdefgiklmnprstuvwxy babcdeilorsuy cabcdefhiklorstuy dabcdefilorstu eabcdefgilmnopqrstuvwxy facdefilorstu
    gaeghilnorsu haeiort iabcdefglmnoprstvxz jaeosu kaeis lacdeilopstuvy mabeilmopsu nacdefgiklnopstuv
    oabcdfgiklmnoprstuvw pacehiloprstuy qu racdefgiklmnoprstuvy sacefhiklmnopstuy tacdefhilmnoprstuy
    uabcdefgilmnprst vaeio waehinors xceipt ymnpst zae
    """
    )
    for second in row[1:]
}
_WORDS = Regex(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ATOM = Regex(r"[A-Za-z0-9]+")
_HEX = Regex(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)\Z")
# Hex digits after a vendor's prefix; _HEX_PREFIXES are the words that stand before a digest instead.
_PREFIXED_HEX = (
    r"(?P<prefix>[A-Za-z][A-Za-z0-9]{1,11})[_-](?:[A-Za-z0-9]{1,8}[_-])?(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{32,}\Z"
)
_HEX_PREFIXES = word_set(
    """
    sha sha1 sha256 sha512 git commit cache build index main md5 etag blob tree image layer container hash
    digest rev ref id trace span session chunk node file app vendor vendors runtime style styles bundle asset
    assets static page pages tmp temp mise pip npm yarn linux darwin windows v0 v1 v2 v3 version deps lock pod
    job task run tool call msg snapshot checkpoint backup
    """
)
_DIGEST_LENGTHS = {56, 64, 96, 128}
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z"
_ULID = r"0[0-7][0-9A-HJKMNP-TV-Z]{24}\Z|c[a-z0-9]{24}\Z"
_NAMED_DIGEST = Regex(r"(?:sha(?:1|224|256|384|512)|md5|h1|blake[23][bs]?|crc32c?|q1)[-_:=]", re.I)
_ORDERED = Regex(r"abcdefgh|ijklmnop|ABCDEFGH|IJKLMNOP|01234567|12345678")  # alphabets and examples
_FLOAT = Regex(r"[0-9.]+[eE][-+]?[0-9]*\Z")
_CALL_ID = (
    r"[A-Z]{1,6}_kw[A-Za-z0-9_-]+\Z"  # GitHub's node ids
    r"|(?:toolu|srvtoolu|mcptoolu|tooluse|toolcall|call|functions?|chatcmpl|cmpl|msg|resp|req|run|thread|asst|step|file"
    r"|fc|rs|ws|item|gen|batch|evt|event|prt|cus|ch|in|pi|pm|sub|si|price|prod|txn|seti|cs_test|container|vs|ftjob"
    r"|session|ses|turn|task|agent|trace|span|chunk|node|bench|req_vrtx|msg_bdrk|toolu_vrtx"
    r"|toolu_bdrk)[_-]+[A-Za-z0-9_-]+\Z"
)
# The forms of a whole token, in order of precedence; the group that matched names the form.
_SHAPE = Regex(
    "|".join(
        [
            *(rf"(?P<token{index}>{source}\Z)" for index, (_kind, source) in enumerate(TOKENS)),
            rf"(?P<id>{_UUID}|{_ULID})",
            rf"(?P<call>{_CALL_ID})",
            rf"(?P<hex>{_PREFIXED_HEX})",
        ]
    )
)
_SHAPE_KINDS = {f"token{index}": kind for index, (kind, _source) in enumerate(TOKENS)} | {"id": "hinted", "call": ""}
ODD = make_odd(_PAIRS)  # occurs in every run of letters that holds anything
_ODD = Prefilter([ODD], loosened=False)
_MOST_SCORED = 114  # hundredths for each letter of a word: see `_score_atom`
_NO_MARKS = str.maketrans("", "", "./")
QUICK = 96  # bytes of the longest run that is looked at quickly
_PICTURES = (
    "iVBORw0KGgo",
    "/9j/",
    "R0lGOD",
    "UklGR",
    "JVBERi0",
    "UEsDB",
    "H4sI",
    "d09GM",
    "AAABAA",
    "AGFzbQ",
    "AAEAAA",
    "KLUv",
)
_PUBLIC = Regex(
    rb"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-[a-z0-9-]+|sk-ssh-[a-z0-9@.-]+|sha(?:1|256|384|512)[:-]|h1:"
    rb"|/var/folders/[a-z0-9_]{2}/|integrity[\"':= ]+)[ ]?\Z"
)
# Words before a digest or a UUID, in the same line, that make it a key after all.
_HINT = BytesPattern(
    r"(?i)(?:\b|_)(?:secret|token|passw(?:or)?d|passphrase|credentials?|bearer"
    r"|(?:api|access|secret|private|auth|licen[sc]e|service|integration|personal|ingest|app|account|admin|signing"
    r"|encryption|master)[ _\-]?key"
    r"|datadog|heroku|mailgun|algolia|cloudflare|fastly|okta|auth0|snyk|jfrog|artifactory|circle-?ci|buildkite"
    r"|codecov|plaid|coinbase"
    r"|zendesk|intercom|mailchimp|rollbar|bugsnag|mixpanel|amplitude|etherscan|infura|alchemy|postmark|wandb"
    r"|pagerduty|opsgenie|statuspage"
    r"|railway|linode|vultr|hetzner|bitly|giphy|newsapi|openweather|deepgram|assemblyai|cohere|mistral)s?(?:\b"
    r"|_)[^\n]{0,24}\z"
)


class Part(NamedTuple):
    """A part of a run. Its nature is a kind of secret, `hinted` (a digest or an id) or `encoded` (base64 or hex text)."""

    start: int
    end: int
    nature: str


def find_runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of tokens that may be opaque or encoded."""
    for start, end in _RUN.spans(data):
        if end - start >= SHORTEST:
            yield start, end


def remember_harmless(run: bytes) -> bool:
    """Remember a run that holds nothing, unless it may be a line of base64 that goes on; return whether it is remembered."""
    if len(run) >= LINE:
        return False
    if len(HARMLESS) >= _MOST_HARMLESS:
        HARMLESS.clear()
    HARMLESS.add(run)
    return True


def is_hinted(data: bytes, start: int) -> bool:
    """Return whether the words just before `start` announce a secret."""
    begin = max(data.rfind(b"\n", max(start - 64, 0), start) + 1, start - 64, 0)
    return begin < start and _is_hint(data[begin:start])


@lru_cache(maxsize=4096)
def _is_hint(before: bytes) -> bool:
    return _HINT.search(before) is not None


def is_public(data: bytes, start: int) -> bool:
    """Return whether the words just before `start` announce a public key or a digest."""
    return _PUBLIC.search(data[max(start - 40, 0) : start]) is not None


def parts(token: str) -> tuple[Part, ...]:
    """Return the parts of a run that may be secret."""
    return _parts(token) if len(token) <= _SAMPLE else _find_parts(token)


def is_opaque(value: str) -> bool:
    """Return whether a value is an opaque token, not a digest or an id."""
    return any(part.nature not in ("hinted", "encoded") for part in parts(value))


def _find_parts(token: str) -> tuple[Part, ...]:
    if len(token) <= QUICK and token.translate(_NO_MARKS).isalpha() and not _ODD.which(token.encode()):
        return ()
    result: list[Part] = []
    offset = 0
    for piece in _split_assignments(token):
        result.extend(_judge_piece(piece, offset))
        offset += len(piece)
    return tuple(result)


_parts = lru_cache(maxsize=8192)(_find_parts)


def _split_assignments(token: str) -> list[str]:
    """Split `name=value` (each piece keeps its `=`) but not the padding of base64."""
    if "=" not in token.rstrip("="):
        return [token]
    return [piece for piece in re.findall(r"[^=]*=*", token) if piece]


def _judge_piece(piece: str, offset: int) -> list[Part]:
    body = piece.strip("=.-/")
    if len(body) < SHORTEST or body.startswith(_PICTURES):
        return []
    start = offset + piece.index(body)
    end = start + len(body) + (len(piece) - len(piece.rstrip("=")))
    if "." not in body and "~" not in body:
        raw = body.encode()
        plain = from_hex(raw.removeprefix(b"0x")) if _HEX.match(body) else from_base64(raw)
        if plain is not None and len(plain) >= 8:
            return [Part(start, end, "encoded")]
    if _NAMED_DIGEST.match(body):
        return []
    if "/" not in body:
        nature = _nature(body)
        return [Part(start, end, nature)] if nature else []
    if "." not in body and _is_base64_like(body):
        return [Part(start, end, "opaque")]
    result = []
    at = start
    for name in body.split("/"):
        nature = _nature(name) if len(name) >= SHORTEST and not _HEX.match(name) else ""
        if nature and not _NAMED_DIGEST.match(name):
            result.append(Part(at, at + len(name), nature))
        at += len(name) + 1
    return result


def _is_base64_like(body: str) -> bool:
    """Return whether the slashes belong to base64 rather than to a path."""
    names = body.split("/")
    wordy = [name for name in names if len(name) >= 3 and name.isalpha() and name[1:].islower()]
    if len(names) > 2 + len(body) // 12 or sum(map(len, wordy)) > (0 if len(body) < 300 else len(body) // 20):
        return False
    return looks_random(body) and not (len(body) < 300 and _holds_word(body))


def _nature(name: str) -> str:
    """Return the nature of a token without slashes; "" if it is harmless."""
    name = name.strip("-_.+~")
    shape = _SHAPE.match(name)
    if shape is not None:
        form = shape.lastgroup or ""
        if form in _SHAPE_KINDS:
            return _SHAPE_KINDS[form]
        if shape["prefix"].lower() not in _HEX_PREFIXES:
            return "opaque"
    atoms = _ATOM.findall(name[:_SAMPLE])
    longest = max(atoms, key=len, default="")
    digest = False
    strange: list[str] = []
    for atom in atoms:
        if _HEX.match(atom):
            digest = digest or (len(atom) >= SHORTEST and not atom.isdigit())
            if len(atom) > 40 and len(atom) not in _DIGEST_LENGTHS and len(set(atom)) > 8 and not atom.isdigit():
                return "opaque"
        elif len(atom) >= SHORTEST and looks_random(atom):
            return "opaque"
        else:
            strange.append(atom)
    size = 0 if _ORDERED.search(name) else sum(map(len, strange))
    if (
        size >= 20
        and len(set(name)) >= 8
        and "." not in name
        and not _holds_word(name)
        and len(longest) >= 4
        and drawn_score("-".join(strange)) < -0.3 * size
    ):
        return "opaque"
    return "hinted" if digest else ""


def _holds_word(name: str) -> bool:
    """Return whether a name contains a word of five letters or more."""
    for word in re.findall(r"[A-Za-z][a-z]{4,}|[A-Z]{5,}", name[:_SAMPLE]):
        lower = word.lower()
        if sum(lower[i : i + 2] in _PAIRS for i in range(len(lower) - 1)) >= len(lower) - 1:
            return True
    return False


@lru_cache(maxsize=8192)
def looks_random(token: str) -> bool:
    """Return whether a token was drawn at random rather than named, judged by its letters and digits alone."""
    text = token[:_SAMPLE]
    length = sum(map(len, _ATOM.findall(text)))
    if length < 10 or text.isdigit() or len(set(text)) < 6 or _ORDERED.search(text) or _FLOAT.match(text):
        return False
    if text.isalpha():
        return length >= 20 and _scores_below(text, -800)
    if not any(map(str.isdigit, text)):
        return length >= 20 and _scores_below(text, -600)
    return _scores_below(text, -300 if length >= 20 else -500)


def _scores_below(text: str, limit: int) -> bool:
    """Return whether the score of a text is below a limit, in hundredths, as soon as the rest cannot change it."""
    atoms = _ATOM.findall(text)
    score, rest = 0, sum(map(len, atoms))
    for atom in atoms:
        score += _score_atom(atom)
        rest -= len(atom)
        if score + _MOST_SCORED * rest < limit:
            return True
    return score < limit


def drawn_score(text: str) -> float:
    """Return the log odds that a text is made of words (above 0) rather than of random characters (below)."""
    return sum(map(_score_atom, _ATOM.findall(text))) / 100


def _score_atom(atom: str) -> int:
    """Score letters and digits in a row, in hundredths: whole numbers add up the same in any order."""
    words = _WORDS.findall(atom)
    count = len(words)
    if count == 1:
        return 37 * (len(atom) - 1) + (0 if atom[0].isdigit() else _score_pairs(atom))
    score = 37 * (len(atom) - count) - 80 * (count - 1) + sum(map(_score_word, words))
    return score + 100 if words[-1][0].isdigit() else score  # digits count against a name only before letters


@lru_cache(maxsize=16384)
def _score_word(word: str) -> int:
    if word[0].isdigit():
        return -100
    return _score_pairs(word) - (80 if len(word) <= 2 else 0)


def _score_pairs(word: str) -> int:
    lower = word.lower()
    return sum(77 if lower[i : i + 2] in _PAIRS else -240 for i in range(len(lower) - 1))
