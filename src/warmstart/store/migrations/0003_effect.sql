-- What became of sessions that were given a seed or kept cold, who decided which, and what sessions cost.

ALTER TABLE sessions ADD COLUMN turns INTEGER;       -- answers of the agent; null where read before this was counted
ALTER TABLE calls ADD COLUMN turn INTEGER;           -- in which of them, from 1
ALTER TABLE calls ADD COLUMN answered REAL;          -- when its result came, seconds since the epoch

ALTER TABLE templates ADD COLUMN effect TEXT;        -- JSON of model.Effect: what it did to sessions that it was shown to

ALTER TABLE trials ADD COLUMN experiment TEXT NOT NULL DEFAULT '';         -- '' is the standing holdout
ALTER TABLE trials ADD COLUMN assignment TEXT NOT NULL DEFAULT 'unknown';  -- random, choice, inherited; unknown: before this schema
ALTER TABLE trials ADD COLUMN propensities TEXT NOT NULL DEFAULT '{}';     -- JSON: arm -> how probable it was
ALTER TABLE trials ADD COLUMN parent TEXT;           -- session whose arm it keeps
ALTER TABLE trials ADD COLUMN transcript TEXT;       -- sessions.key; null: missing so far
ALTER TABLE trials ADD COLUMN measures TEXT;         -- JSON of model.Measures
ALTER TABLE trials ADD COLUMN closed REAL;           -- when the transcript was last read

CREATE INDEX trials_by_experiment ON trials (experiment, at);
CREATE INDEX trials_by_transcript ON trials (transcript) WHERE transcript IS NOT NULL;

CREATE TABLE experiments (
    name    TEXT NOT NULL PRIMARY KEY,
    arms    TEXT NOT NULL,           -- JSON: arm -> share, as it was started
    shares  TEXT NOT NULL,           -- JSON: arm -> share, as new sessions are given it now
    metric  TEXT NOT NULL,
    salt    TEXT NOT NULL,           -- with a session's id it decides the arm
    after   TEXT NOT NULL,           -- once there is a verdict: fixed, thompson
    floor   REAL NOT NULL,           -- the control's least share then
    started REAL NOT NULL,
    stopped REAL
) STRICT;

CREATE UNIQUE INDEX one_experiment_runs ON experiments ((stopped IS NULL)) WHERE stopped IS NULL;

-- Tokens of a session by model and day, as its transcript tells.
CREATE TABLE spent (
    session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    model       TEXT NOT NULL,       -- '' where it is not told
    day         TEXT NOT NULL,       -- UTC, 2026-11-16; '' where it is not told
    input       INTEGER,             -- null is unknown, here and below
    output      INTEGER,
    cache_read  INTEGER,
    cache_write INTEGER,
    reasoning   INTEGER,
    cost        REAL,                -- US dollars
    basis       TEXT NOT NULL,       -- reported, estimated
    PRIMARY KEY (session_key, model, day)
) STRICT, WITHOUT ROWID;

-- The same as callers report it while the session runs.
CREATE TABLE live_spent (
    session     TEXT NOT NULL,       -- the agent's own id
    agent       TEXT NOT NULL,       -- '' where it is not told
    model       TEXT NOT NULL,
    project     TEXT,
    day         TEXT NOT NULL,
    input       INTEGER,
    output      INTEGER,
    cache_read  INTEGER,
    cache_write INTEGER,
    reasoning   INTEGER,
    cost        REAL,
    updated     REAL NOT NULL,
    PRIMARY KEY (session, agent, model, day)
) STRICT, WITHOUT ROWID;

-- Reports already counted: sent again they change nothing.
CREATE TABLE usage_events (
    session TEXT NOT NULL,
    event   TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (session, event)
) STRICT, WITHOUT ROWID;
