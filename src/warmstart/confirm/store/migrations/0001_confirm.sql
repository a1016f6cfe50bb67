-- Requests and decisions, tokens and logins, the audit chain, and the outbox of notifications.
-- Times are milliseconds since the epoch.

CREATE TABLE migrations (
    number  INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    applied INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
    name  TEXT NOT NULL PRIMARY KEY,   -- what it is for
    value TEXT NOT NULL                -- 256 random bits, in hex
) STRICT;

CREATE TABLE tokens (
    id          TEXT NOT NULL PRIMARY KEY,
    digest      TEXT NOT NULL UNIQUE,  -- sha256 of the token; the token itself is nowhere
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,         -- subjects that look alike have the same
    scopes      TEXT NOT NULL,
    created     INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    expires     INTEGER,
    revoked     INTEGER
) STRICT;

CREATE TABLE requests (
    id          TEXT NOT NULL PRIMARY KEY,
    sequence    INTEGER NOT NULL UNIQUE, -- of the audit entry that recorded it: newest first, without ties
    action      TEXT NOT NULL,
    action_key  TEXT NOT NULL,
    description TEXT NOT NULL,           -- masked
    details     TEXT NOT NULL,           -- masked JSON, for people
    masked      INTEGER NOT NULL,
    digest      TEXT NOT NULL,           -- of the exact action and details: what a decision is bound to
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    credential  TEXT NOT NULL,
    claimed     TEXT NOT NULL,
    session_key TEXT NOT NULL,
    high_risk   INTEGER NOT NULL,
    quorum      INTEGER NOT NULL,
    created     INTEGER NOT NULL,
    timeout     INTEGER NOT NULL,
    deadline    INTEGER NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'auto_approved', 'denied', 'expired')),
    decided     INTEGER,
    decided_by  TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    execute_by  INTEGER,
    executed    INTEGER
) STRICT;

CREATE INDEX requests_due ON requests (deadline) WHERE status = 'pending';
CREATE INDEX requests_by_status ON requests (status, sequence);
CREATE INDEX requests_by_action ON requests (action_key, created);
CREATE INDEX requests_by_subject ON requests (subject_key, sequence);

CREATE TABLE votes (
    request     TEXT NOT NULL REFERENCES requests (id),
    subject_key TEXT NOT NULL,
    subject     TEXT NOT NULL,
    credential  TEXT NOT NULL,
    reason      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (request, subject_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (                 -- by idempotency key
    credential TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     TEXT NOT NULL,          -- of the body
    request    TEXT NOT NULL REFERENCES requests (id),
    PRIMARY KEY (credential, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE whitelist (
    id            TEXT NOT NULL PRIMARY KEY,
    action        TEXT NOT NULL,
    action_key    TEXT NOT NULL,
    session_key   TEXT NOT NULL,
    requester_key TEXT NOT NULL,
    digest        TEXT NOT NULL,
    created       INTEGER NOT NULL,
    created_by    TEXT NOT NULL,
    expires       INTEGER NOT NULL,
    removed       INTEGER
) STRICT;

CREATE INDEX whitelist_by_action ON whitelist (action_key, session_key);

CREATE TABLE logins (                  -- links that work once
    digest  TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    scopes  TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    used    INTEGER
) STRICT;

CREATE TABLE sessions (                -- of people on the page
    id          TEXT NOT NULL PRIMARY KEY,
    digest      TEXT NOT NULL UNIQUE,
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    scopes      TEXT NOT NULL,
    created     INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    ended       INTEGER
) STRICT;

CREATE TABLE outbox (
    id       INTEGER PRIMARY KEY,
    request  TEXT NOT NULL REFERENCES requests (id),
    channel  TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'undeliverable')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due      INTEGER NOT NULL,         -- when to try (again); while one tries, when another may
    error    TEXT NOT NULL DEFAULT '',
    UNIQUE (request, channel)
) STRICT;

CREATE INDEX outbox_due ON outbox (due) WHERE state = 'queued';

CREATE TABLE audit (
    sequence   INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    event      TEXT NOT NULL,
    request    TEXT NOT NULL,
    action     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    credential TEXT NOT NULL,
    details    TEXT NOT NULL,
    previous   TEXT NOT NULL,
    hash       TEXT NOT NULL
) STRICT;

CREATE INDEX audit_by_request ON audit (request, sequence) WHERE request <> '';

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

-- INSERT OR REPLACE would delete a row without firing the trigger above.
CREATE TRIGGER audit_only_grows BEFORE INSERT ON audit
WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM audit)
  OR NEW.previous IS NOT coalesce((SELECT hash FROM audit WHERE sequence = NEW.sequence - 1),
                                  '0000000000000000000000000000000000000000000000000000000000000000')
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
