-- The load of each submitter, and fingerprints of masked values.

ALTER TABLE requests ADD COLUMN size INTEGER NOT NULL DEFAULT 0;  -- bytes of description and details as stored

UPDATE requests SET size = length(CAST(description AS BLOB)) + length(CAST(details AS BLOB));

CREATE INDEX requests_by_credential ON requests (credential, created);
CREATE INDEX requests_pending_by_credential ON requests (credential, size) WHERE status = 'pending';
CREATE INDEX requests_denied ON requests (subject_key, decided) WHERE status = 'denied';

CREATE TABLE masked_values (
    request     TEXT NOT NULL REFERENCES requests (id),
    mask        TEXT NOT NULL,         -- as shown, without braces: token#1
    fingerprint TEXT NOT NULL,         -- keyed with a key of the daemon; equal values have equal ones
    PRIMARY KEY (request, mask)
) STRICT, WITHOUT ROWID;

CREATE INDEX masked_values_by_fingerprint ON masked_values (fingerprint);
