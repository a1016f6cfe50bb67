"""Scheduled jobs: which model will really run, and whether it is large enough."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import warmstart
from places import HOWTO
from warmstart.doors.cli.main import main
from warmstart.jobs import Job, JobRuntime, ModelContextError, ask_window, check_job, read_job, require_context
from warmstart.store import TrialStore

PREAMBLE = "[IMPORTANT: You are running as a scheduled cron job. DELIVERY: by itself. SILENT: say [SILENT].]\n\n"
CONFIG = "model: {default: gpt-5, provider: openai}\n"


def write_home(root: Path, *jobs: object, config: str = CONFIG) -> Path:
    home = root / "hermes-home"
    (home / "cron").mkdir(parents=True, exist_ok=True)
    (home / "cron" / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    (home / "config.yaml").write_text(config)
    return home


def make_job(**fields: object) -> dict[str, object]:
    return {"id": "a1b2c3d4e5f6", "name": "orders", "prompt": "Count the orders", "enabled": True} | fields


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["jobs", "check", *map(str, arguments)])


def check_json(*arguments: str | Path) -> dict[str, object]:
    return json.loads(check(*arguments, "--json").stdout)


# The check itself


@pytest.mark.parametrize(
    ("job", "runtime", "verdict", "words"),
    [
        (Job(id="j", model="gpt-5"), JobRuntime(), "ok", ""),
        (Job(id="j", model="gpt-4"), JobRuntime(), "fails", "8,192"),
        (Job(id="j", model="openai/gpt-4-0613"), JobRuntime(), "fails", "64,000"),
        (Job(id="j", model="my-own"), JobRuntime(), "unknown", "is unknown"),
        (Job(id="j"), JobRuntime(), "fails", "no model is set"),
        (Job(id="j"), JobRuntime(models=(("env", ""), ("config", "gpt-4"))), "fails", "gpt-4"),
        (Job(id="j", model="gpt-5"), JobRuntime(models=(("env", "gpt-4"),)), "ok", ""),
        (Job(id="j", model="gpt-4"), JobRuntime(context_length=8_192), "ok", "set by hand"),
        (Job(id="j", model="gpt-4", context_length=9_000), JobRuntime(), "ok", "set by hand"),
        (Job(id="j", model="gpt-4"), JobRuntime(context_length=128_000, trusts_setting=False), "ok", ""),
        (Job(id="j", model="gpt-5"), JobRuntime(context_length=32_000, trusts_setting=False), "fails", "32,000"),
        (Job(id="j", model="gpt-4", needs_model=False), JobRuntime(), "ok", "only a script"),
        (Job(id="j", model="gpt-4", paused=True), JobRuntime(), "skipped", "paused; it would fail"),
        (Job(id="j", model_before="gpt-5"), JobRuntime(models=(("config", "gpt-5.1"),)), "fails", "was gpt-5 when"),
        (Job(id="j", model="gpt-5.1", model_before="gpt-5"), JobRuntime(), "ok", ""),
        (Job(id="j", model="m"), JobRuntime(base_url="http://a/v1", windows={("http://a/v1", "m"): 32_768}), "fails", "32,768"),
        (Job(id="j", model="m", base_url="http://b"), JobRuntime(windows={("http://a", "m"): 32_768}), "unknown", ""),
        (Job(id="j"), JobRuntime(unreadable="config.yaml is broken"), "unknown", "broken"),
    ],
)  # fmt: skip
def test_verdicts(job: Job, runtime: JobRuntime, verdict: str, words: str) -> None:
    checked = check_job(job, runtime)
    assert checked.verdict == verdict and words in checked.reason, checked


def test_the_error_has_the_numbers_and_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"32,768 tokens.*64,000.*model\.context_length") as caught:
        require_context("small", 32_768)
    assert isinstance(caught.value, ModelContextError) and isinstance(caught.value, warmstart.WarmstartError)
    assert (caught.value.model, caught.value.window, caught.value.minimum) == ("small", 32_768, 64_000)
    require_context("small", 64_000)
    require_context("small", None)


def test_a_key_goes_nowhere_but_to_its_own_address() -> None:
    asked: list[tuple[str, str, str]] = []

    def ask(url: str, key: str, model: str) -> int | None:
        asked.append((url, key, model))
        return 32_768

    own = JobRuntime(base_url="http://a", api_key="key-a", places={"lab": ("http://lab", "key-lab")}, ask=ask)
    for job in ({"model": "m"}, {"model": "m", "base_url": "http://b/"}, {"model": "m", "provider": "custom:Lab"}):
        assert check_job(read_job(job), own).window_from == "the endpoint"
    assert asked == [("http://a", "key-a", "m"), ("http://b", "", "m"), ("http://lab", "key-lab", "m")]
    assert check_job(read_job({"model": "m", "provider": "elsewhere"}), own).verdict == "unknown"


# Hermes' files


def test_hermes_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = (
        make_job(),
        make_job(id="b", name="small", model="gpt-4", next_run_at="2026-11-17T06:00:00+00:00"),
        make_job(id="c", name="asleep", model="gpt-4", enabled=False, state="paused"),
        make_job(id="d", name="odd", model="homemade"),
        make_job(id="e", name=None, prompt=None, model=None, schedule=None),
    )
    home = write_home(tmp_path, *jobs)
    found = check("--hermes-home", home)
    assert found.exit_code == 1
    assert "small (b) would fail at its next run, 2026-11-17T06:00:00+00:00: gpt-4 has a context window" in found.output
    assert "Hermes' assumption" in " ".join(found.output.split())
    report = check_json("--hermes-home", home)
    assert [job["verdict"] for job in report["jobs"]] == ["ok", "fails", "skipped", "ok", "ok"]
    assert (report["failing"], report["unknown"], report["problems"]) == (1, 0, [])
    monkeypatch.setenv("HERMES_HOME", str(home))
    assert check().exit_code == 1


def test_a_default_goes_before_the_variable_as_in_hermes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_MODEL", "gpt-4")
    found = check("--hermes-home", write_home(tmp_path, make_job()))
    assert found.exit_code == 0 and "HERMES_MODEL=gpt-4 is set, but" in found.output
    assert check("--hermes-home", write_home(tmp_path, make_job(), config="model: {}\n")).exit_code == 1
    home = write_home(tmp_path, make_job(), config="model: '${HERMES_MODEL}'\n")
    assert check_json("--hermes-home", home)["jobs"][0]["model"] == "gpt-4"
    monkeypatch.delenv("HERMES_MODEL")
    (home / ".env").write_text('SECRET_KEY=nothing\nexport HERMES_MODEL="gpt-4"\n')
    (home / "config.yaml").write_text("{}\n")
    assert check_json("--hermes-home", home)["jobs"][0]["model_from"] == "HERMES_MODEL"


def test_settings_by_hand(tmp_path: Path) -> None:
    model = "model: {default: local, provider: custom, base_url: 'http://127.0.0.1:9/v1'%s}\n"
    listed = (
        "custom_providers: [{name: lab, base_url: 'http://127.0.0.1:9/v1/', models: {local: {context_length: %s}}}]\n"
    )
    keyed = "providers: {lab: {url: 'http://127.0.0.1:9/v1', models: {local: {context_length: 32768}}}}\n"
    for config, code in (
        (model % "" + listed % 32_768, 1),
        (model % "" + listed % 131_072, 0),
        (model % "" + listed % "lots", 0),
        (model % "" + keyed, 1),
        (model % ", context_length: 200000" + keyed, 0),
        (model % ", context_length: 32000", 1),  # Hermes looks at that too
        (model % ", context_length: 256K", 0),  # Hermes then looks the window up itself
    ):
        assert check("--hermes-home", write_home(tmp_path, make_job(), config=config)).exit_code == code, config


def test_profiles_have_their_own(tmp_path: Path) -> None:
    home = write_home(tmp_path, make_job())
    write_home(home / "profiles", make_job(id="p", name="of the profile"), config="model: gpt-4\n")
    (home / "profiles" / "hermes-home").rename(home / "profiles" / "coder")
    assert [(job["name"], job["verdict"]) for job in check_json("--hermes-home", home)["jobs"]] == [
        ("orders", "ok"),
        ("of the profile", "fails"),
    ]


# Damaged files


def test_damaged_files_are_named_with_their_line_and_the_others_still_checked(tmp_path: Path) -> None:
    home = write_home(tmp_path, make_job())
    (home / "cron" / "jobs.json").write_text('{"jobs": [\n  {"id": "a",\n   oops}\n]}')
    listed = tmp_path / "others.toml"
    listed.write_text('[[jobs]]\nid = "t"\nmodel = "gpt-4"\n')
    found = check("--hermes-home", home, "--jobs", listed)
    assert found.exit_code == 1 and "jobs.json:3: not valid JSON" in found.output and "t (t) would fail" in found.output
    listed.write_text('[[jobs]]\nid = "t"\nmodel = \n')
    report = check_json("--hermes-home", home, "--jobs", listed)
    assert [(Path(p["path"]).name, p["line"]) for p in report["problems"]] == [("jobs.json", 3), ("others.toml", 3)]


def test_an_unreadable_config_leaves_jobs_with_a_model_of_their_own(tmp_path: Path) -> None:
    home = write_home(tmp_path, make_job(), make_job(model="gpt-4"), 7, config="model: {default: [\n\n")
    report = check_json("--hermes-home", home)
    assert [job["verdict"] for job in report["jobs"]] == ["unknown", "fails"]
    assert {Path(problem["path"]).name for problem in report["problems"]} == {"config.yaml", "jobs.json"}
    assert all(problem["line"] for problem in report["problems"] if problem["path"].endswith("yaml"))


def test_without_a_yaml_parser_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    found = check("--hermes-home", write_home(tmp_path, make_job()))
    assert found.exit_code == 1 and "hermes warmstart jobs check" in found.output


def test_nothing_there(tmp_path: Path) -> None:
    assert "no scheduled jobs" in check().output
    assert check("--hermes-home", tmp_path / "nowhere").exit_code == 1
    (tmp_path / "bare").mkdir()
    assert check("--hermes-home", tmp_path / "bare").exit_code == 0
    assert check("--jobs", tmp_path / "nowhere.toml").exit_code == 1


@pytest.mark.parametrize("text", ['"text"', "null", '{"jobs": 7}', "[" * 100_000, "\udcff"])
def test_any_file_content_is_reported(tmp_path: Path, text: str) -> None:
    home = write_home(tmp_path)
    (home / "cron" / "jobs.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    found = check("--hermes-home", home)
    assert found.exit_code == 1 and "jobs.json" in found.output and not isinstance(found.exception, RecursionError)


def test_a_bare_list_and_raw_control_characters_are_taken_as_hermes_takes_them(tmp_path: Path) -> None:
    home = write_home(tmp_path)
    (home / "cron" / "jobs.json").write_text('\ufeff[{"id": "a", "prompt": "one\ttwo", "model": "gpt-4"}]')
    assert check_json("--hermes-home", home)["failing"] == 1


def test_a_list_for_other_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "jobs.toml"
    listed.write_text(
        'model = "gpt-5"\nmodel_variable = "AGENT_MODEL"\n'
        '[[jobs]]\nname = "brief"\n[[jobs]]\nname = "old"\nmodel = "gpt-4"\npaused = true\n'
        '[[jobs]]\nname = "known"\nmodel = "gpt-4"\ncontext_length = 8192\n'
    )
    assert check("--jobs", listed).exit_code == 0
    monkeypatch.setenv("AGENT_MODEL", "gpt-4")
    report = check_json("--jobs", listed)
    assert [job["verdict"] for job in report["jobs"]] == ["fails", "skipped", "ok"]
    assert report["jobs"][0]["model_from"] == "AGENT_MODEL"


# Asking a server


class Models(BaseHTTPRequestHandler):
    """Answers a path from `answers` and records the requests."""

    answers: dict[str, tuple[int, bytes]] = {}  # noqa: RUF012
    asked: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        status, body = self.answers.get(self.path, (404, b"{}"))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere/models")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    Models.answers, Models.asked = {}, []
    http = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.mark.parametrize(
    ("body", "window"),
    [
        ({"data": [{"id": "other", "max_model_len": 1_000_000}, {"id": "m", "max_model_len": 32_768}]}, 32_768),
        ({"data": [{"id": "m", "top_provider": {"context_length": 65_536}}]}, 65_536),
        ({"data": [{"id": "m", "context_length": True, "n_ctx": 16_384}]}, 16_384),
        ({"data": [{"id": "m", "context_length": 7}]}, None),
        ({"data": [{"id": "M"}, 7, None]}, None),
        ({"data": {"id": "m"}}, None),
        ([1], None),
        ("nonsense", None),
    ],
)
def test_what_a_server_says(server: str, body: object, window: int | None) -> None:
    Models.answers["/v1/models"] = 200, json.dumps(body).encode()
    assert ask_window(f"{server}/v1/", "k", "m") == window
    assert Models.asked == [("/v1/models", "Bearer k")]


@pytest.mark.slow
def test_a_server_with_wrong_answers(server: str) -> None:
    Models.answers |= {"/away/models": (302, b""), "/bad/models": (500, b"no"), "/odd/models": (200, b"{")}
    assert [ask_window(f"{server}/{name}", "", "m") for name in ("away", "bad", "odd", "none")] == [None] * 4
    assert all(path != "/elsewhere/models" for path, _key in Models.asked), "a key stays where it belongs"
    assert [ask_window(url, "", "m") for url in ("http://127.0.0.1:1", "file:///etc", "", "http://[")] == [None] * 4


# Runs of one job


def add_runs(database: Path, job: str, command: str, *, count: int = 2) -> None:
    """Good runs of a job, as Hermes keeps them."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS sessions (id TEXT, source TEXT, started_at REAL, cwd TEXT)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
            " tool_call_id TEXT, tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1)"
        )
        for n in range(count):
            session = f"cron_{job}_2026111{n}_030000"
            connection.execute("INSERT INTO sessions VALUES (?, 'cron', ?, '/srv')", (session, 1e9 + n))
            rows = [("user", PREAMBLE + "Count the open orders in the shop", None, None)]
            for m, line in enumerate((command, f"wc -l {job}.csv")):
                call = {"id": f"{job}{n}{m}", "type": "function"}
                call |= {"function": {"name": "terminal", "arguments": json.dumps({"command": line})}}
                rows.append(("assistant", "I count the open orders.", None, json.dumps([call])))
                rows.append(("tool", json.dumps({"output": "17", "exit_code": 0, "error": None}), call["id"], None))
            rows.append(("assistant", "There are 17 open orders.", None, None))
            connection.executemany(
                "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls) VALUES (?,?,?,?,?)",
                [(session, *row) for row in rows],
            )
        connection.commit()


def test_a_run_gets_examples_of_its_own_jobs_good_runs(tmp_path: Path) -> None:
    database = tmp_path / "state.db"
    add_runs(database, "aaa", "grep -c open aaa.csv")
    add_runs(database, "bbb", "awk '/open/' bbb.csv")
    with warmstart.open() as ws:
        ws.ingest(database)
        ws.learn()
        (known, *_rest) = [row for row in ws.store.list_sessions(None) if row.id.startswith("cron_aaa")]
        assert (known.project, known.task) == ("job:aaa", "Count the open orders in the shop")
        for job, other in (("aaa", "bbb"), ("bbb", "aaa")):
            seed = ws.provision(warmstart.Task(text="Count the open orders in the shop", job=job, session=f"run-{job}"))
            assert f"{job}.csv" in str(seed.messages) and f"{other}.csv" not in str(seed.messages)
            assert seed.reason.startswith("from earlier runs of this job")
            trial = TrialStore(ws.store).trial(f"run-{job}")
            assert trial is not None and json.loads(trial.task)["project"] == f"job:{job}"
        new = ws.provision(warmstart.Task(text="Count the open orders in the shop", job="new", session="run-new"))
        assert not new.messages and "earlier runs" not in new.reason, "a new job gets nothing of another job"


def test_the_howtos_code_runs() -> None:
    page = (HOWTO / "hermes.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "hermes.md", "exec"), {})
    (listed,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    path = Path.home() / "jobs.toml"
    path.write_text(listed)
    assert [job["verdict"] for job in check_json("--jobs", path)["jobs"]] == ["ok", "ok"]


# As Hermes finds it

CUSTOM = 'model: {{default: small, provider: custom, base_url: "{url}/v1", api_key: k}}\n'


@pytest.mark.parametrize(
    ("model", "verdict", "window"),
    [
        ("gpt-4", "ok", 128_000),  # Hermes goes by the family's name, not by the maker's list
        ("gemma-2-9b", "fails", 8_192),
        ("google/gemma-3-27b-it", "ok", 131_072),
        ("tiny", "unknown", None),  # Hermes would ask the endpoint
    ],
)
def test_a_custom_endpoint_without_the_network(tmp_path: Path, model: str, verdict: str, window: int | None) -> None:
    home = write_home(tmp_path, make_job(model=model), config=CUSTOM.format(url="http://127.0.0.1:1"))
    (found,) = check_json("--hermes-home", home)["jobs"]
    assert (found["verdict"], found["window"]) == (verdict, window), found


def test_a_custom_endpoint_that_is_asked(tmp_path: Path, server: str) -> None:
    Models.answers = {"/v1/models": (200, b'{"data": [{"id": "gpt-4", "max_model_len": 32768}]}')}
    jobs = [make_job(id="j1", model="gpt-4"), make_job(id="j2", model="mystery")]
    home = write_home(tmp_path, *jobs, config=CUSTOM.format(url=server))
    told, unknown = check_json("--hermes-home", home, "--ask-endpoint")["jobs"]
    assert (told["verdict"], told["window"], told["window_from"]) == ("fails", 32_768, "the endpoint")
    assert (unknown["verdict"], unknown["window"]) == ("ok", 256_000), "what Hermes assumes"


def test_what_hermes_found_before_counts(tmp_path: Path) -> None:
    home = write_home(tmp_path, make_job(model="tiny"), config=CUSTOM.format(url="http://127.0.0.1:1"))
    (home / "context_length_cache.yaml").write_text("context_lengths: {'tiny@http://127.0.0.1:1/v1': 16000}")
    assert check_json("--hermes-home", home)["jobs"][0]["window_from"] == "Hermes' cache"
    (home / "context_length_cache.yaml").write_text("context_lengths: [")
    assert check_json("--hermes-home", home)["jobs"][0]["verdict"] == "unknown"


def test_a_providers_own_list(tmp_path: Path) -> None:
    config = "model: {default: gpt-4, provider: openai}\n"
    home = write_home(tmp_path, make_job(), make_job(id="j2", model="gpt-unheard-of"), config=config)
    known, unheard = check_json("--hermes-home", home)["jobs"]
    assert (known["verdict"], known["window"]) == ("fails", 8_192)
    assert (unheard["verdict"], unheard["window_from"]) == ("ok", "Hermes' assumption")
    listed = {"openai": {"models": {"gpt-4": {"limit": {"context": 100_000}}}}}
    (home / "models_dev_cache.json").write_text(json.dumps(listed))
    assert check_json("--hermes-home", home)["jobs"][0]["window_from"] == "Hermes' list of models"


@pytest.mark.parametrize("runtime", ["ask", "find"])
def test_a_function_that_raises_costs_no_check(runtime: str) -> None:
    def fail(*_anything: object) -> None:
        raise OSError("the key is k-secret")

    checked = check_job(Job(id="j", model="m"), JobRuntime(base_url="http://a", **{runtime: fail}))  # type: ignore[arg-type]
    assert checked.verdict == "unknown" and "failed with OSError" in checked.reason and "secret" not in checked.reason


def test_asking_and_not_asking_exclude_each_other() -> None:
    assert check("--ask-endpoint", "--offline").exit_code == 2
