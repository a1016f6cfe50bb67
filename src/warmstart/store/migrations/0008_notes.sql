-- What projects know: a digest of each session, the notes that digests add up to, decisions, and what sessions were shown.

CREATE INDEX calls_by_id ON calls (call_id);   -- forks copy the calls of their parent

CREATE TABLE digests (
    session_key TEXT NOT NULL PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    rules       INTEGER NOT NULL,   -- version of the rules that made it
    content     TEXT NOT NULL,      -- sessions.digest at that time
    body        TEXT NOT NULL       -- JSON of notes.digest.Digest
) STRICT;

CREATE TABLE notes (
    id      TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL,          -- sessions.project; '' for a rule of an agent
    scope   TEXT NOT NULL,          -- as sessions.scope; '*' where a person shared it
    kind    TEXT NOT NULL,
    status  TEXT NOT NULL,          -- proposed, active, retired
    body    TEXT NOT NULL,          -- JSON of notes.types.Note
    updated REAL NOT NULL           -- seconds since the epoch
) STRICT;

CREATE INDEX notes_by_project ON notes (project, scope, status);

CREATE TABLE note_decisions (
    id     INTEGER PRIMARY KEY,
    note   TEXT NOT NULL,
    status TEXT NOT NULL,           -- the status that it got
    by     TEXT NOT NULL,           -- person, policy
    reason TEXT NOT NULL,
    at     REAL NOT NULL            -- seconds since the epoch
) STRICT;

CREATE INDEX note_decisions_by_note ON note_decisions (note);

CREATE TABLE showings (
    note    TEXT NOT NULL,
    session TEXT NOT NULL,          -- the agent's own id
    how     TEXT NOT NULL,          -- brief, tell, correct, stop, after
    at      REAL NOT NULL,          -- seconds since the epoch
    PRIMARY KEY (note, session, how)
) STRICT, WITHOUT ROWID;

CREATE INDEX showings_by_session ON showings (session);
