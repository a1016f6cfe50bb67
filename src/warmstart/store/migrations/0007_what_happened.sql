-- Where a session ran and for whom, and what each call really ended with.

ALTER TABLE sessions ADD COLUMN folder TEXT;                   -- working folder, or what the transcript names instead of it
ALTER TABLE sessions ADD COLUMN root TEXT;                     -- the project's root above that folder; null: unknown
ALTER TABLE sessions ADD COLUMN remote TEXT;                   -- normalised git remote; null: unknown
ALTER TABLE sessions ADD COLUMN scope TEXT NOT NULL DEFAULT ''; -- agent profile, user and chat; '' is the machine's own user

ALTER TABLE calls ADD COLUMN flagged INTEGER;                  -- the transcript's own error flag, where the outcome differs from it
ALTER TABLE calls ADD COLUMN cause TEXT;                       -- of an error: the line that names its cause, redacted
ALTER TABLE calls ADD COLUMN findings TEXT;                    -- JSON list: linter rules, compiler codes, failing tests
ALTER TABLE calls ADD COLUMN words TEXT;                       -- a person's words when they rejected the call, redacted

ALTER TABLE templates ADD COLUMN scope TEXT NOT NULL DEFAULT ''; -- as sessions.scope; '*' where a person shared it

-- Folders and names that stand for a project.
CREATE TABLE project_names (
    name    TEXT NOT NULL PRIMARY KEY, -- a folder, a project or a name that a person gave
    project TEXT NOT NULL,             -- the project's identity: sessions.project
    root    TEXT,                      -- the project's root, where the name is a folder
    by      TEXT NOT NULL,             -- remote, commit, paths, folder (nothing else is known), person
    at      REAL NOT NULL              -- seconds since the epoch
) STRICT, WITHOUT ROWID;

-- The running totals that callers reported last: a counter that falls has started over.
CREATE TABLE live_counters (
    session TEXT NOT NULL,             -- the agent's own id
    agent   TEXT NOT NULL,             -- '' where it is not told
    model   TEXT NOT NULL,             -- '' where the totals are the whole session's
    last    TEXT NOT NULL,             -- JSON: the last total
    base    TEXT NOT NULL,             -- JSON: what was counted before the counter started over
    since   REAL NOT NULL,             -- when it started over; 0: never
    at      REAL NOT NULL,             -- time of the last total
    PRIMARY KEY (session, agent, model)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_folder ON sessions (folder);
CREATE INDEX sessions_by_project ON sessions (project);

UPDATE sessions SET folder = project WHERE project IS NOT NULL;
