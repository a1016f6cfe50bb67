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
INSERT INTO session_words (id, words) VALUES (:id, array_to_tsvector(:words));

-- name: snapshot
-- Another one after every commit.
SELECT hashtextextended(pg_current_snapshot()::text, 0);

-- name: facts
SELECT current_setting('server_version'), current_user,
       (SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
        WHERE relnamespace = to_regnamespace('warmstart') AND relkind = 'r');
