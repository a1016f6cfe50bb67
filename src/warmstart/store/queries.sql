-- Every statement that the store runs on its tables, for SQLite and PostgreSQL. `-- name: x` begins one. Placeholders are in
-- the order in which values are bound; for rows that is the order of the struct's fields. PostgreSQL gets the same text, with
-- the few words translated that postgres_dialect.py lists; a statement that cannot be said for both is in
-- queries_postgres.sql under the same name. So: NULLS FIRST or LAST wherever a column to order by may be null, ON CONFLICT
-- instead of INSERT OR, names of tables before columns of DO UPDATE, an alias after each subquery.

-- name: put_migration
INSERT INTO migrations (number, name, applied) VALUES (:number, :name, unixepoch('subsec'));

-- name: put_source
INSERT INTO sources (uri, size, mtime_ns, inode, reader, read_at, problems)
VALUES (:uri, :size, :mtime_ns, :inode, :reader, :read_at, :problems)
ON CONFLICT (uri) DO UPDATE SET
    size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode,
    reader = excluded.reader, read_at = excluded.read_at, problems = excluded.problems;

-- name: sources
SELECT uri, size, mtime_ns, inode, reader, read_at, problems FROM sources ORDER BY uri;

-- name: source
SELECT uri, size, mtime_ns, inode, reader, read_at, problems FROM sources WHERE uri = :uri;

-- name: known_session
-- What is stored under a key, null if nothing is, and whether a person deleted it.
SELECT s.digest, s.source_uri, s.messages + s.calls + s.results, f.key IS NOT NULL
FROM (SELECT CAST(:key AS TEXT) AS key) AS w
LEFT JOIN sessions AS s ON s.key = w.key LEFT JOIN forgotten AS f ON f.key = w.key;

-- name: move_session
UPDATE sessions SET source_uri = :source_uri WHERE key = :key;

-- name: put_session
-- An update, because a replacement would delete the row and with it its calls. first_seen stays.
INSERT INTO sessions (
    key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
    messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
    digest, first_seen, updated, turns, folder, root, remote, scope, source)
VALUES (
    :key, :id, :format, :agent, :model, :project, :source_uri, :task, :started, :ended, :end_reason, :label, :parent,
    :messages, :calls, :results, :errors, :verdict, :quality, :confidence, :category, :task_type, :score, :usage,
    :digest, :first_seen, :updated, :turns, :folder, :root, :remote, :scope, :source)
ON CONFLICT (key) DO UPDATE SET
    id = excluded.id, format = excluded.format, agent = excluded.agent, model = excluded.model,
    project = excluded.project, source_uri = excluded.source_uri, task = excluded.task,
    started = excluded.started, ended = excluded.ended, end_reason = excluded.end_reason,
    label = excluded.label, parent = excluded.parent, messages = excluded.messages, calls = excluded.calls,
    results = excluded.results, errors = excluded.errors, verdict = excluded.verdict,
    quality = excluded.quality, confidence = excluded.confidence, category = excluded.category,
    task_type = excluded.task_type, score = excluded.score, usage = excluded.usage,
    digest = excluded.digest, updated = excluded.updated, turns = excluded.turns,
    folder = excluded.folder, root = excluded.root, remote = excluded.remote,
    source = coalesce(excluded.source, sessions.source),
    scope = CASE excluded.scope WHEN '' THEN sessions.scope ELSE excluded.scope END; -- another file may not say whose it is

-- name: delete_session
DELETE FROM sessions WHERE key = :key RETURNING id, agent, source_uri, parent;

-- name: is_source
-- Whether any session was read from a file; sessions of a file of many have its URI and a fragment.
SELECT EXISTS (SELECT 1 FROM sessions WHERE source_uri = ?1 OR substr(source_uri, 1, length(?1) + 1) = ?1 || '#');

-- name: delete_source
DELETE FROM sources WHERE uri = :uri;

-- name: forget_session
INSERT INTO forgotten (key, at) VALUES (:key, :at) ON CONFLICT DO NOTHING;

-- name: is_forgotten
SELECT EXISTS (SELECT 1 FROM forgotten WHERE key = :key);

-- name: delete_proposals_of
DELETE FROM proposals WHERE session_key = :key;

-- name: delete_reviewed
DELETE FROM reviews WHERE session_key = :key;

-- name: put_call
INSERT INTO calls (
    session_key, ordinal, call_id, tool, arguments, intent, excerpt, status, basis, error_kind, at, turn, answered,
    flagged, cause, findings, words, request, asked, closing)
VALUES (
    :session_key, :ordinal, :call_id, :tool, :arguments, :intent, :excerpt, :status, :basis, :error_kind, :at, :turn, :answered,
    :flagged, :cause, :findings, :words, :request, :asked, :closing);

-- name: delete_calls
DELETE FROM calls WHERE session_key = :key;

-- name: calls_of
SELECT session_key, ordinal, call_id, tool, arguments, intent, excerpt, status, basis, error_kind, at, turn, answered,
       flagged, cause, findings, words, request, asked, closing
FROM calls WHERE session_key = :key ORDER BY ordinal;

-- name: call_at
SELECT session_key, ordinal, call_id, tool, arguments, intent, excerpt, status, basis, error_kind, at, turn, answered,
       flagged, cause, findings, words, request, asked, closing
FROM calls WHERE session_key = :key AND ordinal = :ordinal;

-- name: last_call
SELECT tool, status, cause FROM calls WHERE session_key = :key ORDER BY ordinal DESC LIMIT 1;

-- name: changed_sessions
SELECT key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
       messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
       digest, first_seen, updated, turns, folder, root, remote, scope, source
FROM sessions WHERE updated >= :since ORDER BY updated LIMIT 200;

-- name: new_showings
SELECT note, session, how, at FROM showings WHERE at >= :since AND how <> 'wrong' ORDER BY at LIMIT 200;

-- name: showings_in
SELECT note, session, how, at FROM showings WHERE session = :session AND how <> 'wrong' ORDER BY at, note;

-- name: occurrences_in
SELECT note, withheld, action, failed, worked, call_id FROM occurrences WHERE session = :session ORDER BY at, note;

-- name: first_intent
SELECT intent FROM calls WHERE session_key = :key AND intent IS NOT NULL ORDER BY ordinal LIMIT 1;

-- name: search_calls
-- ?1: a pattern for texts; ?2: the same for JSON. LIKE ignores the case of ASCII letters.
SELECT calls.session_key, calls.ordinal FROM calls JOIN sessions ON sessions.key = calls.session_key
WHERE (?3 IS NULL OR calls.tool = ?3) AND (?4 = 0 OR calls.status = 'error')
  AND (calls.arguments LIKE ?2 ESCAPE '\' OR calls.excerpt LIKE ?1 ESCAPE '\' OR calls.intent LIKE ?1 ESCAPE '\'
       OR calls.cause LIKE ?1 ESCAPE '\' OR calls.findings LIKE ?2 ESCAPE '\' OR calls.words LIKE ?1 ESCAPE '\')
ORDER BY sessions.started DESC NULLS LAST, calls.session_key DESC, calls.ordinal;

-- name: agent_list
WITH RECURSIVE agents (agent) AS (
    SELECT min(agent) FROM sessions
    UNION ALL
    SELECT (SELECT min(s.agent) FROM sessions AS s WHERE s.agent > a.agent) FROM agents AS a WHERE a.agent IS NOT NULL)
SELECT agent FROM agents WHERE agent IS NOT NULL LIMIT 100;

-- name: project_list
-- Each step seeks the next value in the index, because there are few projects and many sessions.
WITH RECURSIVE projects (project) AS (
    SELECT min(project) FROM sessions
    UNION ALL
    SELECT (SELECT min(s.project) FROM sessions AS s WHERE s.project > p.project) FROM projects AS p
    WHERE p.project IS NOT NULL)
SELECT project FROM projects WHERE project IS NOT NULL LIMIT 500;

-- name: forget_words
DELETE FROM worded_sessions WHERE session_key = :key;

-- name: number_session
-- Numbers follow the time at which sessions started, so that the index lists the newest first. Each second has 4096 of them;
-- `later` takes those of a later second where they are used up.
INSERT INTO worded_sessions (id, session_key)
SELECT coalesce((SELECT max(w.id) + 1 FROM worded_sessions AS w WHERE w.id >= b.first AND w.id < b.first + 4096), b.first), b.key
FROM (SELECT key, (CASE WHEN started > 9e9 THEN 9000000000 WHEN started > 0 THEN CAST(started AS BIGINT) ELSE 0 END + ?2)
                  * 4096 AS first
      FROM sessions WHERE key = ?1) AS b
WHERE NOT EXISTS (SELECT 1 FROM worded_sessions AS w WHERE w.id = b.first + 4095)
RETURNING id;

-- name: index_words
-- Of a call its tool, the beginning of its arguments, its purpose, and of an error the cause. The escapes of JSON end words.
-- One statement for many sessions, in the order of their numbers: the index writes its words at every savepoint, which a
-- statement is too, and before every smaller number.
INSERT INTO session_words (rowid, task, tools, calls, errors)
SELECT w.id, s.task,
       (SELECT group_concat(DISTINCT c.tool) FROM calls AS c WHERE c.session_key = s.key),
       (SELECT group_concat(replace(replace(replace(substr(c.arguments, 1, 1000), '\n', ' '), '\t', ' '), '\r', ' ')
                            || ' ' || coalesce(substr(c.intent, 1, 400), ''), ' ')
        FROM calls AS c WHERE c.session_key = s.key),
       (SELECT group_concat(coalesce(c.error_kind, '') || ' ' || coalesce(c.cause, '') || ' ' || coalesce(c.findings, '')
                            || ' ' || coalesce(c.words, ''), ' ')
        FROM calls AS c WHERE c.session_key = s.key AND c.status NOT IN ('ok', 'unknown'))
FROM worded_sessions AS w JOIN sessions AS s ON s.key = w.session_key
WHERE w.id IN (SELECT value FROM json_each(:numbers)) ORDER BY w.id;

-- name: drop_deleted_words
-- Otherwise the words of deleted sessions stay in the index until it is merged.
INSERT INTO session_words (session_words) VALUES ('optimize');

-- name: unworded_sessions
SELECT s.key FROM sessions AS s WHERE NOT EXISTS (SELECT 1 FROM worded_sessions AS w WHERE w.session_key = s.key)
LIMIT :most;

-- name: count_unworded
SELECT (SELECT count(*) FROM sessions) - (SELECT count(*) FROM worded_sessions);

-- name: count_matches
SELECT count(*) FROM session_words WHERE session_words MATCH :words;

-- name: worded_keys
-- The index gives the newest first, so that the search ends as soon as enough are found. CROSS JOIN keeps the order of the tables.
SELECT w.session_key FROM session_words AS f CROSS JOIN worded_sessions AS w ON w.id = f.rowid
WHERE f.session_words MATCH ?1 ORDER BY f.rowid DESC LIMIT ?2 OFFSET ?3;

-- name: filtered_worded_keys
SELECT w.session_key FROM session_words AS f CROSS JOIN worded_sessions AS w ON w.id = f.rowid
CROSS JOIN sessions AS s ON s.key = w.session_key
WHERE f.session_words MATCH ?1 AND f.rowid >= 4096 * CASE WHEN ?5 > 9e9 THEN 9000000000 WHEN ?5 > 0 THEN CAST(?5 AS BIGINT) ELSE 0 END
  AND (?2 IS NULL OR s.agent = ?2) AND (?3 IS NULL OR s.verdict = ?3) AND (?4 IS NULL OR s.project = ?4)
  AND (?5 IS NULL OR s.started >= ?5) AND (?6 IS NULL OR s.scope = ?6) AND (?7 IS NULL OR s.source = ?7)
ORDER BY f.rowid DESC LIMIT ?8;

-- name: project_worded_keys
-- The same for a project with few sessions: theirs are gathered first, and what the words find is looked up among them.
SELECT w.session_key FROM session_words AS f CROSS JOIN worded_sessions AS w ON w.id = f.rowid
WHERE f.session_words MATCH ?1 AND +f.rowid IN (
    SELECT o.id FROM sessions AS s CROSS JOIN worded_sessions AS o ON o.session_key = s.key
    WHERE s.project = ?4 AND (?2 IS NULL OR s.agent = ?2) AND (?3 IS NULL OR s.verdict = ?3)
      AND (?5 IS NULL OR s.started >= ?5) AND (?6 IS NULL OR s.scope = ?6) AND (?7 IS NULL OR s.source = ?7))
ORDER BY f.rowid DESC LIMIT ?8;

-- name: count_project
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE project = :project LIMIT :most) AS found;

-- name: count_sessions
SELECT count(*) FROM sessions
WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR verdict = ?2) AND (?3 IS NULL OR project = ?3)
  AND (?4 IS NULL OR started >= ?4) AND (?5 IS NULL OR source = ?5);

-- name: session_by_key
SELECT key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
       messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
       digest, first_seen, updated, turns, folder, root, remote, scope, source
FROM sessions WHERE key = :key;

-- name: keys_by_id
SELECT key, id, agent FROM sessions WHERE id = :id ORDER BY key LIMIT 6;

-- name: keys_by_prefix
-- The last character of Unicode ends the range, so that the indexes are used.
SELECT key, id, agent FROM (SELECT key, id, agent FROM sessions WHERE key BETWEEN ?1 AND ?1 || char(1114111) ORDER BY key LIMIT 6) AS by_key
UNION
SELECT key, id, agent FROM (SELECT key, id, agent FROM sessions WHERE id BETWEEN ?1 AND ?1 || char(1114111) ORDER BY id LIMIT 6) AS by_id
ORDER BY 1 LIMIT 6;

-- name: list_sessions
SELECT key, id, format, agent, model, project, source_uri, task, started, ended, end_reason, label, parent,
       messages, calls, results, errors, verdict, quality, confidence, category, task_type, score, usage,
       digest, first_seen, updated, turns, folder, root, remote, scope, source
FROM sessions
WHERE (:agent IS NULL OR agent = :agent)
  AND (:verdict IS NULL OR verdict = :verdict)
  AND (:project IS NULL OR project = :project)
  AND (:since IS NULL OR started >= :since)
  AND (:source IS NULL OR source = :source)
ORDER BY started DESC NULLS LAST, key DESC
LIMIT :limit OFFSET :offset;

-- name: count_rows
-- Of the sources, files that are no transcripts do not count; they have no list of problems.
SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM calls), (SELECT count(*) FROM sources WHERE problems NOT LIKE '"%');

-- name: put_template
INSERT INTO templates (
    name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope)
VALUES (
    :name, :version, :name_key, :status, :reason, :category, :task_type, :project, :strength, :body, :digest, :created,
    :used, :last_used, :effect, :scope);

-- name: template
SELECT name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope
FROM templates WHERE name = :name AND version = :version;

-- name: template_versions
-- By the key that names that look alike share, latest version first.
SELECT name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope
FROM templates WHERE name_key = :name_key ORDER BY version DESC;

-- name: latest_version
SELECT max(version) FROM templates WHERE name_key = :name_key;

-- name: list_templates
SELECT name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope
FROM templates
WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR category = ?2) AND (?3 IS NULL OR task_type = ?3)
ORDER BY name, version;

-- name: active_of_kind
-- Strongest first; among equals the least used.
SELECT name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope
FROM templates WHERE status = 'active' AND category = :category AND project = :project AND scope = :scope
ORDER BY strength DESC, used, name;

-- name: best_templates
-- For a task without words: active templates that match, strongest first; among equals the least used.
SELECT name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope
FROM templates
WHERE status = 'active' AND (?1 IS NULL OR category = ?1) AND (?2 IS NULL OR task_type = ?2)
  AND (scope = '*' OR (scope = ?5 AND (?3 IS NULL OR project = ?3 OR project = '')))
ORDER BY strength DESC, used, name LIMIT ?4;

-- name: set_status
UPDATE templates SET status = :status, reason = :reason WHERE name = :name AND version = :version;

-- name: set_scope
UPDATE templates SET scope = :scope WHERE name = :name AND version = :version;

-- name: delete_template
DELETE FROM templates WHERE name_key = :name_key RETURNING name, version;

-- name: delete_version
DELETE FROM templates WHERE name = :name AND version = :version;

-- name: delete_example
DELETE FROM examples WHERE id = :id;

-- name: set_body
UPDATE templates SET body = :body WHERE name = :name AND version = :version;

-- name: set_facts
UPDATE templates SET body = :body, strength = :strength WHERE name = :name AND version = :version;

-- name: set_example
UPDATE examples SET body = :body WHERE id = :id;

-- name: put_decision
INSERT INTO decisions (name, version, status, by, reason, at)
VALUES (:name, :version, :status, :by, :reason, :at);

-- name: decisions_of
SELECT name, version, status, by, reason, at FROM decisions WHERE name = :name ORDER BY id;

-- name: put_example
INSERT INTO examples (name, version, ordinal, tool, body, costs, further)
VALUES (:name, :version, :ordinal, :tool, :body, :costs, :further);

-- name: examples_of
SELECT id, name, version, ordinal, tool, body, costs, further FROM examples
WHERE name = :name AND version = :version ORDER BY ordinal;

-- name: templates_of
-- The templates of examples, given by id.
SELECT e.id, e.name, e.version FROM json_each(?) AS wanted JOIN examples AS e ON e.id = CAST(wanted.value AS BIGINT);

-- name: examples_with_kind
-- The examples of templates, given as ["name", version] pairs, with the columns that filters need.
SELECT e.id, e.name, e.version, e.ordinal, e.tool, e.body, e.costs, e.further, t.category, t.task_type, t.used, t.body,
       t.effect, t.project, t.scope
FROM json_each(?) AS wanted
JOIN templates AS t ON t.name = json_extract(wanted.value, '$[0]') AND t.version = CAST(json_extract(wanted.value, '$[1]') AS BIGINT)
JOIN examples AS e ON e.name = t.name AND e.version = t.version AND e.further = 0
ORDER BY e.name, e.version, e.ordinal;

-- name: examples_by_id
-- Examples given by id, with the columns that filters need.
SELECT e.id, e.name, e.version, e.ordinal, e.tool, e.body, e.costs, e.further, t.category, t.task_type, t.used, t.body,
       t.effect, t.project, t.scope
FROM json_each(?) AS wanted
JOIN examples AS e ON e.id = CAST(wanted.value AS BIGINT)
JOIN templates AS t ON t.name = e.name AND t.version = e.version;

-- name: put_posting
INSERT INTO postings (scope, term, example, weight) VALUES (:scope, :term, :example, :weight);

-- name: count_term
INSERT INTO terms (scope, term, examples) VALUES (:scope, :term, 1)
ON CONFLICT (scope, term) DO UPDATE SET examples = terms.examples + 1;

-- name: uncount_terms
UPDATE terms SET examples = examples - 1
WHERE (scope, term) IN (SELECT scope, term FROM postings WHERE example = :example);

-- name: uncount_example
UPDATE terms SET examples = examples - 1
WHERE term = '' AND scope IN (SELECT scope FROM postings WHERE example = :example);

-- name: is_indexed
SELECT EXISTS (SELECT 1 FROM postings WHERE example = :example);

-- name: delete_postings
DELETE FROM postings WHERE example = :example;

-- name: frequencies
SELECT scope, term, examples FROM terms
WHERE scope IN (SELECT value FROM json_each(?)) AND term IN (SELECT value FROM json_each(?));

-- name: postings_of
SELECT example, weight FROM postings WHERE scope = :scope AND term = :term LIMIT :most;

-- name: trial
SELECT session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
       chosen, chosen_at, left_out
FROM trials WHERE session = :session;

-- name: hidden_trials
-- Trials of sessions whose ids were redacted, so that they cannot be distinguished.
SELECT session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
       chosen, chosen_at, left_out
FROM trials WHERE instr(session, '{{SECRET:') > 0;

-- name: put_trial
INSERT INTO trials (session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
                    chosen, chosen_at, left_out)
VALUES (:session, :arm, :picks, :task, :at, :experiment, :assignment, :propensities, :parent, :transcript, :measures, :closed,
        :chosen, :chosen_at, :left_out);

-- name: seed
SELECT body FROM seeds WHERE session = :session AND dialect = :dialect;

-- name: put_seed
INSERT INTO seeds (session, dialect, body) VALUES (:session, :dialect, :body);

-- name: seeds_of
-- The seeds of a session and of its parts (see trials_of_session).
SELECT session, dialect, body FROM seeds
WHERE session = :session OR (session > :session || '#' AND session < :session || '$');

-- name: set_seed
UPDATE seeds SET body = :body WHERE session = :session AND dialect = :dialect;

-- name: session_place
SELECT session, agent, folder, scope, summary, at FROM session_places WHERE session = :session AND agent = :agent;

-- name: put_session_place
INSERT INTO session_places (session, agent, folder, scope, summary, at)
VALUES (:session, :agent, :folder, :scope, :summary, :at)
ON CONFLICT (session) DO UPDATE SET summary = excluded.summary WHERE session_places.summary = '';

-- name: delete_session_place
DELETE FROM session_places WHERE session = :session AND agent = :agent;

-- name: count_use
UPDATE templates SET used = used + 1, last_used = :at WHERE name = :name AND version = :version;

-- name: recent_trials
SELECT session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
       chosen, chosen_at, left_out
FROM trials ORDER BY at DESC LIMIT :limit;

-- name: count_trials
SELECT count(*) FROM trials;

-- name: template_totals
SELECT t.status, t.category, t.task_type, count(*), coalesce(sum(t.used), 0),
       coalesce(sum((SELECT count(*) FROM examples e WHERE e.name = t.name AND e.version = t.version AND e.further = 0)), 0)
FROM templates t GROUP BY t.status, t.category, t.task_type;

-- name: templates_from_session
-- An example whose body is not JSON belongs to no session; json_extract alone would fail for all.
SELECT DISTINCT name, version FROM examples
WHERE further = 0 AND CASE WHEN json_valid(body) THEN json_extract(body, '$.session') END = :session;

-- name: further_from_session
SELECT id FROM examples
WHERE further = 1 AND CASE WHEN json_valid(body) THEN json_extract(body, '$.session') END = :session;

-- name: put_effect
UPDATE templates SET effect = :effect WHERE name = :name AND version = :version;

-- name: trials_of
SELECT session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
       chosen, chosen_at, left_out
FROM trials WHERE experiment = :experiment ORDER BY at, session;

-- name: trials_of_session
-- Also the trials that add to the session in the same conversation, which are called `session#part`.
SELECT session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
       chosen, chosen_at, left_out
FROM trials
WHERE session = :session OR transcript = :key OR (session > :session || '#' AND session < :session || '$');

-- name: trials_mentioning
SELECT session, arm, picks, task, at, experiment, assignment, propensities, parent, transcript, measures, closed,
       chosen, chosen_at, left_out
FROM trials WHERE instr(picks, :key) > 0;

-- name: set_picks
UPDATE trials SET picks = :picks WHERE session = :session;

-- name: choose_arm
-- The drawn arm stays as it is.
UPDATE trials SET chosen = :arm, chosen_at = :at WHERE session = :session;

-- name: delete_seeds
DELETE FROM seeds WHERE session = :session;

-- name: has_marked
-- Whether there is anything that a new session could make to be measured or read again.
SELECT EXISTS (SELECT 1 FROM trials), EXISTS (SELECT 1 FROM occurrences);

-- name: mark_unmeasured
-- The session itself if a trial is about it, and sessions with a trial that began with a copy of its first call.
INSERT INTO unmeasured (session_key)
SELECT s.key FROM sessions AS s
WHERE s.key = ?1
  AND (EXISTS (SELECT 1 FROM trials AS t WHERE t.session = s.id) OR EXISTS (SELECT 1 FROM trials AS t WHERE t.transcript = s.key))
UNION
SELECT o.session_key FROM calls AS c JOIN calls AS o ON o.call_id = c.call_id AND o.session_key <> c.session_key
WHERE c.session_key = ?1 AND c.ordinal = 0
  AND EXISTS (SELECT 1 FROM trials AS t WHERE t.transcript = o.session_key)
ON CONFLICT DO NOTHING;

-- name: mark_transcripts
-- The transcripts that were there before the trial of their session.
INSERT INTO unmeasured (session_key) SELECT key FROM sessions WHERE id = :session ON CONFLICT DO NOTHING;

-- name: closable_trials
-- A trial with a transcript is measured again when that transcript has changed; others match by session id.
-- CROSS JOIN keeps the order: few sessions are unmeasured, and there may be many trials.
SELECT t.session, s.key, s.agent, t.task
FROM unmeasured AS u CROSS JOIN sessions AS s ON s.key = u.session_key CROSS JOIN trials AS t ON t.transcript = s.key
WHERE t.transcript IS NOT NULL
UNION ALL
SELECT t.session, s.key, s.agent, t.task
FROM unmeasured AS u CROSS JOIN sessions AS s ON s.key = u.session_key CROSS JOIN trials AS t ON t.session = s.id
WHERE t.transcript IS NULL
  AND NOT EXISTS (SELECT 1 FROM trials AS o WHERE o.transcript = s.key AND o.transcript IS NOT NULL)
ORDER BY 1, 2;

-- name: clear_unmeasured
DELETE FROM unmeasured;

-- name: has_unmeasured
SELECT EXISTS (SELECT 1 FROM unmeasured);

-- name: close_trial
UPDATE trials SET transcript = :transcript, measures = :measures, left_out = :left_out, closed = :closed
WHERE session = :session;

-- name: trial_of_transcript
SELECT session FROM trials WHERE transcript = :key;

-- name: count_closed
INSERT INTO weighings (unit, closed, weighed) VALUES (:unit, :number, 0)
ON CONFLICT (unit) DO UPDATE SET closed = weighings.closed + excluded.closed RETURNING closed, weighed;

-- name: weighings
SELECT closed, weighed FROM weighings WHERE unit = :unit;

-- name: set_weighed
UPDATE weighings SET weighed = closed WHERE unit = :unit;

-- name: repeated_calls
-- Calls of a session that an earlier session made in the same words, that session's id, and whether it is the parent.
SELECT DISTINCT c.call_id, e.id, e.id IS NOT DISTINCT FROM s.parent FROM sessions AS s JOIN calls AS c ON c.session_key = s.key
JOIN calls AS o ON o.call_id = c.call_id AND o.session_key <> c.session_key AND o.tool = c.tool AND o.arguments = c.arguments
JOIN sessions AS e ON e.key = o.session_key
WHERE s.key = :key
  AND (e.started < s.started OR (coalesce(e.started, s.started) IS NULL AND (e.first_seen, e.key) < (s.first_seen, s.key)));

-- name: seed_tokens
-- The sum over its parts (see trials_of_session); per part the maximum over dialects.
SELECT sum(tokens) FROM (
    SELECT max(CASE WHEN json_valid(body) THEN json_extract(body, '$.tokens') END) AS tokens FROM seeds
    WHERE session = :session OR (session > :session || '#' AND session < :session || '$') GROUP BY session) AS parts;

-- name: treated_sessions
-- Sessions that got a seed with content, in any of their parts (see trials_of_session), advice, or a seed before a person
-- chose that they go on cold.
SELECT CASE WHEN instr(session, '#') > 0 THEN substr(session, 1, instr(session, '#') - 1) ELSE session END FROM seeds
WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.tokens') END > 0
UNION
SELECT session FROM seeds WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.tokens') END > 0
UNION
SELECT session FROM showings WHERE how NOT IN ('wrong', 'brief')
UNION
SELECT session FROM trials WHERE chosen IS NOT NULL AND arm <> 'cold';

-- name: running_experiment
SELECT name, arms, shares, metric, salt, after, floor, started, stopped, design, horizon FROM experiments WHERE stopped IS NULL;

-- name: experiments
SELECT name, arms, shares, metric, salt, after, floor, started, stopped, design, horizon FROM experiments ORDER BY started DESC, name;

-- name: experiment
SELECT name, arms, shares, metric, salt, after, floor, started, stopped, design, horizon FROM experiments WHERE name = :name;

-- name: put_experiment
INSERT INTO experiments (name, arms, shares, metric, salt, after, floor, started, stopped, design, horizon)
VALUES (:name, :arms, :shares, :metric, :salt, :after, :floor, :started, :stopped, :design, :horizon);

-- name: stop_experiment
UPDATE experiments SET stopped = :at WHERE name = :name AND stopped IS NULL;

-- name: error_history
SELECT coalesce(ended, started), project, model, category, scope, errors, results FROM sessions
WHERE coalesce(ended, started) IS NOT NULL ORDER BY 1;

-- name: session_starts
SELECT s.key, s.started, s.project, s.task,
       count(*) FILTER (WHERE c.status = 'error'), count(*) FILTER (WHERE c.status IN ('ok', 'error'))
FROM sessions AS s LEFT JOIN calls AS c ON c.session_key = s.key AND c.turn <= :window
WHERE s.parent IS NULL AND s.turns IS NOT NULL
GROUP BY s.key ORDER BY s.started NULLS FIRST, s.key;

-- name: set_shares
UPDATE experiments SET shares = :shares WHERE name = :name;

-- name: session_keys
-- Earliest first; sessions without a start time come before all others.
SELECT key FROM sessions
WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR project = ?2) AND (?3 IS NULL OR started >= ?3)
  AND (?4 IS NULL OR verdict = ?4) AND (?5 IS NULL OR source = ?5)
ORDER BY started NULLS FIRST, key;

-- name: put_spent
INSERT INTO spent (session_key, model, day, input, output, cache_read, cache_write, reasoning, cost, basis)
VALUES (:session_key, :model, :day, :input, :output, :cache_read, :cache_write, :reasoning, :cost, :basis);

-- name: delete_spent
DELETE FROM spent WHERE session_key = :key;

-- name: spent_of
SELECT session_key, model, day, input, output, cache_read, cache_write, reasoning, cost, basis
FROM spent WHERE session_key = :key ORDER BY model, day;

-- name: all_spent
SELECT session_key, model, day, input, output, cache_read, cache_write, reasoning, cost, basis
FROM spent ORDER BY session_key, model, day;

-- name: usage_facts
SELECT key, id, agent, model, project, coalesce(started, ended) FROM sessions ORDER BY key;

-- name: put_live
INSERT INTO live_spent (
    session, agent, model, project, day, input, output, cache_read, cache_write, reasoning, cost, updated)
VALUES (
    :session, :agent, :model, :project, :day, :input, :output, :cache_read, :cache_write, :reasoning, :cost, :updated)
ON CONFLICT (session, agent, model, day) DO UPDATE SET
    project = coalesce(excluded.project, live_spent.project), input = excluded.input, output = excluded.output,
    cache_read = excluded.cache_read, cache_write = excluded.cache_write, reasoning = excluded.reasoning,
    cost = excluded.cost, updated = excluded.updated;

-- name: live_of
SELECT session, agent, model, project, day, input, output, cache_read, cache_write, reasoning, cost, updated
FROM live_spent WHERE session = :session ORDER BY updated, agent, model, day;

-- name: all_live
SELECT session, agent, model, project, day, input, output, cache_read, cache_write, reasoning, cost, updated
FROM live_spent ORDER BY session, updated, agent, model, day;

-- name: name_live_agent
UPDATE live_spent SET agent = :agent WHERE session = :session AND agent = '';

-- name: name_live_model
UPDATE live_spent SET model = :model WHERE session = :session AND agent = :agent AND model = '';

-- name: delete_live
DELETE FROM live_spent WHERE session = ?1 AND (agent = ?2 OR agent = '');

-- name: live_counter
SELECT session, agent, model, last, base, since, at FROM live_counters
WHERE session = :session AND agent = :agent AND model = :model;

-- name: put_live_counter
INSERT INTO live_counters (session, agent, model, last, base, since, at)
VALUES (:session, :agent, :model, :last, :base, :since, :at)
ON CONFLICT (session, agent, model) DO UPDATE SET
    last = excluded.last, base = excluded.base, since = excluded.since, at = excluded.at;

-- name: delete_named_counters
-- The totals of an agent that those without an agent are about to replace.
DELETE FROM live_counters WHERE session = ?2 AND agent = ?1
  AND model IN (SELECT o.model FROM live_counters AS o WHERE o.session = ?2 AND o.agent = '');

-- name: name_counter_agent
UPDATE live_counters SET agent = :agent WHERE session = :session AND agent = '';

-- name: delete_live_counters
DELETE FROM live_counters WHERE session = ?1 AND (agent = ?2 OR agent = '');

-- name: put_usage_event
INSERT INTO usage_events (session, event, at) VALUES (:session, :event, :at) ON CONFLICT DO NOTHING RETURNING event;

-- name: put_proposal
INSERT INTO proposals (
    id, digest, kind, action, target, summary, body, cites, suspicions, status, reason, write_origin, execution_context,
    session, session_key, source, parent, platform, tool_call, created, decided, decided_by)
VALUES (
    :id, :digest, :kind, :action, :target, :summary, :body, :cites, :suspicions, :status, :reason, :write_origin, :execution_context,
    :session, :session_key, :source, :parent, :platform, :tool_call, :created, :decided, :decided_by)
ON CONFLICT (digest) DO NOTHING RETURNING id;

-- name: proposals
SELECT id, digest, kind, action, target, summary, body, cites, suspicions, status, reason, write_origin, execution_context,
    session, session_key, source, parent, platform, tool_call, created, decided, decided_by
FROM proposals WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR session_key = ?2) ORDER BY created, id;

-- name: proposals_by_prefix
SELECT id, digest, kind, action, target, summary, body, cites, suspicions, status, reason, write_origin, execution_context,
    session, session_key, source, parent, platform, tool_call, created, decided, decided_by
FROM proposals WHERE substr(id, 1, length(?1)) = ?1 ORDER BY created, id LIMIT 6;

-- name: decide_proposal
UPDATE proposals SET status = :status, reason = :reason, decided = :decided, decided_by = :decided_by
WHERE id = :id AND status = 'waiting' RETURNING id;

-- name: reviewed_steps
SELECT steps FROM reviews WHERE session_key = :key;

-- name: put_reviewed
INSERT INTO reviews (session_key, steps, at) VALUES (:key, :steps, :at)
ON CONFLICT (session_key) DO UPDATE SET
    steps = CASE WHEN reviews.steps > excluded.steps THEN reviews.steps ELSE excluded.steps END, at = excluded.at;

-- name: put_digest
INSERT INTO digests (session_key, rules, content, body, figures) VALUES (:session_key, :rules, :content, :body, :figures)
ON CONFLICT (session_key) DO UPDATE
SET rules = excluded.rules, content = excluded.content, body = excluded.body, figures = excluded.figures;

-- name: digested_sessions
-- In the order in which they were first stored, which no later session changes.
SELECT s.key, coalesce(s.project, ''), s.scope, s.agent, s.started, s.digest,
       CASE WHEN d.rules = ?1 AND d.content = s.digest THEN 1 ELSE 0 END
FROM sessions AS s LEFT JOIN digests AS d ON d.session_key = s.key
WHERE (?2 IS NULL OR s.project = ?2) AND (?3 IS NULL OR s.agent = ?3) ORDER BY s.first_seen, s.key;

-- name: body_of_digest
SELECT body FROM digests WHERE session_key = :key;

-- name: figures_of_digest
SELECT figures FROM digests WHERE session_key = :key;

-- name: merged_digest
SELECT fingerprint, body FROM merged_digests
WHERE kind = ?1 AND project = ?2 AND scope = ?3 AND agent = ?4 AND level = ?5 AND number = ?6;

-- name: put_merged_digest
INSERT INTO merged_digests (kind, project, scope, agent, level, number, fingerprint, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (kind, project, scope, agent, level, number) DO UPDATE
SET fingerprint = excluded.fingerprint, body = excluded.body;

-- name: forget_merged
DELETE FROM merged_digests WHERE agent = :agent;

-- name: note_projects
-- Projects with sessions, each with its scope and the agents seen there.
SELECT project, scope, count(*) FROM sessions WHERE project IS NOT NULL GROUP BY project, scope ORDER BY project, scope;

-- name: digests_of
-- In order of time. A session whose digest is missing, older than the session or made by other rules has a null body.
SELECT s.key, CASE WHEN d.rules = ?3 AND d.content = s.digest THEN d.body END
FROM sessions AS s LEFT JOIN digests AS d ON d.session_key = s.key
WHERE s.project = ?1 AND s.scope = ?2 ORDER BY s.started NULLS FIRST, s.key;

-- name: copied_calls
-- Calls of a session that an earlier session made: a fork copies its parent's. Short ids repeat by chance.
SELECT DISTINCT c.call_id FROM calls AS c
JOIN calls AS o ON o.call_id = c.call_id AND o.session_key <> c.session_key
JOIN sessions AS s ON s.key = c.session_key
JOIN sessions AS e ON e.key = o.session_key
WHERE c.session_key = :key AND length(c.call_id) > 15 AND (coalesce(e.started, 0), e.key) < (coalesce(s.started, 0), s.key);

-- name: put_note
INSERT INTO notes (id, project, scope, kind, status, body, updated)
VALUES (:id, :project, :scope, :kind, :status, :body, :updated)
ON CONFLICT (id) DO UPDATE SET
    project = excluded.project, scope = excluded.scope, kind = excluded.kind, status = excluded.status,
    body = excluded.body, updated = excluded.updated;

-- name: notes
SELECT id, body FROM notes
WHERE (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR scope = ?2) AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR status = ?4)
ORDER BY project, kind, id;

-- name: notes_by_prefix
SELECT id, body FROM notes WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 6;

-- name: delete_note
DELETE FROM notes WHERE id = :id;

-- name: put_note_decision
INSERT INTO note_decisions (note, status, by, reason, at) VALUES (:note, :status, :by, :reason, :at);

-- name: note_decisions
SELECT note, status, by, reason, at FROM note_decisions WHERE note = :note ORDER BY id;

-- name: notes_decided_by_person
SELECT note, status FROM note_decisions AS d
WHERE by = 'person' AND id = (SELECT max(id) FROM note_decisions AS l WHERE l.note = d.note AND l.by = 'person');

-- name: put_showing
INSERT INTO showings (note, session, how, at) VALUES (:note, :session, :how, :at) ON CONFLICT DO NOTHING;

-- name: showings
-- Notes that the disk contradicted ('wrong') were not shown.
SELECT note, session, how, at FROM showings WHERE (?1 IS NULL OR note = ?1) AND how <> 'wrong' ORDER BY at, session;

-- name: project_roots
-- Each step seeks the next value in the index, because there are few roots and many sessions.
WITH RECURSIVE roots (root) AS (
    SELECT (SELECT coalesce(s.root, s.folder) FROM sessions AS s
            WHERE s.project = ?1 AND coalesce(s.root, s.folder) IS NOT NULL ORDER BY coalesce(s.root, s.folder) LIMIT 1)
    UNION ALL
    SELECT (SELECT coalesce(s.root, s.folder) FROM sessions AS s
            WHERE s.project = ?1 AND coalesce(s.root, s.folder) > r.root ORDER BY coalesce(s.root, s.folder) LIMIT 1)
    FROM roots AS r WHERE r.root IS NOT NULL)
SELECT root FROM roots WHERE root IS NOT NULL;

-- name: project_folders
SELECT DISTINCT project, scope, coalesce(root, folder) FROM sessions
WHERE project IS NOT NULL AND coalesce(root, folder) IS NOT NULL ORDER BY 1, 2, 3;

-- name: project_names
SELECT name, project, root, by, at FROM project_names ORDER BY name;

-- name: put_project_name
INSERT INTO project_names (name, project, root, by, at) VALUES (:name, :project, :root, :by, :at)
ON CONFLICT (name) DO UPDATE SET
    at = CASE WHEN (project_names.project, project_names.by) = (excluded.project, excluded.by)
              THEN project_names.at ELSE excluded.at END,
    project = excluded.project, root = excluded.root, by = excluded.by;

-- name: delete_project_name
DELETE FROM project_names WHERE name = :name;

-- name: folder_remotes
-- The folders of all sessions, each with null and with the remotes that transcripts record, the latest last.
-- Each step seeks the next value in an index, because there are few folders and many sessions.
WITH RECURSIVE folders (folder) AS (
    SELECT min(folder) FROM sessions
    UNION ALL
    SELECT (SELECT min(s.folder) FROM sessions AS s WHERE s.folder > f.folder) FROM folders AS f WHERE f.folder IS NOT NULL),
remotes (folder, remote) AS (
    SELECT f.folder, (SELECT min(s.remote) FROM sessions AS s WHERE s.folder = f.folder AND s.remote IS NOT NULL)
    FROM folders AS f WHERE f.folder IS NOT NULL
    UNION ALL
    SELECT r.folder, (SELECT min(s.remote) FROM sessions AS s WHERE s.folder = r.folder AND s.remote > r.remote)
    FROM remotes AS r WHERE r.remote IS NOT NULL)
SELECT r.folder, r.remote FROM remotes AS r ORDER BY r.folder,
    coalesce((SELECT max(s.started) FROM sessions AS s WHERE s.folder = r.folder AND s.remote = r.remote), 0), r.remote NULLS FIRST;

-- name: unplaced_folders
-- Folders are found as in folder_remotes.
WITH RECURSIVE folders (folder) AS (
    SELECT min(folder) FROM sessions
    UNION ALL
    SELECT (SELECT min(s.folder) FROM sessions AS s WHERE s.folder > f.folder) FROM folders AS f WHERE f.folder IS NOT NULL)
SELECT EXISTS (
    SELECT 1 FROM folders AS f
    WHERE f.folder IS NOT NULL AND (
        NOT EXISTS (SELECT 1 FROM project_names AS n WHERE n.name = f.folder)
        OR EXISTS (SELECT 1 FROM sessions AS s WHERE s.folder = f.folder AND s.project IS NULL)));

-- name: folder_calls
-- The calls of a folder's earliest sessions, so that the same history gives the same answer.
SELECT c.tool, c.arguments FROM calls AS c
WHERE c.session_key IN (SELECT key FROM sessions WHERE folder = ?1 ORDER BY started NULLS FIRST, key LIMIT ?2) AND c.status <> 'error'
ORDER BY c.session_key, c.ordinal;

-- name: misplaced_sessions
-- The sessions of a folder (?1) that are not in its project (?2) or have not its root (?3), by project.
-- Ranges on both sides of a value use the index; "IS NOT" would read all sessions of the folder.
SELECT project, count(*) FROM (
    SELECT project FROM sessions WHERE folder = ?1 AND project IS NULL
    UNION ALL SELECT project FROM sessions WHERE folder = ?1 AND project < ?2
    UNION ALL SELECT project FROM sessions WHERE folder = ?1 AND project > ?2
    UNION ALL SELECT project FROM sessions WHERE folder = ?1 AND project = ?2 AND root < ?3
    UNION ALL SELECT project FROM sessions WHERE folder = ?1 AND project = ?2 AND root > ?3
    UNION ALL SELECT project FROM sessions WHERE ?3 IS NULL AND folder = ?1 AND project = ?2 AND root IS NOT NULL
    UNION ALL SELECT project FROM sessions WHERE ?3 IS NOT NULL AND folder = ?1 AND project = ?2 AND root IS NULL) AS misplaced
GROUP BY project;

-- name: settled_folders
SELECT folder, project, root, is_rival, facts FROM settled_folders;

-- name: settled_folder
SELECT folder, project, root, is_rival, facts FROM settled_folders WHERE folder = :folder;

-- name: put_settled_folder
INSERT INTO settled_folders (folder, project, root, is_rival, facts) VALUES (:folder, :project, :root, :is_rival, :facts)
ON CONFLICT (folder) DO UPDATE SET
    project = excluded.project, root = excluded.root, is_rival = excluded.is_rival, facts = excluded.facts;

-- name: forget_settled_folders
DELETE FROM settled_folders;

-- name: remotes_of_folder
-- As folder_remotes, the latest last.
WITH RECURSIVE remotes (remote) AS (
    SELECT min(remote) FROM sessions WHERE folder = ?1 AND remote IS NOT NULL
    UNION ALL
    SELECT (SELECT min(s.remote) FROM sessions AS s WHERE s.folder = ?1 AND s.remote > r.remote)
    FROM remotes AS r WHERE r.remote IS NOT NULL)
SELECT r.remote FROM remotes AS r WHERE r.remote IS NOT NULL ORDER BY
    coalesce((SELECT max(s.started) FROM sessions AS s WHERE s.folder = ?1 AND s.remote = r.remote), 0), r.remote;

-- name: place_sessions
UPDATE sessions SET project = :project, root = :root WHERE folder = :folder;

-- name: project_scopes
SELECT scope, count(*) FROM sessions WHERE project = :project GROUP BY scope ORDER BY scope;

-- name: session_scopes
SELECT DISTINCT scope FROM sessions ORDER BY scope;

-- name: list_projects
SELECT project, folder, count(*), max(coalesce(ended, started)) FROM sessions
WHERE project IS NOT NULL GROUP BY project, folder ORDER BY project, folder NULLS FIRST;

-- name: known_projects
-- Notes and templates may have come from others, before the first session.
SELECT DISTINCT project FROM sessions WHERE project IS NOT NULL
UNION SELECT DISTINCT project FROM templates WHERE project <> ''
UNION SELECT DISTINCT project FROM notes WHERE project <> '' ORDER BY 1;

-- name: is_known_project
SELECT EXISTS (SELECT 1 FROM sessions WHERE project = ?1) OR EXISTS (SELECT 1 FROM templates WHERE project = ?1)
    OR EXISTS (SELECT 1 FROM notes WHERE project = ?1);

-- name: has_sessions_of
SELECT EXISTS (SELECT 1 FROM sessions WHERE project = :project);

-- name: templates_of_project
SELECT name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created, used, last_used, effect, scope
FROM templates WHERE project = :project ORDER BY name, version;

-- name: projects_of_sessions
-- The projects of sessions, given by key, the most frequent first.
SELECT s.project FROM json_each(?) AS wanted JOIN sessions AS s ON s.key = wanted.value
WHERE s.project IS NOT NULL GROUP BY s.project ORDER BY count(*) DESC, s.project;

-- name: set_template_project
UPDATE templates SET project = :project, body = :body WHERE name = :name AND version = :version;

-- name: weights_of
SELECT term, max(weight) FROM postings WHERE example = :example GROUP BY term;

-- name: move_live
-- To the project of the session itself, where its transcript is known.
UPDATE live_spent SET project = coalesce(
    (SELECT max(s.project) FROM sessions AS s WHERE s.id = live_spent.session AND live_spent.agent IN (s.agent, '')), ?1)
WHERE project = ?2;

-- name: move_trials
UPDATE trials SET task = json_set(task, '$.project', coalesce(
    (SELECT s.project FROM sessions AS s WHERE s.key = trials.transcript),
    (SELECT max(s.project) FROM sessions AS s WHERE s.id = trials.session), ?1))
WHERE json_valid(task) AND json_extract(task, '$.project') = ?2;

-- name: notes_of_project
SELECT id, scope, body FROM notes WHERE project = :project ORDER BY id;

-- name: rename_note
UPDATE notes SET id = :id, project = :project, body = :body
WHERE id = :old AND NOT EXISTS (SELECT 1 FROM notes AS o WHERE o.id = :id);

-- name: rename_showings
UPDATE showings SET note = :id
WHERE note = :old
  AND NOT EXISTS (SELECT 1 FROM showings AS o WHERE o.note = :id AND o.session = showings.session AND o.how = showings.how);

-- name: rename_note_decisions
UPDATE note_decisions SET note = :id WHERE note = :old;

-- name: delete_showings
DELETE FROM showings WHERE note = :note;

-- name: delete_digests_in
-- Digests hold paths relative to the root, so a session with another root needs a new one.
DELETE FROM digests WHERE session_key IN (SELECT key FROM sessions WHERE folder = :folder);

-- name: latest_roots
SELECT root FROM sessions WHERE project = ?1 AND root IS NOT NULL
GROUP BY root ORDER BY max(coalesce(started, 0)) DESC, root LIMIT ?2;

-- name: sessions_shown
-- Each note with the sessions that were shown it; the key is null while no transcript of the session is stored.
SELECT DISTINCT h.note, h.session, s.key FROM showings AS h LEFT JOIN sessions AS s ON s.id = h.session
WHERE h.how <> 'wrong';

-- name: stopped_calls
-- Calls that our hooks stopped, by the mark in their result; several in one turn cost it once.
SELECT count(*), count(DISTINCT session_key), count(DISTINCT session_key || ' ' || coalesce(turn, -ordinal - 1))
FROM calls WHERE status = 'denied' AND instr(excerpt, ?1) > 0;

-- name: put_occurrence
INSERT INTO occurrences (note, session, experiment, withheld, share, action, expected, call_id, at)
VALUES (:note, :session, :experiment, :withheld, :share, :action, :expected, :call_id, :at) ON CONFLICT DO NOTHING;

-- name: occurrences
SELECT note, session, experiment, withheld, share, action, expected, call_id, at, failed, worked FROM occurrences
WHERE (?1 IS NULL OR note = ?1) AND (?2 IS NULL OR experiment = ?2) ORDER BY at, session, note;

-- name: has_unread
SELECT EXISTS (SELECT 1 FROM occurrences WHERE unread = 1);

-- name: mark_unread
-- The occurrences of a session that has changed, and of its parent: a subagent's call is in its own transcript.
UPDATE occurrences SET unread = 1 WHERE session IN (:session, :parent);

-- name: clear_unread
UPDATE occurrences SET unread = 0 WHERE unread = 1;

-- name: unread_occurrences
-- A subagent's call is in its own transcript, which names the session as its parent.
SELECT o.note, o.session, o.experiment, o.withheld, o.share, o.action, o.expected, o.call_id, o.at, o.failed, o.worked,
       s.key, s.digest
FROM occurrences AS o JOIN sessions AS s ON s.key = coalesce(
    (SELECT c.session_key FROM calls AS c JOIN sessions AS m ON m.key = c.session_key
     WHERE o.call_id <> '' AND c.call_id = o.call_id AND (m.id = o.session OR m.parent = o.session)
     ORDER BY coalesce(m.started, 0), m.key LIMIT 1),
    (SELECT m.key FROM sessions AS m WHERE m.id = o.session ORDER BY coalesce(m.started, 0), m.key LIMIT 1))
WHERE o.unread = 1 AND (o.transcript IS DISTINCT FROM s.key OR o.content IS DISTINCT FROM s.digest)
ORDER BY s.key, o.at;

-- name: close_occurrence
UPDATE occurrences SET failed = :failed, worked = :worked, transcript = :transcript, content = :content
WHERE note = :note AND session = :session;

-- name: rename_occurrences
UPDATE occurrences SET note = :id
WHERE note = :old AND NOT EXISTS (SELECT 1 FROM occurrences AS o WHERE o.note = :id AND o.session = occurrences.session);

-- name: delete_occurrences
DELETE FROM occurrences WHERE note = :note;

-- name: occurrences_in_brief
SELECT o.note, o.session FROM occurrences AS o JOIN showings AS h ON h.note = o.note AND h.session = o.session AND h.how = 'brief';

-- name: notes_retired_by
SELECT note FROM note_decisions AS d
WHERE by = :by AND status = 'retired' AND id = (SELECT max(id) FROM note_decisions AS l WHERE l.note = d.note);
