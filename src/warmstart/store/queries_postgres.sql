-- The statements of PostgreSQL alone. One of the same name in queries.sql is replaced; keep this file short.

-- name: put_migration
INSERT INTO migrations (number, name, applied) VALUES (:number, :name, extract(epoch FROM clock_timestamp()));

-- name: latest_version
-- Also those of others, which this role may not see: a version is never given twice.
SELECT latest_version(:name_key);

-- name: session_texts
-- The texts whose words are searched, as index_words of SQLite reads them.
SELECT s.task,
       (SELECT string_agg(DISTINCT c.tool, ' ') FROM calls AS c WHERE c.session_key = s.key),
       (SELECT string_agg(replace(replace(replace(substr(c.arguments, 1, 1000), '\n', ' '), '\t', ' '), '\r', ' ')
                          || ' ' || coalesce(substr(c.intent, 1, 400), ''), ' ')
        FROM calls AS c WHERE c.session_key = s.key),
       (SELECT string_agg(coalesce(c.error_kind, '') || ' ' || coalesce(c.cause, '') || ' ' || coalesce(c.findings, '')
                          || ' ' || coalesce(c.words, ''), ' ')
        FROM calls AS c WHERE c.session_key = s.key AND c.status NOT IN ('ok', 'unknown'))
FROM sessions AS s WHERE s.key = :key;

-- name: index_words
-- Also number_session, in one statement: each costs a way to the server and back.
WITH numbered AS (
    INSERT INTO worded_sessions (id, session_key)
    SELECT coalesce((SELECT max(w.id) + 1 FROM worded_sessions AS w WHERE w.id >= b.first AND w.id < b.first + 4096), b.first), b.key
    FROM (SELECT key, (CASE WHEN started > 9e9 THEN 9000000000 WHEN started > 0 THEN CAST(started AS BIGINT) ELSE 0 END + ?2)
                      * 4096 AS first
          FROM sessions WHERE key = ?1) AS b
    WHERE NOT EXISTS (SELECT 1 FROM worded_sessions AS w WHERE w.id = b.first + 4095)
    RETURNING id),
worded AS (INSERT INTO session_words (id, words) SELECT id, array_to_tsvector(?3) FROM numbered)
SELECT id FROM numbered;

-- name: snapshot
-- Another one after every commit.
SELECT hashtextextended(pg_current_snapshot()::text, 0);

-- name: facts
SELECT current_setting('server_version'), current_user,
       (SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
        WHERE relnamespace = to_regnamespace('warmstart') AND relkind = 'r');

-- name: session_owner
SELECT owner FROM sessions WHERE key = :key;
