-- The schema of 0003_devices.sql for PostgreSQL.

CREATE TABLE passkeys (
    id          TEXT NOT NULL PRIMARY KEY,
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    name        TEXT NOT NULL,
    public_key  TEXT NOT NULL,
    rp          TEXT NOT NULL,
    created     BIGINT NOT NULL,
    vouched     BIGINT,
    vouched_by  TEXT NOT NULL DEFAULT '',
    removed     BIGINT
);

CREATE TABLE alerts (
    sequence BIGINT NOT NULL,
    channel  TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'undeliverable')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due      BIGINT NOT NULL,
    error    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (sequence, channel)
);

CREATE INDEX alerts_due ON alerts (due) WHERE state = 'queued';

CREATE TABLE marks (name TEXT NOT NULL PRIMARY KEY, sequence BIGINT NOT NULL);

INSERT INTO marks (name, sequence) SELECT 'alerts', coalesce(max(sequence), 0) FROM audit;

CREATE TABLE pushes (
    endpoint TEXT NOT NULL PRIMARY KEY,
    subject  TEXT NOT NULL,
    session  TEXT NOT NULL,
    p256dh   TEXT NOT NULL,
    auth     TEXT NOT NULL,
    created  BIGINT NOT NULL
);

ALTER TABLE whitelist ADD COLUMN times INTEGER;
ALTER TABLE whitelist ADD COLUMN used INTEGER NOT NULL DEFAULT 0;

ALTER TABLE requests DROP CONSTRAINT requests_status_check;
ALTER TABLE requests ADD CONSTRAINT requests_status_check
    CHECK (status IN ('pending', 'approved', 'auto_approved', 'denied', 'expired', 'withdrawn'));
