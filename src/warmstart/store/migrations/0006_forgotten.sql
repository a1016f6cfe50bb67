-- Sessions that a person deleted: reading their transcripts again must not bring them back.

CREATE TABLE forgotten (
    key TEXT NOT NULL PRIMARY KEY,  -- sessions.key, a hash
    at  REAL NOT NULL               -- seconds since the epoch
) STRICT, WITHOUT ROWID;
