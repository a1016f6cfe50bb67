-- Sessions found by their words, and listed without reading their rows.

-- Sessions whose words are in the index, each with its number there. Rows of `sessions` have no number that lasts.
CREATE TABLE worded_sessions (
    id          INTEGER PRIMARY KEY,
    session_key TEXT NOT NULL UNIQUE REFERENCES sessions (key) ON DELETE CASCADE
) STRICT;

-- The words themselves are stored nowhere else than in their sessions: the index only says which session has which word.
CREATE VIRTUAL TABLE session_words USING fts5 (
    task, tools, calls, errors, content = '', contentless_delete = 1, detail = column);

CREATE TRIGGER forget_words AFTER DELETE ON worded_sessions
BEGIN
    DELETE FROM session_words WHERE rowid = old.id;
END;

-- Filters are answered by the index alone; only the sessions that are shown are read.
DROP INDEX sessions_by_started;
CREATE INDEX sessions_by_started ON sessions (started, key, agent, verdict, project, scope, source);
CREATE INDEX sessions_by_agent ON sessions (agent);

-- What has changed lately, for those who look on.
CREATE INDEX sessions_by_updated ON sessions (updated);
CREATE INDEX showings_by_time ON showings (at);
