-- Details last in a row: reading the columns after them meant walking through all of their pages. The load of a token is
-- counted in the index alone.

ALTER TABLE requests ADD COLUMN arguments TEXT NOT NULL DEFAULT '';
UPDATE requests SET arguments = details;
ALTER TABLE requests DROP COLUMN details;
ALTER TABLE requests RENAME COLUMN arguments TO details;

DROP INDEX requests_pending_by_credential;
CREATE INDEX requests_pending_by_credential ON requests (credential, deadline, size) WHERE status = 'pending';

ALTER TABLE keys ADD COLUMN recorded INTEGER;  -- sequence of the audit entry with its fingerprint
