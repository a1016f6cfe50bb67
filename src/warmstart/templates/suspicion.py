"""What makes a template one that a person should look at first.

No filter stops poison; these are reasons to wait for a person's yes, not a licence for what has none. The matching
takes linear time: the text is other people's.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from warmstart.calls.shapes import strings_in
from warmstart.excerpt import first
from warmstart.model import Example, Template

_MOST = 12  # reasons told; the rest is counted
_ORDINARY_HOSTS = frozenset(("localhost", "127.0.0.1", "::1", "example.com", "example.org", "example.net"))
_OFTEN_QUOTED = frozenset(  # in results only: a link that stands in every second file is no news
    "github.com docs.github.com help.github.com www.w3.org json-schema.org "
    "docs.python.org pkg.go.dev developer.mozilla.org stackoverflow.com en.wikipedia.org www.apache.org opensource.org".split()
)

_ORDERS = (  # said to an assistant, hardly ever to anyone else
    r"(?i)\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|your|the)\b.{0,30}"
    r"\b(?:instructions?|prompts?|rules|guidelines|context|messages)\b"
    r"|\b(?:do not|don'?t|never)\b.{0,20}\b(?:tell|inform|mention|reveal|show)\b.{0,20}\b(?:the )?(?:user|human|operator)\b"
    r"|\bsystem prompt\b|\bnew instructions?:|\byour (?:new|real|true) (?:task|goal|instructions?|objective)\b"
    r"|</?(?:system|assistant|instructions?|admin|system-reminder|tool_result|human)(?:\s[^>]*)?>"
    r"|\[/?(?:INST|SYSTEM)\]|<\|(?:im_start|im_end|system|user|assistant)\|>"
    r"|\byou are now\b|\bas an? (?:ai|llm|language model|assistant)\b.{0,40}\b(?:must|should|always)\b"
    r"|\b(?:always|from now on|in (?:the )?future|every time|in every session)\b.{0,30}"
    r"\b(?:run|execute|install|call|use|curl|start (?:by|with))\b"
    r".{0,60}(?:https?://|\bcurl\b|\bwget\b|\bsh\b|\bbash\b|--no-verify|\bsudo\b|\binstructions?\b)"
)
_URGINGS = (  # in documents too, but a person should read them
    r"(?i)\byou must\b|\balways (?:run|execute|call|use|install)\b|\bfrom now on\b"
    r"|\b(?:important|attention|critical|urgent|note to (?:the )?(?:ai|assistant|agent|model))\s*[:!]\s*.{0,40}"
    r"\b(?:assistant|agent|claude|codex|gpt|gemini|model|you (?:must|should|need|have to)|run|execute|ignore|do not)\b"
)
_FAKE_SUCCESS = (
    r"(?i)\b(?:mark|report|record|count|treat|consider|label)\b.{0,30}\b(?:as|a)\b.{0,12}"
    r"\b(?:success(?:ful)?|passed|complete[d]?|done|solved)\b"
    r"|\b(?:no need|not necessary|unnecessary|do not|don'?t)\b.{0,15}"
    r"\b(?:to )?(?:verify|check|test|review|re-?run|validate)\b"
    r"|\b(?:success(?:ful(?:ly)?)?|passed|completed|works?|done)\b.{0,80}\b(?:you (?:can|may|should|must)|tell the user)\b"
    r"|\btell the user\b.{0,60}\b(?:success\w*|worked|passed|done|complete\w*|fixed)\b"
)
_PIPED = (
    r"(?i)\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^\n|;]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?(?:sh|python3?|perl|node|ruby|iex)\b"
    r"|\b(?:ba|z)?sh\b\s+(?:-c\s+)?[\"'(<$]{1,3}\s*\(?(?:curl|wget)\b|\beval\b.{0,10}\b(?:curl|wget)\b"
)
_HOST = r"(?i)\b(?:[a-z][a-z0-9+.-]{1,12})://(?:[^\s/@\"'<>]{1,100}@)?([a-z0-9.-]{1,253}|\[[0-9a-f:]+\])"
_FETCHED = r"(?i)\b(?:curl|wget|ssh|scp|nc|ping)\s+(?:-\S+\s+){0,4}(?:[a-z0-9_.-]+@)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)\b"
_BASE64 = r"[A-Za-z0-9+/_-]{40,}={0,2}"
_HIDDEN = re.compile("[\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]")

_REMINDER = re.compile(r"<system-reminder>(.*?)(?:</system-reminder>|\Z)", re.S)
_REMINDER_END = re.compile(r"(?s)(\[\.\.\. \d+ characters left out \.\.\.\]).*?</system-reminder>")
_HARNESS = re.compile(r"agentId: \w+ \(This is an internal ID for your use, do not mention it to the user\.[^)]*\)")


@cache
def _linear(pattern: str) -> Any:
    """Compiled when first needed: a session that only asks for a seed never loads the library."""
    return importlib.import_module("re2").compile(pattern)


def _search(pattern: str, text: str) -> Any:
    return _linear(pattern).search(text)


def suspicions(template: Template, known_hosts: Collection[str] = ()) -> tuple[str, ...]:
    """Why a person should look before this is used. Empty is no proof of innocence."""
    found: dict[str, None] = {}
    for number, example in enumerate(template.examples, 1):
        for reason in _of_example(example, known_hosts):
            found[f"example {number}: {reason}"] = None
    for where, text in (("addendum", template.addendum), ("description", template.description)):
        for reason in _of_text(text):
            found[f"{where}: {reason}"] = None
    told = list(found)
    return (*told[:_MOST], f"and {len(told) - _MOST} more") if len(told) > _MOST else tuple(told)


def without_reminders(text: str) -> str:
    """A result without what the agent's own harness appended for its model; it is no part of the answer."""
    if "system-reminder>" in text:
        text = _REMINDER_END.sub(r"\1", _REMINDER.sub("", text)).rstrip()
    return _HARNESS.sub("", text) if "agentId: " in text else text


def gives_orders(text: str) -> bool:
    """Whether a text speaks to an assistant as its master would, or tells it that all is well; in reminders too."""
    if "system-reminder>" in text or "agentId: " in text:
        text = _HARNESS.sub("", text.replace("<system-reminder>", "").replace("</system-reminder>", ""))
    if _search(_ORDERS, text) or _search(_FAKE_SUCCESS, text) or _HIDDEN.search(text):
        return True
    return "|" in text and _search(_PIPED, text) is not None


def hosts_in(text: str) -> set[str]:
    """The hosts of the URLs in a text, and those a command goes to."""
    found = set(_linear(_HOST).findall(text)) if "://" in text else set()
    found |= set(_linear(_FETCHED).findall(text))
    plain = {host.lower().strip(".") for host in found}
    return {host for host in plain if ("." in host or ":" in host) and host not in _ORDINARY_HOSTS}


def _of_example(example: Example, known_hosts: Collection[str]) -> Iterator[str]:
    arguments = "\n".join(strings_in(example.arguments))
    said = f"{example.intent}\n{example.correction or ''}\n{example.task}"
    for where, text in (("call", arguments), ("result", example.result), ("intent", said)):
        for reason in _of_text(text):
            yield f"{reason} in the {where}"
        new = sorted(hosts_in(text).difference(known_hosts, _OFTEN_QUOTED if where == "result" else ()))
        if new:
            more = f" and {len(new) - 2} more" if len(new) > 2 else ""
            yield f"new host in the {where}: {', '.join(first(host, 60) for host in new[:2])}{more}"
        if "{{SECRET:" in text:
            yield f"a secret was found in the {where}"
    if match := _search(_FAKE_SUCCESS, example.result):
        yield f"the result claims success to its reader: {_quote(match)}"


def _of_text(text: str) -> Iterator[str]:
    yield from _orders(text)
    if match := _search(_PIPED, text):
        yield f"a download is run: {_quote(match)}"
    if hidden := sorted({_name(mark) for mark in _HIDDEN.findall(text)}):
        yield f"hidden characters ({', '.join(hidden[:3])})"
    for inner in _decoded(text):
        for reason in _orders(inner):
            yield f"base64 of {reason}"


def _orders(text: str) -> Iterator[str]:
    match = _search(_ORDERS, text) or _search(_URGINGS, text) or _search(_ORDERS, _folded(text))
    if match:
        yield f"instruction-like text {_quote(match)}"


def _folded(text: str) -> str:
    """Without hidden marks, look-alikes and breaks between words."""
    return " ".join(unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).split())


def _decoded(text: str) -> Iterable[str]:
    for blob in _linear(_BASE64).findall(text)[:20]:
        try:
            padded = blob.rstrip("=").replace("-", "+").replace("_", "/")
            yield base64.b64decode(padded + "=" * (-len(padded) % 4)).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue


def _quote(match: Any) -> str:
    return f"“{first(' '.join(match.group(0).split()), 60)}”"


def _name(mark: str, name: Callable[[str, str], str] = unicodedata.name) -> str:
    return name(mark, f"U+{ord(mark):04X}").lower()
