-- Counts of sessions for insights beside those for notes, and the counts of many sessions merged.

ALTER TABLE digests ADD COLUMN figures BLOB;   -- msgpack of insights.gather.InsightCounts; null: not made yet

-- Merged counts of 64 sessions, or of 64 times 64, of one project, scope and agent: made when they are first asked for.
CREATE TABLE merged_digests (
    kind        TEXT NOT NULL,      -- insights, notes
    project     TEXT NOT NULL,      -- sessions.project; '' where it is null
    scope       TEXT NOT NULL,
    agent       TEXT NOT NULL,
    level       INTEGER NOT NULL,   -- 1: of sessions, 2: of merged counts
    number      INTEGER NOT NULL,   -- position among those of its level, from 0
    fingerprint TEXT NOT NULL,      -- of the content of its sessions and of the rules; with another one it is made anew
    body        BLOB NOT NULL,      -- msgpack
    PRIMARY KEY (kind, project, scope, agent, level, number)
) STRICT;
