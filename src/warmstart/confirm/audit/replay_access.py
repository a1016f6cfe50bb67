"""What the audit tells of tokens, login links, logins and the whitelist: see playing.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from warmstart.confirm.audit.expected_rows import Facts, ReplayState, Told, pick, plain
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.policy import actions
from warmstart.names import name_key

# How long these lasted in versions whose entries do not say so.
_OLD_LINK = 15 * 60 * 1000
_OLD_SESSION = 12 * 3600 * 1000

find_person = lru_cache(4096)(name_key)  # as names are compared
find_action = lru_cache(4096)(actions.key_of)


def _token_created(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    subject, id = str(told.get("subject")), str(told.get("token"))
    if "born" in book.get("token", id):
        yield "makes a token that was made before"
    facts = {
        "born": entry.sequence,
        "subject": subject,
        "subject_key": find_person(subject),
        "created": entry.at,
        "created_by": entry.actor,
        **pick(told, "scopes", "digest", "expires"),
    }
    book.note("token", id, facts)


def _token_revoked(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    id = str(told.get("token"))
    book.note("token", id, book.get("token", id) | {"revoked": entry.at})
    return ()


def _link_created(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    facts = {"born": entry.sequence, "created": entry.at, **pick(told, "subject", "scopes", "expires")}
    if "digest" in told:
        book.note("login link", str(told["digest"]), facts)
    else:
        id = _name_old_link(entry.at, told.get("subject"), told.get("scopes"))
        count = book.get("old login link", id).get("count", 0)
        book.note("old login link", id, {"born": entry.sequence, "count": count + 1})
    return ()


def _name_old_link(created: Any, subject: Any, scopes: Any) -> str:
    """What older entries tell of a link: not its hash."""
    return f"{created} {subject} {scopes}"


def take_link(book: ReplayState, row: Facts) -> Facts:
    """What is told of a login link, by whatever version."""
    facts = book.take("login link", row["digest"])
    id = _name_old_link(row["created"], row["subject"], row["scopes"])
    if "born" in facts or not (old := book.take("old login link", id)):
        return facts
    if old["count"] > 1:
        book.note("old login link", id, old | {"count": old["count"] - 1})
    # Whether it was used is not told; where it has ended that is of no use to anybody.
    return {"used": row["used"]} | facts | {"born": old["born"], "expires": row["created"] + _OLD_LINK}


def _logged_in(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    facts = {
        "born": entry.sequence,
        "subject": entry.actor,
        "subject_key": find_person(entry.actor),
        "created": entry.at,
        "expires": entry.at + _OLD_SESSION,
        **pick(told, "digest", "scopes", "expires"),
    }
    book.note("login", entry.credential, facts)
    if "link" in told:
        link = book.get("login link", str(told["link"]))
        if "used" in link:
            yield "logs in by a link that was used before"
        book.note("login link", str(told["link"]), link | {"used": entry.at})


def _logged_out(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    book.note("login", entry.credential, {"ended": entry.at} | book.get("login", entry.credential))
    return ()


def _shut_out(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    """Every login of somebody. Older entries do not name them: all that were still good."""
    if isinstance(named := told.get("logins"), list):
        for id in map(str, named):
            book.note("login", id, {"ended": entry.at} | book.get("login", id) | {"scopes": ""})
        return ()
    key = find_person(str(told.get("subject")))
    for id, facts in list(book.rest("login")):
        ends = facts.get("expires")
        if facts.get("subject_key") == key and "ended" not in facts and isinstance(ends, int) and ends > entry.at:
            book.note("login", id, facts | {"ended": entry.at})
    return ()


# What was allowed in advance


def _whitelisted(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    facts = {
        "born": entry.sequence,
        "action": entry.action,
        "action_key": find_action(entry.action),
        "session_key": plain(told.get("session")),
        "requester_key": find_person(str(told.get("requester", ""))),
        "created": entry.at,
        "created_by": entry.actor,
        **pick(told, "digest", "expires"),
    }
    book.note("whitelist entry", str(told.get("entry")), facts)
    return ()


def _whitelist_removed(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    id = str(told.get("entry"))
    book.note("whitelist entry", id, book.get("whitelist entry", id) | {"removed": entry.at})
    return ()


ACCESS = {
    "token_created": _token_created,
    "token_revoked": _token_revoked,
    "login_link_created": _link_created,
    "login": _logged_in,
    "logout": _logged_out,
    "sessions_ended": _shut_out,
    "whitelisted": _whitelisted,
    "whitelist_removed": _whitelist_removed,
}
