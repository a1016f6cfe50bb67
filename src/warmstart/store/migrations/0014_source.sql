-- The place that an agent ran a session for (Hermes: cli, telegram, cron ...), so that one can learn from it alone.
ALTER TABLE sessions ADD COLUMN source TEXT; -- null: the transcript does not say
CREATE INDEX sessions_by_source ON sessions (source) WHERE source IS NOT NULL;
