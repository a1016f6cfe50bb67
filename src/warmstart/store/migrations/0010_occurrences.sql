-- Trials of notes: at the first call of a session that a note would speak at, its advice is shown or withheld at random.

CREATE TABLE occurrences (
    note       TEXT NOT NULL,
    session    TEXT NOT NULL,          -- the agent's own id
    experiment TEXT NOT NULL,          -- '' is the standing holdout
    withheld   INTEGER NOT NULL,       -- 1: withheld, 0: shown
    share      REAL NOT NULL,          -- probability of being withheld
    action     TEXT NOT NULL,          -- that was or would have been taken: tell, correct, stop, after
    expected   REAL,                   -- failure rate without the note, from history before the draw; null: unknown
    call_id    TEXT NOT NULL,          -- '' where the agent names none
    at         REAL NOT NULL,          -- seconds since the epoch
    failed     INTEGER,                -- whether the call or its retry failed; null: not known
    worked     INTEGER,                -- whether a later call of the same tool worked; null: not known
    transcript TEXT,                   -- sessions.key that was read; null: none so far
    content    TEXT,                   -- sessions.digest at that time
    PRIMARY KEY (note, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX occurrences_by_session ON occurrences (session);
