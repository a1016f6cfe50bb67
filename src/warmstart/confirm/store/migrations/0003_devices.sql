-- Passkeys, alerts about access, browsers that get pushes, withdrawn requests, and whitelist entries for a number of times.

CREATE TABLE passkeys (
    id          TEXT NOT NULL PRIMARY KEY, -- the credential's id, base64url
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    name        TEXT NOT NULL,             -- for people: the device
    public_key  TEXT NOT NULL,             -- COSE, base64url; the private key never leaves the device
    rp          TEXT NOT NULL,             -- host name of the page that it belongs to
    created     INTEGER NOT NULL,
    vouched     INTEGER,                   -- when it was trusted; NULL: it cannot approve yet
    vouched_by  TEXT NOT NULL DEFAULT '',  -- the passkey that vouched; empty for the first one
    removed     INTEGER
) STRICT;

CREATE TABLE alerts (                      -- notifications about access, not about a request
    sequence INTEGER NOT NULL,             -- of the audit entry
    channel  TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'undeliverable')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due      INTEGER NOT NULL,
    error    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (sequence, channel)
) STRICT, WITHOUT ROWID;

CREATE INDEX alerts_due ON alerts (due) WHERE state = 'queued';

CREATE TABLE marks (                       -- how far a reader of the audit has come
    name     TEXT NOT NULL PRIMARY KEY,
    sequence INTEGER NOT NULL
) STRICT;

INSERT INTO marks (name, sequence) SELECT 'alerts', coalesce(max(sequence), 0) FROM audit;

CREATE TABLE pushes (                      -- browsers that want to be notified
    endpoint    TEXT NOT NULL PRIMARY KEY,
    subject     TEXT NOT NULL,
    session     TEXT NOT NULL,             -- the login that asked for it
    p256dh      TEXT NOT NULL,
    auth        TEXT NOT NULL,
    created     INTEGER NOT NULL
) STRICT;

ALTER TABLE whitelist ADD COLUMN times INTEGER;                    -- NULL: as often as wanted until it expires
ALTER TABLE whitelist ADD COLUMN used INTEGER NOT NULL DEFAULT 0;

-- SQLite cannot alter a CHECK; its documentation gives this way. The tables above make other connections read the schema.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''denied'', ''expired'')', '''denied'', ''expired'', ''withdrawn'')')
WHERE type = 'table' AND name = 'requests';
PRAGMA writable_schema = RESET;
