-- Who may see and change what in a team's store. Run it once and after every upgrade, with the role that owns the store:
--   warmstart store roles | psql postgresql://OWNER@HOST/DATABASE
-- The first time that role needs CREATEROLE; or a superuser runs it, and everything belongs to the owner as well. It stops at
-- the first error and then has changed nothing.
--
-- A member is a login role of one person: GRANT warmstart_member TO ann;
-- A machine that only starts sessions warm, and stores no transcripts: GRANT warmstart_hook TO builds;
-- Who sees which project (a role of one person or of a group; '*' is every project that has a name of its own, as remotes have,
-- and no folder): INSERT INTO warmstart.project_access (role, project) VALUES ('ann', 'github.com/acme/shop'), ('leads', '*');
--
-- A member sees everything that she stored, and of the others what belongs to a project that she may see, in the scope of no
-- profile, user or chat; and whatever somebody shared with all. Personal scopes, folders that are no named project, and places on
-- another's disk are never visible. Superusers and roles with BYPASSRLS see all: let nobody work with them.

BEGIN;
SET LOCAL search_path = warmstart;
SET LOCAL client_min_messages = warning;

-- The roles, and then everything as the owner: whoever runs this, the other one can run it again.
DO $$
DECLARE
    keeper name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'warmstart');
    may_create boolean := (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user);
    made text;
BEGIN
    IF keeper IS NULL THEN
        RAISE EXCEPTION 'this database holds no store of Warmstart yet; run a command of Warmstart with its address first';
    END IF;
    IF NOT pg_has_role(current_user, keeper, 'MEMBER') THEN
        RAISE EXCEPTION 'the store belongs to the role %; run this with it, or as a superuser', keeper;
    END IF;
    FOREACH made IN ARRAY ARRAY['warmstart_member', 'warmstart_hook'] LOOP
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = made) THEN
            CONTINUE;
        ELSIF NOT may_create THEN
            RAISE EXCEPTION 'the role % may not create roles; a superuser runs this once, or: ALTER ROLE % CREATEROLE',
                current_user, quote_ident(current_user);
        END IF;
        EXECUTE format('CREATE ROLE %I NOLOGIN', made);
        IF current_user <> keeper THEN
            EXECUTE format('GRANT %I TO %I WITH ADMIN OPTION', made, keeper);
        END IF;
    END LOOP;
    IF current_user <> keeper THEN
        FOR made IN SELECT format('%s %s', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, oid::regclass) FROM pg_class
            WHERE relnamespace = 'warmstart'::regnamespace AND relkind IN ('r', 'v') AND relowner <> quote_ident(keeper)::regrole
            UNION ALL SELECT format('ROUTINE %s', oid::regprocedure) FROM pg_proc
            WHERE pronamespace = 'warmstart'::regnamespace AND proowner <> quote_ident(keeper)::regrole LOOP
            EXECUTE format('ALTER %s OWNER TO %I', made, keeper);
        END LOOP;
        EXECUTE format('SET LOCAL ROLE %I', keeper);
    END IF;
END $$;

CREATE TABLE IF NOT EXISTS project_access (
    role    name NOT NULL,             -- of one person or of a group
    project text COLLATE "C" NOT NULL, -- as `warmstart projects list` names it; '*': every named project
    PRIMARY KEY (role, project)
);

CREATE OR REPLACE FUNCTION seen_projects() RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT a.project FROM warmstart.project_access AS a WHERE pg_has_role(current_user, a.role, 'MEMBER')
$$;

CREATE OR REPLACE FUNCTION sees_all_named() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM warmstart.seen_projects() AS seen (project) WHERE seen.project = '*')
$$;

CREATE OR REPLACE FUNCTION is_folder(project text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT project = '' OR project ~ '^([/~\\]|[A-Za-z]:)'
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA warmstart FROM warmstart_member, warmstart_hook;
GRANT USAGE ON SCHEMA warmstart TO warmstart_member, warmstart_hook;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA warmstart TO warmstart_member, warmstart_hook;
GRANT SELECT ON ALL TABLES IN SCHEMA warmstart TO warmstart_member, warmstart_hook;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA warmstart TO warmstart_member;
REVOKE INSERT, UPDATE, DELETE ON migrations, project_access FROM warmstart_member;
REVOKE UPDATE, DELETE ON decisions, forgotten FROM warmstart_member; -- what was decided stays
REVOKE DELETE ON note_decisions, trials, experiments FROM warmstart_member;

-- A hook opens sessions: it draws arms, keeps seeds and counts uses, and deletes nothing.
GRANT INSERT ON trials, seeds, unmeasured, session_places, showings, occurrences TO warmstart_hook;
GRANT UPDATE (used, last_used) ON templates TO warmstart_hook;
GRANT UPDATE (body) ON seeds TO warmstart_hook;
GRANT UPDATE (summary) ON session_places TO warmstart_hook;

-- The policies of a table: the rows that are seen, those that may be changed or deleted, and those that may be added, if others.
CREATE OR REPLACE PROCEDURE guard(guarded text, seen text, changed text, added text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE warmstart.%I ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('DROP POLICY IF EXISTS seen ON warmstart.%I', guarded);
    EXECUTE format('DROP POLICY IF EXISTS added ON warmstart.%I', guarded);
    EXECUTE format('DROP POLICY IF EXISTS changed ON warmstart.%I', guarded);
    EXECUTE format('DROP POLICY IF EXISTS deleted ON warmstart.%I', guarded);
    EXECUTE format('CREATE POLICY seen ON warmstart.%I FOR SELECT USING (%s)', guarded, seen);
    EXECUTE format('CREATE POLICY added ON warmstart.%I FOR INSERT WITH CHECK (%s)', guarded, coalesce(added, changed));
    EXECUTE format('CREATE POLICY changed ON warmstart.%I FOR UPDATE USING (%s)', guarded, changed);
    EXECUTE format('CREATE POLICY deleted ON warmstart.%I FOR DELETE USING (%s)', guarded, changed);
END $$;

-- Rows with an owner, a scope and a project.
CALL guard('sessions', $$owner = current_user OR scope = '*' OR (scope = '' AND (project IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(project))))$$, 'owner = current_user');
CALL guard('templates', $$owner = current_user OR scope = '*' OR (scope = '' AND (project IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(project))))$$,
    $$owner = current_user OR scope = '*' OR (scope = '' AND (project IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(project))))$$);
CALL guard('notes', $$owner = current_user OR scope = '*' OR (scope = '' AND (project IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(project))))$$,
    $$owner = current_user OR scope = '*' OR (scope = '' AND (project IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(project))))$$);
CALL guard('trials', $$owner = current_user OR (coalesce(json_get(task, '$.scope'), '') = ''
    AND (json_get(task, '$.project') IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(coalesce(json_get(task, '$.project'), '')))))$$,
    $$owner = current_user OR (coalesce(json_get(task, '$.scope'), '') = ''
    AND (json_get(task, '$.project') IN (SELECT seen_projects())
    OR ((SELECT sees_all_named()) AND NOT is_folder(coalesce(json_get(task, '$.project'), '')))))$$);

-- Rows of a session, template, note or trial: whoever sees that sees them.
CALL guard('calls', 'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)',
    'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key AND s.owner = current_user)');
CALL guard('spent', 'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)',
    'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key AND s.owner = current_user)');
CALL guard('digests', 'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)',
    'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)');
CALL guard('unmeasured', 'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)',
    'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)');
CALL guard('worded_sessions', 'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)',
    'EXISTS (SELECT FROM sessions AS s WHERE s.key = session_key)');
CALL guard('session_words', 'EXISTS (SELECT FROM worded_sessions AS w WHERE w.id = session_words.id)',
    'EXISTS (SELECT FROM worded_sessions AS w WHERE w.id = session_words.id)',
    'true'); -- one statement adds a number and its words, and sees only what was there before
CALL guard('examples', 'EXISTS (SELECT FROM templates AS t WHERE t.name = examples.name AND t.version = examples.version)',
    'EXISTS (SELECT FROM templates AS t WHERE t.name = examples.name AND t.version = examples.version)');
CALL guard('postings', 'EXISTS (SELECT FROM examples AS e WHERE e.id = example)',
    'EXISTS (SELECT FROM examples AS e WHERE e.id = example)');
CALL guard('decisions', 'owner = current_user OR EXISTS (SELECT FROM templates AS t WHERE t.name = decisions.name)',
    'owner = current_user');
CALL guard('note_decisions', 'owner = current_user OR EXISTS (SELECT FROM notes AS n WHERE n.id = note)',
    'owner = current_user OR EXISTS (SELECT FROM notes AS n WHERE n.id = note)');
CALL guard('showings', 'owner = current_user OR EXISTS (SELECT FROM notes AS n WHERE n.id = note)',
    'owner = current_user OR EXISTS (SELECT FROM notes AS n WHERE n.id = note)');
CALL guard('occurrences', 'owner = current_user OR EXISTS (SELECT FROM notes AS n WHERE n.id = note)',
    'owner = current_user OR EXISTS (SELECT FROM notes AS n WHERE n.id = note)');
CALL guard('seeds', 'EXISTS (SELECT FROM trials AS t WHERE t.session = seeds.session)',
    'EXISTS (SELECT FROM trials AS t WHERE t.session = seeds.session)');

-- How often words occur: a shelf is a project's, or with a mark (chr(31)) after it a scope's. The shelf '*' counts the words of
-- all projects together, without saying where they are.
CALL guard('terms', $$owner = current_user OR scope = '*' OR scope LIKE '*' || chr(31) || '%' OR (strpos(scope, chr(31)) = 0
    AND (scope IN (SELECT seen_projects()) OR ((SELECT sees_all_named()) AND NOT is_folder(scope))))$$,
    $$owner = current_user OR scope = '*' OR scope LIKE '*' || chr(31) || '%' OR (strpos(scope, chr(31)) = 0
    AND (scope IN (SELECT seen_projects()) OR ((SELECT sees_all_named()) AND NOT is_folder(scope))))$$);

-- What belongs to one person alone.
CALL guard('live_spent', 'owner = current_user', 'owner = current_user');
CALL guard('live_counters', 'owner = current_user', 'owner = current_user');
CALL guard('usage_events', 'owner = current_user', 'owner = current_user');
CALL guard('proposals', 'owner = current_user', 'owner = current_user');
CALL guard('reviews', 'owner = current_user', 'owner = current_user');
CALL guard('session_places', 'owner = current_user', 'owner = current_user');
CALL guard('forgotten', 'true', 'owner = current_user');

DROP PROCEDURE guard;

-- Sessions that a person stored with another role become hers, with everything that follows them: those whose transcripts, and
-- the projects whose folders, lie under a place on her disk. For the owner: CALL warmstart.give_sessions('team', 'ann', '/home/ann/');
CREATE OR REPLACE PROCEDURE give_sessions(giver text, taker text, place text) LANGUAGE plpgsql AS $$
DECLARE
    keys text[];
    ids text[];
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = taker) THEN
        RAISE EXCEPTION 'there is no role %', taker;
    END IF;
    SELECT array_agg(key), array_agg(id) INTO keys, ids FROM warmstart.sessions
    WHERE owner = giver AND (starts_with(source_uri, 'file://' || place) OR starts_with(source_uri, place));
    UPDATE warmstart.sessions SET owner = taker WHERE key = ANY (keys);
    UPDATE warmstart.reviews SET owner = taker WHERE owner = giver AND session_key = ANY (keys);
    UPDATE warmstart.proposals SET owner = taker WHERE owner = giver AND session_key = ANY (keys);
    UPDATE warmstart.session_places SET owner = taker WHERE owner = giver AND session = ANY (ids);
    UPDATE warmstart.live_spent SET owner = taker WHERE owner = giver AND session = ANY (ids);
    UPDATE warmstart.live_counters SET owner = taker WHERE owner = giver AND session = ANY (ids);
    UPDATE warmstart.usage_events SET owner = taker WHERE owner = giver AND session = ANY (ids);
    UPDATE warmstart.trials SET owner = taker WHERE owner = giver AND split_part(session, '#', 1) = ANY (ids);
    UPDATE warmstart.notes SET owner = taker WHERE owner = giver AND starts_with(project, place);
    UPDATE warmstart.templates SET owner = taker WHERE owner = giver AND starts_with(project, place);
    UPDATE warmstart.terms SET owner = taker WHERE owner = giver AND starts_with(scope, place);
    DELETE FROM warmstart.merged_digests WHERE owner IN (giver, taker); -- counted anew
    RAISE NOTICE '% sessions of % belong to % now', coalesce(cardinality(keys), 0), giver, taker;
END $$;
REVOKE ALL ON PROCEDURE give_sessions FROM PUBLIC;
COMMIT;
