"""Reasons why a person should look at a template before it is used.

No filter stops every attack: a reason makes a template wait for a person, but no reason is no proof of innocence.
Matching takes linear time, because the text may be hostile.
"""

from __future__ import annotations

import binascii
import importlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from warmstart import lazy_regex as re
from warmstart.calls.shapes import strings_in
from warmstart.excerpt import first
from warmstart.model import Example, Template

_LISTED = 12  # reasons listed; the rest is counted
_ORDINARY_HOSTS = frozenset(("localhost", "127.0.0.1", "::1", "example.com", "example.org", "example.net"))
_OFTEN_QUOTED = frozenset(  # ignored in results: links that many files contain
    "github.com docs.github.com help.github.com www.w3.org json-schema.org "
    "docs.python.org pkg.go.dev developer.mozilla.org stackoverflow.com en.wikipedia.org www.apache.org opensource.org".split()
)

_ORDERS = (  # addressed to an assistant, hardly ever to anyone else
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
_URGINGS = (  # also in ordinary documents, but a person should read them
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
    """Compile a pattern when first needed: a session that only gets a seed never loads the library."""
    return importlib.import_module("re2").compile(pattern)


def _search(pattern: str, text: str) -> Any:
    return _linear(pattern).search(text)


def suspicions(template: Template, known_hosts: Collection[str] = ()) -> tuple[str, ...]:
    """Return the reasons why a person should look at a template first."""
    reasons: dict[str, None] = {}
    for number, example in enumerate(template.examples, 1):
        for reason in suspect_example(example, known_hosts):
            reasons[f"example {number}: {reason}"] = None
    for where, text in (("addendum", template.addendum), ("description", template.description)):
        for reason in _suspect_text(text):
            reasons[f"{where}: {reason}"] = None
    listed = list(reasons)
    return (*listed[:_LISTED], f"and {len(listed) - _LISTED} more") if len(listed) > _LISTED else tuple(listed)


def without_reminders(text: str) -> str:
    """Return a result without the text that the agent's own harness appended for its model."""
    if "system-reminder>" in text:
        text = _REMINDER_END.sub(r"\1", _REMINDER.sub("", text)).rstrip()
    return _HARNESS.sub("", text) if "agentId: " in text else text


def gives_orders(text: str) -> bool:
    """Return whether a text gives an assistant orders or claims success to it, also inside reminders."""
    if "system-reminder>" in text or "agentId: " in text:
        text = _HARNESS.sub("", text.replace("<system-reminder>", "").replace("</system-reminder>", ""))
    if _search(_ORDERS, text) or _search(_FAKE_SUCCESS, text) or _HIDDEN.search(text):
        return True
    return "|" in text and _search(_PIPED, text) is not None


def hosts_in(text: str) -> set[str]:
    """Return the hosts of the URLs and network commands in a text."""
    hosts = set(_linear(_HOST).findall(text)) if "://" in text else set()
    hosts |= set(_linear(_FETCHED).findall(text))
    plain = {host.lower().strip(".") for host in hosts}
    return {host for host in plain if ("." in host or ":" in host) and host not in _ORDINARY_HOSTS}


def suspect_example(example: Example, known_hosts: Collection[str]) -> Iterator[str]:
    """Yield the reasons why a person should look at an example first."""
    shown = example.shown
    arguments = "\n".join(text for call in shown for text in strings_in(call.arguments))
    results = "\n".join(call.result for call in shown)
    corrections = "\n".join(call.correction for call in shown if call.correction)
    intent = f"{example.intent}\n{corrections}\n{example.task}\n{example.closing}"
    for where, text in (("call", arguments), ("result", results), ("intent", intent)):
        for reason in _suspect_text(text):
            yield f"{reason} in the {where}"
        new = sorted(hosts_in(text).difference(known_hosts, _OFTEN_QUOTED if where == "result" else ()))
        if new:
            more = f" and {len(new) - 2} more" if len(new) > 2 else ""
            yield f"new host in the {where}: {', '.join(first(host, 60) for host in new[:2])}{more}"
    if match := _search(_FAKE_SUCCESS, results):
        yield f"the result claims success to its reader: {_quote(match)}"


def _suspect_text(text: str) -> Iterator[str]:
    yield from _find_orders(text)
    if match := _search(_PIPED, text):
        yield f"a download is run: {_quote(match)}"
    if hidden := sorted({_name(mark) for mark in _HIDDEN.findall(text)}):
        yield f"hidden characters ({', '.join(hidden[:3])})"
    for inner in _decode_base64(text):
        for reason in _find_orders(inner):
            yield f"base64 of {reason}"


def _find_orders(text: str) -> Iterator[str]:
    match = _search(_ORDERS, text) or _search(_URGINGS, text) or _search(_ORDERS, _fold(text))
    if match:
        yield f"instruction-like text {_quote(match)}"


def _fold(text: str) -> str:
    """Return a text without hidden marks, look-alikes and line breaks."""
    return " ".join(unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).split())


def _decode_base64(text: str) -> Iterable[str]:
    for blob in _linear(_BASE64).findall(text)[:20]:
        try:
            padded = blob.rstrip("=").replace("-", "+").replace("_", "/")
            yield binascii.a2b_base64(padded + "=" * (-len(padded) % 4)).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue


def _quote(match: Any) -> str:
    return f"“{first(' '.join(match.group(0).split()), 60)}”"


def _name(mark: str, name: Callable[[str, str], str] = unicodedata.name) -> str:
    return name(mark, f"U+{ord(mark):04X}").lower()
