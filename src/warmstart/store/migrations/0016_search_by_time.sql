-- The index numbers sessions by the time at which they started, so that it lists the newest first. Stored sessions are
-- indexed anew by the next ingest.
DROP TRIGGER forget_words;
DELETE FROM worded_sessions;
INSERT INTO session_words (session_words) VALUES ('delete-all');
CREATE TRIGGER forget_words AFTER DELETE ON worded_sessions
BEGIN
    DELETE FROM session_words WHERE rowid = old.id;
END;
