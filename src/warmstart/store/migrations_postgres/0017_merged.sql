-- Described in the file of the same name for SQLite.

ALTER TABLE digests ADD COLUMN figures bytea;   -- msgpack of insights.gather.InsightCounts; null: not made yet

-- Merged counts of 64 sessions, or of 64 times 64, of one project, scope and agent: made when they are first asked for.
CREATE TABLE merged_digests (
    kind        text COLLATE "C" NOT NULL,      -- insights, notes
    project     text COLLATE "C" NOT NULL,      -- sessions.project; '' where it is null
    scope       text COLLATE "C" NOT NULL,
    agent       text COLLATE "C" NOT NULL,
    level       bigint NOT NULL,   -- 1: of sessions, 2: of merged counts
    number      bigint NOT NULL,   -- position among those of its level, from 0
    fingerprint text COLLATE "C" NOT NULL,      -- of the content of its sessions and of the rules; with another one it is made anew
    body        bytea NOT NULL,      -- msgpack
    owner       text COLLATE "C" NOT NULL DEFAULT current_user, -- who sees these sessions; others may see more or fewer
    PRIMARY KEY (kind, project, scope, agent, level, number, owner)
);

ALTER TABLE merged_digests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON merged_digests USING (owner = current_user);
