-- The schema of 0002_loads.sql for PostgreSQL.

ALTER TABLE requests ADD COLUMN size INTEGER NOT NULL DEFAULT 0;

UPDATE requests SET size = octet_length(description) + octet_length(details);

CREATE INDEX requests_by_credential ON requests (credential, created);
CREATE INDEX requests_pending_by_credential ON requests (credential, size) WHERE status = 'pending';
CREATE INDEX requests_denied ON requests (subject_key, decided) WHERE status = 'denied';

CREATE TABLE masked_values (
    request     TEXT NOT NULL REFERENCES requests (id),
    mask        TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    PRIMARY KEY (request, mask)
);

CREATE INDEX masked_values_by_fingerprint ON masked_values (fingerprint);
