-- The whole schema of the SQLite migrations up to 0016, where its columns are described; later ones have a file here under
-- the same name. What differs: texts collate as "C", which orders them as SQLite does; columns that may be null come first in
-- an index, as in SQLite; `owner` is the role that stored a row, for the policies of row-level security (roles.sql).

-- Functions that SQLite has and PostgreSQL lacks. A text that is no JSON has no value; it must not stop the others.
CREATE FUNCTION is_json(body text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM body::json;
    RETURN body IS NOT NULL;
EXCEPTION WHEN others THEN
    RETURN false;
END $$;

CREATE FUNCTION json_get(body text, path text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN body::json #>> string_to_array(btrim(path, '$.[]'), '.');
EXCEPTION WHEN others THEN
    RETURN NULL;
END $$;

CREATE FUNCTION json_number(body text, path text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN json_get(body, path) ~ '^-?[0-9]{1,18}$' THEN json_get(body, path)::bigint END
$$;

CREATE FUNCTION json_put(body text, path text, value text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN jsonb_set(body::jsonb, string_to_array(btrim(path, '$.[]'), '.'), coalesce(to_jsonb(value), 'null'))::text;
EXCEPTION WHEN others THEN
    RETURN body;
END $$;

-- NUL, which no column holds, stands for a character that no word has.
CREATE FUNCTION json_list(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20 AS $$
    SELECT json_array_elements_text(replace(list, '\u0000', '\ufffd')::json)
$$;

CREATE TABLE migrations (
    number  bigint PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    applied double precision NOT NULL
);

CREATE TABLE sources (
    uri      text COLLATE "C" NOT NULL,
    size     bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    inode    bigint,
    reader   bigint NOT NULL,
    read_at  double precision NOT NULL,
    problems text COLLATE "C" NOT NULL,
    owner    text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (uri, owner)
);

CREATE TABLE sessions (
    key        text COLLATE "C" PRIMARY KEY,
    id         text COLLATE "C" NOT NULL,
    format     text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    model      text COLLATE "C",
    project    text COLLATE "C",
    source_uri text COLLATE "C" NOT NULL,
    task       text COLLATE "C",
    started    double precision,
    ended      double precision,
    end_reason text COLLATE "C",
    label      bigint,
    parent     text COLLATE "C",
    messages   bigint NOT NULL,
    calls      bigint NOT NULL,
    results    bigint NOT NULL,
    errors     bigint NOT NULL,
    verdict    text COLLATE "C" NOT NULL,
    quality    double precision NOT NULL,
    confidence double precision NOT NULL,
    category   text COLLATE "C" NOT NULL,
    task_type  text COLLATE "C" NOT NULL,
    score      text COLLATE "C" NOT NULL,
    usage      text COLLATE "C",
    digest     text COLLATE "C" NOT NULL,
    first_seen double precision NOT NULL,
    updated    double precision NOT NULL,
    turns      bigint,
    folder     text COLLATE "C",
    root       text COLLATE "C",
    remote     text COLLATE "C",
    scope      text COLLATE "C" NOT NULL DEFAULT '',
    source     text COLLATE "C",
    owner      text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE calls (
    session_key text COLLATE "C" NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    ordinal     bigint NOT NULL,
    call_id     text COLLATE "C" NOT NULL,
    tool        text COLLATE "C" NOT NULL,
    arguments   text COLLATE "C" NOT NULL,
    intent      text COLLATE "C",
    excerpt     text COLLATE "C",
    status      text COLLATE "C" NOT NULL,
    basis       text COLLATE "C" NOT NULL,
    error_kind  text COLLATE "C",
    at          double precision,
    turn        bigint,
    answered    double precision,
    flagged     bigint,
    cause       text COLLATE "C",
    findings    text COLLATE "C",
    words       text COLLATE "C",
    request     bigint,
    asked       text COLLATE "C",
    closing     text COLLATE "C",
    PRIMARY KEY (session_key, ordinal)
);

CREATE TABLE templates (
    name      text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    name_key  text COLLATE "C" NOT NULL,
    status    text COLLATE "C" NOT NULL,
    reason    text COLLATE "C" NOT NULL,
    category  text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    project   text COLLATE "C" NOT NULL,
    strength  double precision NOT NULL,
    body      text COLLATE "C" NOT NULL,
    digest    text COLLATE "C" NOT NULL,
    created   double precision NOT NULL,
    used      bigint NOT NULL DEFAULT 0,
    last_used double precision,
    effect    text COLLATE "C",
    scope     text COLLATE "C" NOT NULL DEFAULT '',
    owner     text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (name, version)
);

CREATE TABLE examples (
    id      bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    ordinal bigint NOT NULL,
    tool    text COLLATE "C" NOT NULL,
    body    text COLLATE "C" NOT NULL,
    costs   text COLLATE "C" NOT NULL,
    further bigint NOT NULL DEFAULT 0,
    FOREIGN KEY (name, version) REFERENCES templates (name, version) ON DELETE CASCADE
);

CREATE TABLE postings (
    scope   text COLLATE "C" NOT NULL,
    term    text COLLATE "C" NOT NULL,
    example bigint NOT NULL REFERENCES examples (id) ON DELETE CASCADE,
    weight  double precision NOT NULL,
    PRIMARY KEY (scope, term, example)
);

CREATE TABLE terms (
    scope    text COLLATE "C" NOT NULL,
    term     text COLLATE "C" NOT NULL,
    examples bigint NOT NULL,
    owner    text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (scope, term)
);

CREATE TABLE decisions (
    id      bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    status  text COLLATE "C" NOT NULL,
    by      text COLLATE "C" NOT NULL,
    reason  text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE trials (
    session      text COLLATE "C" PRIMARY KEY,
    arm          text COLLATE "C" NOT NULL,
    picks        text COLLATE "C" NOT NULL,
    task         text COLLATE "C" NOT NULL,
    at           double precision NOT NULL,
    experiment   text COLLATE "C" NOT NULL DEFAULT '',
    assignment   text COLLATE "C" NOT NULL DEFAULT 'unknown',
    propensities text COLLATE "C" NOT NULL DEFAULT '{}',
    parent       text COLLATE "C",
    transcript   text COLLATE "C",
    measures     text COLLATE "C",
    closed       double precision,
    chosen       text COLLATE "C",
    chosen_at    double precision,
    left_out     text COLLATE "C",
    owner        text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE seeds (
    session text COLLATE "C" NOT NULL REFERENCES trials (session) ON DELETE CASCADE,
    dialect text COLLATE "C" NOT NULL,
    body    text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, dialect)
);

CREATE TABLE experiments (
    name    text COLLATE "C" PRIMARY KEY,
    arms    text COLLATE "C" NOT NULL,
    shares  text COLLATE "C" NOT NULL,
    metric  text COLLATE "C" NOT NULL,
    salt    text COLLATE "C" NOT NULL,
    after   text COLLATE "C" NOT NULL,
    floor   double precision NOT NULL,
    started double precision NOT NULL,
    stopped double precision,
    design  text COLLATE "C" NOT NULL DEFAULT 'random',
    horizon double precision
);

CREATE TABLE spent (
    session_key text COLLATE "C" NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    model       text COLLATE "C" NOT NULL,
    day         text COLLATE "C" NOT NULL,
    input       bigint,
    output      bigint,
    cache_read  bigint,
    cache_write bigint,
    reasoning   bigint,
    cost        double precision,
    basis       text COLLATE "C" NOT NULL,
    PRIMARY KEY (session_key, model, day)
);

CREATE TABLE live_spent (
    session     text COLLATE "C" NOT NULL,
    agent       text COLLATE "C" NOT NULL,
    model       text COLLATE "C" NOT NULL,
    project     text COLLATE "C",
    day         text COLLATE "C" NOT NULL,
    input       bigint,
    output      bigint,
    cache_read  bigint,
    cache_write bigint,
    reasoning   bigint,
    cost        double precision,
    updated     double precision NOT NULL,
    owner       text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (session, agent, model, day)
);

CREATE TABLE usage_events (
    session text COLLATE "C" NOT NULL,
    event   text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (session, event)
);

CREATE TABLE proposals (
    id                text COLLATE "C" PRIMARY KEY,
    digest            text COLLATE "C" NOT NULL UNIQUE,
    kind              text COLLATE "C" NOT NULL,
    action            text COLLATE "C" NOT NULL,
    target            text COLLATE "C" NOT NULL,
    summary           text COLLATE "C" NOT NULL,
    body              text COLLATE "C" NOT NULL,
    cites             text COLLATE "C" NOT NULL,
    suspicions        text COLLATE "C" NOT NULL,
    status            text COLLATE "C" NOT NULL,
    reason            text COLLATE "C" NOT NULL,
    write_origin      text COLLATE "C" NOT NULL,
    execution_context text COLLATE "C" NOT NULL,
    session           text COLLATE "C" NOT NULL,
    session_key       text COLLATE "C" NOT NULL,
    source            text COLLATE "C" NOT NULL,
    parent            text COLLATE "C",
    platform          text COLLATE "C" NOT NULL,
    tool_call         text COLLATE "C",
    created           double precision NOT NULL,
    decided           double precision,
    decided_by        text COLLATE "C",
    owner             text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE reviews (
    session_key text COLLATE "C" PRIMARY KEY,
    steps       bigint NOT NULL,
    at          double precision NOT NULL,
    owner       text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE forgotten (
    key   text COLLATE "C" PRIMARY KEY,
    at    double precision NOT NULL,
    owner text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE project_names (
    name    text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    root    text COLLATE "C",
    by      text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (name, owner)
);

CREATE TABLE live_counters (
    session text COLLATE "C" NOT NULL,
    agent   text COLLATE "C" NOT NULL,
    model   text COLLATE "C" NOT NULL,
    last    text COLLATE "C" NOT NULL,
    base    text COLLATE "C" NOT NULL,
    since   double precision NOT NULL,
    at      double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (session, agent, model)
);

CREATE TABLE digests (
    session_key text COLLATE "C" PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    rules       bigint NOT NULL,
    content     text COLLATE "C" NOT NULL,
    body        text COLLATE "C" NOT NULL
);

CREATE TABLE notes (
    id      text COLLATE "C" PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    scope   text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    status  text COLLATE "C" NOT NULL,
    body    text COLLATE "C" NOT NULL,
    updated double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE note_decisions (
    id     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    note   text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    by     text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    at     double precision NOT NULL,
    owner  text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE showings (
    note    text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    how     text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (note, session, how)
);

CREATE TABLE unmeasured (
    session_key text COLLATE "C" PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE
);

CREATE TABLE occurrences (
    note       text COLLATE "C" NOT NULL,
    session    text COLLATE "C" NOT NULL,
    experiment text COLLATE "C" NOT NULL,
    withheld   bigint NOT NULL,
    share      double precision NOT NULL,
    action     text COLLATE "C" NOT NULL,
    expected   double precision,
    call_id    text COLLATE "C" NOT NULL,
    at         double precision NOT NULL,
    failed     bigint,
    worked     bigint,
    transcript text COLLATE "C",
    content    text COLLATE "C",
    unread     bigint NOT NULL DEFAULT 1,
    owner      text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (note, session)
);

CREATE TABLE settled_folders (
    folder   text COLLATE "C" NOT NULL,
    project  text COLLATE "C" NOT NULL,
    root     text COLLATE "C",
    is_rival bigint NOT NULL,
    facts    text COLLATE "C" NOT NULL,
    owner    text COLLATE "C" NOT NULL DEFAULT current_user,
    PRIMARY KEY (folder, owner)
);

CREATE TABLE weighings (
    unit    text COLLATE "C" PRIMARY KEY,
    closed  bigint NOT NULL,
    weighed bigint NOT NULL
);

CREATE TABLE session_places (
    session text COLLATE "C" PRIMARY KEY,
    agent   text COLLATE "C" NOT NULL,
    folder  text COLLATE "C",
    scope   text COLLATE "C" NOT NULL,
    summary text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,
    owner   text COLLATE "C" NOT NULL DEFAULT current_user
);

CREATE TABLE worded_sessions (
    id          bigint PRIMARY KEY,
    session_key text COLLATE "C" NOT NULL UNIQUE REFERENCES sessions (key) ON DELETE CASCADE
);

CREATE INDEX sessions_by_id ON sessions (id);
CREATE INDEX templates_by_key ON templates (name_key, version);
CREATE INDEX templates_by_kind ON templates (status, category, project);
CREATE UNIQUE INDEX examples_by_place ON examples (name, version, ordinal);
CREATE INDEX postings_by_example ON postings (example);
CREATE INDEX decisions_by_name ON decisions (name, version);
CREATE INDEX trials_by_time ON trials (at);
CREATE INDEX trials_by_experiment ON trials (experiment, at);
CREATE UNIQUE INDEX one_experiment_runs ON experiments ((stopped IS NULL)) WHERE stopped IS NULL;
CREATE INDEX proposals_by_status ON proposals (status, created);
CREATE INDEX proposals_by_session ON proposals (session_key);
CREATE INDEX calls_by_id ON calls USING hash (call_id);
CREATE INDEX notes_by_project ON notes (project, scope, status);
CREATE INDEX note_decisions_by_note ON note_decisions (note);
CREATE INDEX showings_by_session ON showings (session);
CREATE UNIQUE INDEX trials_by_transcript ON trials (transcript) WHERE transcript IS NOT NULL;
CREATE INDEX occurrences_by_session ON occurrences (session);
CREATE INDEX sessions_by_folder ON sessions (folder NULLS FIRST, started NULLS FIRST, key);
CREATE INDEX sessions_by_remote ON sessions (folder NULLS FIRST, remote NULLS FIRST, started NULLS FIRST);
CREATE INDEX sessions_by_place ON sessions (folder NULLS FIRST, project NULLS FIRST, root NULLS FIRST);
CREATE INDEX sessions_by_project ON sessions (project NULLS FIRST, coalesce(root, folder) NULLS FIRST);
CREATE INDEX occurrences_unread ON occurrences (session) WHERE unread = 1;
CREATE INDEX sessions_by_source ON sessions (source NULLS FIRST) WHERE source IS NOT NULL;
CREATE INDEX sessions_by_started ON sessions (started NULLS FIRST, key, agent, verdict, project NULLS FIRST, scope, source NULLS FIRST);
CREATE INDEX sessions_by_agent ON sessions (agent);
CREATE INDEX sessions_by_updated ON sessions (updated);
CREATE INDEX showings_by_time ON showings (at);

-- The words of a session. PostgreSQL's own parser would take paths and commands for words, so ours are stored as they are.
CREATE TABLE session_words (
    id    bigint PRIMARY KEY REFERENCES worded_sessions (id) ON DELETE CASCADE,
    words tsvector NOT NULL
);

CREATE INDEX session_words_by_word ON session_words USING gin (words);

-- What a machine knows of its own disk: two people may have other files under the same path.
ALTER TABLE sources ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE project_names ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE settled_folders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON sources USING (owner = current_user);
CREATE POLICY own ON project_names USING (owner = current_user);
CREATE POLICY own ON settled_folders USING (owner = current_user);

-- Names of templates are one person's and everybody's: the next version of a name, whoever may see the others.
CREATE FUNCTION latest_version(wanted text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
    SELECT max(version) FROM templates WHERE name_key = wanted
$$;
