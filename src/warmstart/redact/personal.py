"""Data that identifies a person or a machine: e-mail, phone, home folder, host, public address. Hidden in exports only."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from warmstart.redact.matching import BytesPattern, Regex, Span, word_set

_EMAIL = BytesPattern(r"[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}@(?:[A-Za-z0-9\-]{1,63}\.){1,6}[A-Za-z]{2,24}\b")
_HOME = BytesPattern(
    r"(?:/home/|/Users/|\b[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)|/mnt/[a-z]/Users/)[^\s/\\\"'`:;,<>"
    r"|*?(){}\[\]$\x01]{1,64}"
)
_HOME_SLUG = BytesPattern(r"-(?:home|Users)-[A-Za-z0-9]{1,32}(?:-|\b)")
_PHONE = BytesPattern(
    r"(?:\+[0-9]{1,3}[ .\-]?(?:\([0-9]{1,4}\)[ .\-]?)?[0-9]{2,5}(?:[ .\-]?[0-9]{2,5}){1,4}"
    r"|\([0-9]{3}\)[ ]?[0-9]{3}[ .\-][0-9]{4}\b|\b[0-9]{3}[.\-][0-9]{3}[.\-][0-9]{4}\b)"
)
_ADDRESS = BytesPattern(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b|[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}")
_HOST = BytesPattern(
    r"(?i)(?:://(?:[^\s/@\"'`]{1,100}@)?|[a-z0-9_.\-]@)[a-z0-9](?:[a-z0-9\-]{0,62}\.)+[a-z]{2,24}\b"
    r"|\b(?:[a-z0-9\-]{1,63}\.)+(?:com|org|edu|gov|internal|corp|lan|intranet|intra|localdomain|ts\.net)\b"
)
_PUBLIC_HOSTS = word_set(
    """
    github.com githubusercontent.com github.io gitlab.com bitbucket.org python.org
    readthedocs.io nodejs.org google.com googleapis.com gstatic.com microsoft.com azure.com
    windows.net amazonaws.com amazon.com docker.com docker.io huggingface.co anthropic.com openai.com claude.ai
    stackoverflow.com wikipedia.org mozilla.org w3.org apache.org ubuntu.com kernel.org gnu.org
    rust-lang.org crates.io docs.rs golang.org go.dev json-schema.org schema.org example.com example.org
    example.net cloudflare.com unpkg.com jsdelivr.net vercel.com netlify.com apple.com youtube.com sqlite.org
    postgresql.org opensource.org creativecommons.org medium.com reactjs.org react.dev typescriptlang.org
    eslint.org yarnpkg.com maven.org slack.com openrouter.ai
    """
)
_NO_PERSON = Regex(rb"(?:git|noreply|no-reply|support|info)@", re.I)


def find_personal(data: bytes) -> Iterator[Span]:
    """Yield the spans that identify a person or a machine."""
    if b"@" in data:
        for start, end in _EMAIL.spans(data):
            if not _NO_PERSON.match(data[start:end]):
                yield Span(start, end, "email")
    for start, end in _HOME.spans(data):
        yield Span(start, end, "home")
    for start, end in _HOME_SLUG.spans(data):
        yield Span(start, end - data[start:end].endswith(b"-"), "home")
    for start, end in _PHONE.spans(data):
        if 8 <= sum(48 <= c <= 57 for c in data[start:end]) <= 15:
            yield Span(start, end, "phone")
    for start, end in _ADDRESS.spans(data):
        if _is_public(data[start:end].decode("ascii")):
            yield Span(start, end, "address")
    for start, end in _HOST.spans(data):
        begin = start + max(data[start:end].rfind(b"@"), data[start:end].rfind(b"/")) + 1
        if not _is_well_known(data[begin:end].decode("ascii").lower()):
            yield Span(begin, end, "host")


def _is_public(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False


def _is_well_known(host: str) -> bool:
    labels = host.split(".")
    return any(".".join(labels[i:]) in _PUBLIC_HOSTS for i in range(len(labels) - 1))
