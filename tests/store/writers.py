"""Code of processes that write to a store, for tests of crashes and races and for bench/store.py."""

from __future__ import annotations

MAKE = """
from warmstart.errors import StoreError, StoreFull
from warmstart.store import CallRow, SessionRow, SourceRow, open_store

path, count = sys.argv[1], int(sys.argv[2])

def make(key, size=300, **changes):
    facts = dict(key=key, id=key, format="f", agent="a", source_uri="/" + key, messages=1, calls=3, results=3, errors=0,
                 verdict="unknown", quality=0.0, confidence=0.0, category="general", task_type="mixed", score="{}",
                 digest="d", first_seen=0.0, updated=0.0)
    calls = [CallRow(session_key=key, ordinal=n, call_id=str(n), tool="t", arguments="{}", excerpt="x" * size,
                     status="ok", basis="flag") for n in range(3)]
    return SessionRow(**(facts | changes)), calls
"""

WRITER = """
def write(me, count):
    with open_store(path) as store:
        for n in range(count):
            store.put_session(*make(f"{me}-{n}"))
            os.write(1, f"{me}-{n}\\n".encode())  # in one piece, even if it is killed right after
"""
