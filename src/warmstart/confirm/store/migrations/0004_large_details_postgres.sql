-- The schema of 0004_large_details.sql for PostgreSQL, which keeps large texts outside of their rows.

DROP INDEX requests_pending_by_credential;
CREATE INDEX requests_pending_by_credential ON requests (credential, deadline, size) WHERE status = 'pending';

ALTER TABLE keys ADD COLUMN recorded BIGINT;
