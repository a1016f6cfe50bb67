-- What reviews of sessions want to keep, who decided about it, and how far they have looked.

CREATE TABLE proposals (
    id                TEXT NOT NULL PRIMARY KEY, -- 128 random bits
    digest            TEXT NOT NULL UNIQUE,      -- of what it says: the same is not proposed twice, even after a no
    kind              TEXT NOT NULL,             -- memory, skill, template
    action            TEXT NOT NULL,             -- add, replace, remove; create, edit, patch, delete; propose
    target            TEXT NOT NULL,             -- memory or user; the name of a skill or template
    summary           TEXT NOT NULL,             -- one line, redacted
    body              TEXT NOT NULL,             -- JSON, redacted: what is to be written
    cites             TEXT NOT NULL,             -- JSON: numbers of the steps that show it, from 1
    suspicions        TEXT NOT NULL,             -- JSON: why a person must look, whatever the policy says
    status            TEXT NOT NULL,             -- waiting, applied, discarded
    reason            TEXT NOT NULL,             -- why it has that status
    write_origin      TEXT NOT NULL,             -- what wanted it
    execution_context TEXT NOT NULL,             -- where that ran
    session           TEXT NOT NULL,             -- the agent's own id
    session_key       TEXT NOT NULL,             -- as sessions.key; the session need not be remembered
    source            TEXT NOT NULL,             -- the transcript; '' where there is none
    parent            TEXT,                      -- session that started that session
    platform          TEXT NOT NULL,             -- cli, telegram, ...; the agent where that is not told
    tool_call         TEXT,                      -- id of the review's own call; null: no model made it
    created           REAL NOT NULL,             -- seconds since the epoch
    decided           REAL,
    decided_by        TEXT                       -- person, policy:review
) STRICT;

CREATE INDEX proposals_by_status ON proposals (status, created);
CREATE INDEX proposals_by_session ON proposals (session_key);

-- How far a session has been reviewed.
CREATE TABLE reviews (
    session_key TEXT NOT NULL PRIMARY KEY,
    steps       INTEGER NOT NULL,
    at          REAL NOT NULL
) STRICT, WITHOUT ROWID;
