-- Exchanges: which message of the user a call serves, that message, and the agent's own words after the last call.
ALTER TABLE calls ADD COLUMN request INTEGER;  -- number of the user's message, from 1; null: recorded by an older version
ALTER TABLE calls ADD COLUMN asked TEXT;       -- of the first call that serves a message: the message, redacted
ALTER TABLE calls ADD COLUMN closing TEXT;     -- of the last call that serves a message: the agent's words, redacted

-- 1: another exchange of the template's sessions. Seeds may show it while the version is active; it is no part of its digest.
ALTER TABLE examples ADD COLUMN further INTEGER NOT NULL DEFAULT 0;
