"""Replay entries about keys, tokens, login links, logins and the whitelist; see replay.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from warmstart.confirm.audit.expected_rows import FIRST_ENTRY, Details, Replay, ReplayState, make_plain, pick
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.policy import actions
from warmstart.names import name_key

KEY = "key"  # the replay state's kind for the daemon's keys
key_person = lru_cache(4096)(name_key)
key_action = lru_cache(4096)(actions.key_of)


def replay_ending(kind: str, detail: str, column: str) -> Replay:
    """Make the replay of an entry that ends a row: `detail` holds the row's id, `column` the time of its end."""

    def replay(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
        id = str(details.get(detail))
        state.put(kind, id, state.get(kind, id) | {column: entry.at})
        return ()

    return replay


def _replay_keys_created(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    keys = details.get("keys")
    for name, fingerprint in keys.items() if isinstance(keys, dict) else ():
        if state.get(KEY, name):
            yield f"creates the key for {name[:60]} a second time"
        state.put(KEY, name, {"fingerprint": make_plain(fingerprint)})


def _replay_identity_renewed(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
    if "fingerprint" in details:  # since keys are recorded
        state.put(KEY, "identity", pick(details, "fingerprint"))
    return ()


def _replay_token_created(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    subject, id = str(details.get("subject")), str(details.get("token"))
    if FIRST_ENTRY in state.get("token", id):
        yield "creates a token that already exists"
    row = {
        FIRST_ENTRY: entry.sequence,
        "subject": subject,
        "subject_key": key_person(subject),
        "created": entry.at,
        "created_by": entry.actor,
        **pick(details, "scopes", "digest", "expires"),
    }
    state.put("token", id, row)


def _replay_link_created(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
    row = {FIRST_ENTRY: entry.sequence, "created": entry.at, **pick(details, "subject", "scopes", "expires")}
    state.put("login link", str(details.get("digest")), row)
    return ()


def _replay_login(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    row = {
        FIRST_ENTRY: entry.sequence,
        "subject": entry.actor,
        "subject_key": key_person(entry.actor),
        "created": entry.at,
        **pick(details, "digest", "scopes", "expires"),
    }
    state.put("login", entry.credential, row)
    link = state.get("login link", str(details.get("link")))
    if "used" in link:
        yield "logs in with a link that was already used"
    state.put("login link", str(details.get("link")), link | {"used": entry.at})


def _replay_logout(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
    state.put("login", entry.credential, {"ended": entry.at} | state.get("login", entry.credential))
    return ()


def _replay_sessions_ended(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
    """End every login of a person who was shut out."""
    logins = details.get("logins")
    for id in map(str, logins if isinstance(logins, list) else ()):
        state.put("login", id, {"ended": entry.at} | state.get("login", id) | {"scopes": ""})
    return ()


def _replay_whitelisted(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
    row = {
        FIRST_ENTRY: entry.sequence,
        "action": entry.action,
        "action_key": key_action(entry.action),
        "session_key": make_plain(details.get("session")),
        "requester_key": key_person(str(details.get("requester", ""))),
        "created": entry.at,
        "created_by": entry.actor,
        **pick(details, "digest", "expires", "times"),
    }
    state.put("whitelist entry", str(details.get("entry")), row)
    return ()


REPLAY_ACCESS: dict[str, Replay] = {
    "keys_created": _replay_keys_created,
    "identity_renewed": _replay_identity_renewed,
    "token_created": _replay_token_created,
    "token_revoked": replay_ending("token", "token", "revoked"),
    "login_link_created": _replay_link_created,
    "login": _replay_login,
    "logout": _replay_logout,
    "sessions_ended": _replay_sessions_ended,
    "whitelisted": _replay_whitelisted,
    "whitelist_removed": replay_ending("whitelist entry", "entry", "removed"),
}
