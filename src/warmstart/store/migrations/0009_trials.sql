-- What enters a comparison: the drawn arm is kept, one transcript closes one trial, and closing is incremental.

ALTER TABLE trials ADD COLUMN chosen TEXT;      -- arm that a person chose after the draw; null: the drawn one was given
ALTER TABLE trials ADD COLUMN chosen_at REAL;   -- when, seconds since the epoch
ALTER TABLE trials ADD COLUMN left_out TEXT;    -- why a measured session is not compared: earlier; null: it is compared

-- Sessions that are new or changed since a trial was measured with them.
CREATE TABLE unmeasured (
    session_key TEXT NOT NULL PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- How many trials were measured when templates were weighed last. At most one row.
CREATE TABLE weighings (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    closed INTEGER NOT NULL,        -- trials measured until then, with repetitions
    weighed INTEGER NOT NULL        -- the same number at the last weighing
) STRICT;

-- Earlier versions let several trials share a transcript: the session's own trial keeps it, otherwise the first one.
UPDATE trials SET transcript = NULL, measures = NULL, closed = NULL
WHERE transcript IS NOT NULL AND session <> (
    SELECT o.session FROM trials AS o LEFT JOIN sessions AS s ON s.key = o.transcript
    WHERE o.transcript = trials.transcript ORDER BY o.session = s.id DESC, o.at, o.session LIMIT 1);

DROP INDEX trials_by_transcript;
CREATE UNIQUE INDEX trials_by_transcript ON trials (transcript) WHERE transcript IS NOT NULL;

-- Trials are measured again, without the calls from before they began.
INSERT INTO unmeasured (session_key)
SELECT s.key FROM sessions AS s
WHERE EXISTS (SELECT 1 FROM trials AS t WHERE t.transcript = s.key OR t.session = s.id);
