-- Where a session runs and whose it is, as the agent's program knew while it ran: its own files do not always record that.
CREATE TABLE session_places (
    session TEXT NOT NULL PRIMARY KEY, -- the agent's own id
    agent   TEXT NOT NULL,
    folder  TEXT,                      -- working folder; null: unknown, or on another machine
    scope   TEXT NOT NULL,             -- whose session it is; empty: the machine's own user in the default profile
    summary TEXT NOT NULL,             -- digest of the summary that the conversation began with; empty: it began without one
    at      REAL NOT NULL              -- seconds since the epoch
) STRICT, WITHOUT ROWID;
