"""Tell a message that asks for work from a greeting, thanks, agreement or a question about the agent itself."""

from __future__ import annotations

import re

from warmstart.calls.words import FILLER_WORDS, find_words, stem
from warmstart.templates.search import search_words

_LONG = 300  # characters beyond which a message is taken for a request
_SENDER = re.compile(r"\s*\[[^\]\n]{1,60}\]\s*")  # gateways put the sender's name before a message in a group
_EXACT = re.compile(r"[/\\`{}<>=]|\w\.\w|\d{2}")  # a path, an address, code, a number: they belong to some work
_CHATTER = frozenset(
    """agent anyone anything ask assistant back bot chat everyone everything excuse feel friends going guess hear hermes idea
    introduce joking know listening long mind name online people ping pong question questions quick ready say soon someone
    something start started still talk tell test testing thing things think time understand weekend wish wondering yesterday
    alive busy doing glad hope around anybody bit bunch lot lots stuff sup whats yo
    dir ihnen comment ça va qué tal come stai как дела""".split()
)
_KNOWN = FILLER_WORDS | _CHATTER
_STEMS = frozenset(stem(word) for word in _KNOWN)


def is_small_talk(text: str) -> bool:
    """Return whether a message asks for nothing that could be done with tools. An empty message asks for nothing."""
    if len(text) > _LONG:
        return False
    said = _SENDER.sub("", text, count=1) if text.lstrip().startswith("[") else text
    if _EXACT.search(said):
        return False
    if all(word in _KNOWN for word in find_words(said)):
        return True
    return all(word in _STEMS or word in _KNOWN for word in search_words(said))
