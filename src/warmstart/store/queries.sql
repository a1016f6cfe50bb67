-- Every statement the store runs on its tables. `-- name: x` begins one. Placeholders stand in the order in which
-- values are bound, which for rows is the order of the struct's fields.

-- name: put_migration
INSERT INTO migrations (number, name, applied) VALUES (:number, :name, unixepoch('subsec'));

-- name: count_tables
SELECT count(*) FROM sqlite_schema;

-- name: put_source
INSERT INTO sources (uri, size, mtime_ns, inode, reader, read_at, problems)
VALUES (:uri, :size, :mtime_ns, :inode, :reader, :read_at, :problems)
ON CONFLICT (uri) DO UPDATE SET
    size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode,
    reader = excluded.reader, read_at = excluded.read_at, problems = excluded.problems;

-- name: source
SELECT uri, size, mtime_ns, inode, reader, read_at, problems FROM sources WHERE uri = :uri;

-- name: sources
SELECT uri, size, mtime_ns, inode, reader, read_at, problems FROM sources ORDER BY uri;

-- name: known_session
SELECT digest, source_uri, messages + calls + results FROM sessions WHERE key = :key;

-- name: move_session
UPDATE sessions SET source_uri = :source_uri WHERE key = :key;

-- name: put_session
-- An update, not a replacement: that would delete the row and, with it, its calls. first_seen stays.
INSERT INTO sessions (
    key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
    messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
    digest, first_seen, updated)
VALUES (
    :key, :id, :format, :agent, :model, :project, :source_uri, :task, :started, :ended, :end_reason, :label, :parent,
    :messages, :calls, :results, :errors, :verdict, :quality, :confidence, :category, :task_type, :score, :usage,
    :digest, :first_seen, :updated)
ON CONFLICT (key) DO UPDATE SET
    id = excluded.id, format = excluded.format, agent = excluded.agent, model = excluded.model,
    project = excluded.project, source_uri = excluded.source_uri, task = excluded.task,
    started = excluded.started, ended = excluded.ended, end_reason = excluded.end_reason,
    label = excluded.label, parent = excluded.parent, messages = excluded.messages, calls = excluded.calls,
    results = excluded.results, errors = excluded.errors, verdict = excluded.verdict,
    quality = excluded.quality, confidence = excluded.confidence, category = excluded.category,
    task_type = excluded.task_type, score = excluded.score, usage = excluded.usage,
    digest = excluded.digest, updated = excluded.updated;

-- name: delete_session
DELETE FROM sessions WHERE key = :key RETURNING key;

-- name: put_call
INSERT INTO calls (
    session_key, ordinal, call_id, tool, arguments, intent, excerpt, status, basis, error_kind, at)
VALUES (:session_key, :ordinal, :call_id, :tool, :arguments, :intent, :excerpt, :status, :basis, :error_kind, :at);

-- name: delete_calls
DELETE FROM calls WHERE session_key = :key;

-- name: calls_of
SELECT session_key, ordinal, call_id, tool, arguments, intent, excerpt, status, basis, error_kind, at
FROM calls WHERE session_key = :key ORDER BY ordinal;

-- name: session_by_key
SELECT key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
       messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
       digest, first_seen, updated
FROM sessions WHERE key = :key;

-- name: keys_by_id
SELECT key, id, agent FROM sessions WHERE id = :id ORDER BY key LIMIT 6;

-- name: keys_by_prefix
-- The last character of Unicode closes the range, so that the indexes answer.
SELECT key, id, agent FROM sessions WHERE key BETWEEN ?1 AND ?1 || char(1114111)
UNION
SELECT key, id, agent FROM sessions WHERE id BETWEEN ?1 AND ?1 || char(1114111)
ORDER BY 1 LIMIT 6;

-- name: list_sessions
SELECT key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
       messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
       digest, first_seen, updated
FROM sessions
WHERE (:agent IS NULL OR agent = :agent)
  AND (:verdict IS NULL OR verdict = :verdict)
  AND (:project IS NULL OR project = :project)
  AND (:since IS NULL OR started >= :since)
ORDER BY started DESC, key DESC
LIMIT :limit OFFSET :offset;

-- name: totals
SELECT agent, format, count(*), sum(calls), sum(errors) FROM sessions GROUP BY agent, format ORDER BY 1, 2;

-- name: count_rows
SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM calls), (SELECT count(*) FROM sources);
