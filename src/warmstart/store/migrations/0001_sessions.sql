-- Sessions, their calls, and the files they came from.

CREATE TABLE migrations (
    number  INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    applied REAL NOT NULL           -- seconds since the epoch
) STRICT;

CREATE TABLE sources (
    uri      TEXT PRIMARY KEY,
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode    INTEGER,               -- unsigned 64 bits, kept in signed ones
    reader   INTEGER NOT NULL,      -- whose rules read it; other rules read it again
    read_at  REAL NOT NULL,
    problems TEXT NOT NULL          -- JSON
) STRICT, WITHOUT ROWID;

-- Not WITHOUT ROWID: rows carry kilobytes of JSON, and a key's tree is fast only when its rows are small.
CREATE TABLE sessions (
    key        TEXT NOT NULL PRIMARY KEY,
    id         TEXT NOT NULL,
    format     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    model      TEXT,
    project    TEXT,
    source_uri TEXT NOT NULL,
    task       TEXT,
    started    REAL,
    ended      REAL,
    end_reason TEXT,
    label      INTEGER,
    parent     TEXT,
    messages   INTEGER NOT NULL,
    calls      INTEGER NOT NULL,
    results    INTEGER NOT NULL,
    errors     INTEGER NOT NULL,
    verdict    TEXT NOT NULL,
    quality    REAL NOT NULL,
    confidence REAL NOT NULL,
    category   TEXT NOT NULL,
    task_type  TEXT NOT NULL,
    score      TEXT NOT NULL,       -- JSON
    usage      TEXT,                -- JSON
    digest     TEXT NOT NULL,
    first_seen REAL NOT NULL,
    updated    REAL NOT NULL
) STRICT;

CREATE INDEX sessions_by_started ON sessions (started, key);
CREATE INDEX sessions_by_id ON sessions (id);

CREATE TABLE calls (
    session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    ordinal     INTEGER NOT NULL,
    call_id     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    arguments   TEXT NOT NULL,      -- JSON
    intent      TEXT,
    excerpt     TEXT,
    status      TEXT NOT NULL,
    basis       TEXT NOT NULL,
    error_kind  TEXT,
    at          REAL,
    PRIMARY KEY (session_key, ordinal)
) STRICT, WITHOUT ROWID;
