-- What makes ingesting one session cost the same in a large store: folders by their index, occurrences and weighings by marks.

-- Each question about folders seeks in one of these, and reads only the folders and not their sessions.
DROP INDEX sessions_by_folder;
CREATE INDEX sessions_by_folder ON sessions (folder, started, key);
CREATE INDEX sessions_by_remote ON sessions (folder, remote, started);
CREATE INDEX sessions_by_place ON sessions (folder, project, root);
DROP INDEX sessions_by_project;
CREATE INDEX sessions_by_project ON sessions (project, coalesce(root, folder));

-- The facts by which each folder was given its project last: while they stay the same, no folder needs a new one.
CREATE TABLE settled_folders (
    folder   TEXT NOT NULL PRIMARY KEY, -- sessions.folder
    project  TEXT NOT NULL,             -- of its sessions
    root     TEXT,                      -- of the project, above the folder; null: unknown
    is_rival INTEGER NOT NULL,          -- 1: the files that its sessions touched are among the facts
    facts    TEXT NOT NULL              -- a hash
) STRICT, WITHOUT ROWID;

-- 1: the occurrence is new, or a transcript that may hold it has changed since it was read.
ALTER TABLE occurrences ADD COLUMN unread INTEGER NOT NULL DEFAULT 1;
CREATE INDEX occurrences_unread ON occurrences (session) WHERE unread = 1;

-- How many trials and occurrences of notes were measured when they were weighed last. One row each.
ALTER TABLE weighings RENAME TO weighings_of_trials;
CREATE TABLE weighings (
    unit    TEXT NOT NULL PRIMARY KEY, -- trial, occurrence
    closed  INTEGER NOT NULL,          -- measured until then, with repetitions
    weighed INTEGER NOT NULL           -- the same number at the last weighing
) STRICT, WITHOUT ROWID;
INSERT INTO weighings (unit, closed, weighed) SELECT 'trial', closed, weighed FROM weighings_of_trials;
DROP TABLE weighings_of_trials;
