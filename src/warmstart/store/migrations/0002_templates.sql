-- Templates in versions, their examples and the index that finds them, decisions, and what sessions were given.

CREATE TABLE templates (
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    name_key   TEXT NOT NULL,          -- names that look alike have the same
    status     TEXT NOT NULL,          -- proposed, active, retired
    reason     TEXT NOT NULL,          -- why it has that status
    category   TEXT NOT NULL,
    task_type  TEXT NOT NULL,
    project    TEXT NOT NULL,          -- '' for any project
    strength   REAL NOT NULL,          -- to find the weakest by
    body       TEXT NOT NULL,          -- JSON of model.Template without its examples
    digest     TEXT NOT NULL,          -- of the content: learning the same again makes no new version
    created    REAL NOT NULL,
    used       INTEGER NOT NULL DEFAULT 0,
    last_used  REAL,
    PRIMARY KEY (name, version)
) STRICT;

CREATE INDEX templates_by_key ON templates (name_key, version);
CREATE INDEX templates_by_kind ON templates (status, category, project);

CREATE TABLE examples (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL,
    version   INTEGER NOT NULL,
    ordinal   INTEGER NOT NULL,
    tool      TEXT NOT NULL,
    body      TEXT NOT NULL,           -- JSON of model.Example
    costs     TEXT NOT NULL,           -- JSON: dialect -> tokens
    FOREIGN KEY (name, version) REFERENCES templates (name, version) ON DELETE CASCADE
) STRICT;

CREATE UNIQUE INDEX examples_by_place ON examples (name, version, ordinal);

-- The words of active templates' examples. A scope is a project, '' for those of none, '*' for all together.
CREATE TABLE postings (
    scope   TEXT NOT NULL,
    term    TEXT NOT NULL,
    example INTEGER NOT NULL REFERENCES examples (id) ON DELETE CASCADE,
    weight  REAL NOT NULL,             -- how much the example is about the word, before how rare it is
    PRIMARY KEY (scope, term, example)
) STRICT, WITHOUT ROWID;

CREATE INDEX postings_by_example ON postings (example);

CREATE TABLE terms (
    scope    TEXT NOT NULL,
    term     TEXT NOT NULL,            -- '' counts the examples themselves
    examples INTEGER NOT NULL,         -- in how many the word stands
    PRIMARY KEY (scope, term)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    status  TEXT NOT NULL,             -- what it became
    by      TEXT NOT NULL,             -- "person" or the policy
    reason  TEXT NOT NULL,
    at      REAL NOT NULL
) STRICT;

CREATE INDEX decisions_by_name ON decisions (name, version);

CREATE TABLE trials (
    session   TEXT NOT NULL PRIMARY KEY,
    arm       TEXT NOT NULL,           -- warm, cold
    picks     TEXT NOT NULL,           -- JSON: the examples given, with template and version
    task      TEXT NOT NULL,           -- JSON of model.Task, redacted
    at        REAL NOT NULL
) STRICT;

CREATE INDEX trials_by_time ON trials (at);

-- The exact bytes a session was given, one a dialect.
CREATE TABLE seeds (
    session TEXT NOT NULL REFERENCES trials (session) ON DELETE CASCADE,
    dialect TEXT NOT NULL,
    body    TEXT NOT NULL,             -- JSON of model.Seed
    PRIMARY KEY (session, dialect)
) STRICT, WITHOUT ROWID;
