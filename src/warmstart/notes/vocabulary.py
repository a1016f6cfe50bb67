"""The words that a note may quote of a message: those that errors are made of. Every other word is left out.

A message is text that anyone may have written: a test, a web page, a hostile tool. A quotation made of these words alone
can describe a failure, but it cannot tell an agent what to do.
"""

from __future__ import annotations

from warmstart import lazy_regex as re

_KNOWN = frozenset(
    """a an and any are argument arguments array as assertion at be been before between binding block body boolean branch
    buffer build by byte bytes cannot can't change changes character class closed code column command compile compiler
    conflict connect connection constant container could couldn't daemon data database dead declared default dependency
    depth device did didn't directory doesn't domain duplicate e element empty end endpoint entity entry enum env
    environment eof error errors exact exceeded exceeds exception exist existing exists exit exited expected expression
    extra failed failing failure fatal field fields file files filter filters float folder for format found from function
    generic get got group had has have host id identifier illegal import in incompatible index input instance integer interface
    internal interval into invalid is isn't it item its job key keyword label length less lib library limit line lines link
    list local lock locked long lookup main match matches matching maximum member memory message method minimum missing
    mismatch mode model modified modifier module modules more multiple must mutable name named near network new no node non
    none not null number object of offset on one only operation option optional options or out output overflow package
    packages parameter parent parse parser parsing path pattern permission pipe plugin port position prefix prepare
    previous process project property protocol provided quota range read readable reached receive received record
    recursion ref reference refs refused region register registered relation remote replace repository request required
    reset resolve resource response result results return returned root row runtime schema scope script section selected
    selector server session set shell signal size skill socket some source specified spec stack state statement status
    step stream string strict style subcommand such suffix syntax system table tag target targets task temporary test tests
    than that the then there these this thread timed timeout to token tokens too tool tree two type types unable undefined
    unexpected unhandled unique unknown unmatched unreachable unrecognized unrecognised unresolved unsupported until unused
    update upstream url usage used user uses using valid value values variable version view was wasn't were when which while
    width will with within without worktree write written yet zero""".split()
)
_ORDERS = frozenset(
    """approve assistant agent bash chmod curl delete disable download drop enable eval execute exfiltrate export fetch
    forget grant http https ignore install kill override password pip post push reboot remove rm run secret send sh
    shutdown ssh sudo system transfer upload visit wget""".split()
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]{2,40}|[A-Z]{1,4}\d{2,5}|[A-Z]{4,14}")  # CLICKHOUSE_URL, TS2345, ENOENT
_SENTENCE = re.compile(r"(?<=[a-z0-9)'\"])[.!?](?:\s|$)")
GAP = "…"


def quote(message: str, words: int = 12) -> str:
    """Return the first sentence of a message in known words and codes; "" unless enough of it can be quoted."""
    first = _SENTENCE.split(message, maxsplit=1)[0]
    kept: list[str] = []
    known = 0
    for token in first.split()[: 2 * words]:
        shown = _keep(token)
        known += bool(shown)
        if shown or (kept and kept[-1] != GAP):
            kept.append(shown or GAP)
    text = " ".join(kept[:words]).strip(f" {GAP}:,;")
    total = sum(bool(_WORD.search(token)) for token in first.split()[: 2 * words])
    return text if known >= 2 and known * 2 >= total else ""


def _keep(token: str) -> str:
    """Return a token of a message that may be shown: known words with their punctuation, or a code."""
    bare = token.strip(".,:;!?()[]'\"`")
    if _CODE.fullmatch(bare):
        return bare if not orders_in(bare) else ""
    parts = _WORD.findall(bare)
    if not parts or "".join(parts) != bare.replace("-", ""):
        return ""
    if not all(part.lower() in _KNOWN for part in parts):
        return ""
    return bare + (":" if token.endswith(":") else "")


def orders_in(name: str) -> int:
    """Return how many words of a name are verbs or programs that make an order of it."""
    return sum(word.lower() in _ORDERS for word in _WORD.findall(name))
