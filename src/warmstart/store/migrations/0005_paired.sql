-- Experiments that do every task in every arm, instead of drawing an arm for each session.

ALTER TABLE experiments ADD COLUMN design TEXT NOT NULL DEFAULT 'random';  -- random, paired
ALTER TABLE experiments ADD COLUMN horizon REAL;     -- turns within which the first success is awaited; null: the usual window
