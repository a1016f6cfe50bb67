-- The schema of 0001_confirm.sql for PostgreSQL.

CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied BIGINT NOT NULL);

CREATE TABLE keys (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE tokens (
    id          TEXT NOT NULL PRIMARY KEY,
    digest      TEXT NOT NULL UNIQUE,
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    scopes      TEXT NOT NULL,
    created     BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    expires     BIGINT,
    revoked     BIGINT
);

CREATE TABLE requests (
    id          TEXT NOT NULL PRIMARY KEY,
    sequence    BIGINT NOT NULL UNIQUE,
    action      TEXT NOT NULL,
    action_key  TEXT NOT NULL,
    description TEXT NOT NULL,
    details     TEXT NOT NULL,
    masked      INTEGER NOT NULL,
    digest      TEXT NOT NULL,
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    credential  TEXT NOT NULL,
    claimed     TEXT NOT NULL,
    session_key TEXT NOT NULL,
    high_risk   INTEGER NOT NULL,
    quorum      INTEGER NOT NULL,
    created     BIGINT NOT NULL,
    timeout     INTEGER NOT NULL,
    deadline    BIGINT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'auto_approved', 'denied', 'expired')),
    decided     BIGINT,
    decided_by  TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    execute_by  BIGINT,
    executed    BIGINT
);

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
    at          BIGINT NOT NULL,
    PRIMARY KEY (request, subject_key)
);

CREATE TABLE answers (
    credential TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     TEXT NOT NULL,
    request    TEXT NOT NULL REFERENCES requests (id),
    PRIMARY KEY (credential, key)
);

CREATE TABLE whitelist (
    id            TEXT NOT NULL PRIMARY KEY,
    action        TEXT NOT NULL,
    action_key    TEXT NOT NULL,
    session_key   TEXT NOT NULL,
    requester_key TEXT NOT NULL,
    digest        TEXT NOT NULL,
    created       BIGINT NOT NULL,
    created_by    TEXT NOT NULL,
    expires       BIGINT NOT NULL,
    removed       BIGINT
);

CREATE INDEX whitelist_by_action ON whitelist (action_key, session_key);

CREATE TABLE logins (
    digest  TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    scopes  TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    used    BIGINT
);

CREATE TABLE sessions (
    id          TEXT NOT NULL PRIMARY KEY,
    digest      TEXT NOT NULL UNIQUE,
    subject     TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    scopes      TEXT NOT NULL,
    created     BIGINT NOT NULL,
    expires     BIGINT NOT NULL,
    ended       BIGINT
);

CREATE TABLE outbox (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request  TEXT NOT NULL REFERENCES requests (id),
    channel  TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'undeliverable')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due      BIGINT NOT NULL,
    error    TEXT NOT NULL DEFAULT '',
    UNIQUE (request, channel)
);

CREATE INDEX outbox_due ON outbox (due) WHERE state = 'queued';

CREATE TABLE audit (
    sequence   BIGINT PRIMARY KEY,
    at         BIGINT NOT NULL,
    event      TEXT NOT NULL,
    request    TEXT NOT NULL,
    action     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    credential TEXT NOT NULL,
    details    TEXT NOT NULL,
    previous   TEXT NOT NULL,
    hash       TEXT NOT NULL
);

CREATE INDEX audit_by_request ON audit (request, sequence) WHERE request <> '';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is append-only';
END $$;

CREATE FUNCTION check_growth() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    head RECORD;
BEGIN
    SELECT sequence, hash INTO head FROM warmstart_confirm.audit ORDER BY sequence DESC LIMIT 1;
    IF NEW.sequence IS DISTINCT FROM coalesce(head.sequence, 0) + 1
       OR NEW.previous IS DISTINCT FROM coalesce(head.hash, repeat('0', 64)) THEN
        RAISE EXCEPTION 'the audit is append-only';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_is_never_shortened BEFORE DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_only_grows BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION check_growth();
