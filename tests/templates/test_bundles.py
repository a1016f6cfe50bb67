"""Bundles: the older layouts, the round trip of our own, and hostile or broken files."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from warmstart.errors import SourceError, UnknownFormat
from warmstart.excerpt import RESULT, cut, cut_value
from warmstart.judging.outcome import judge_result
from warmstart.model import Example, ExampleCall, Provenance, Template
from warmstart.names import name_key
from warmstart.redact import Redactor
from warmstart.templates.bundles import MAX_BYTES, Bundle, read_bundle, read_bundles
from warmstart.templates.export import redact_template, write_bundle

FULL = os.environ.get("WARMSTART_FULL") == "1"

SEEDS = {
    "name": "list the shop",
    "category": "coding",
    "score_info": {"score": 0.93, "tool_calls": 4},
    "seed_messages": [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "What is in the shop folder?"},
        {
            "role": "assistant",
            "content": "I look at both folders.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "terminal", "arguments": '{"command": "ls shop"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "terminal", "arguments": '{"command": "ls barn"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": '{"output": "ls: barn: No such file", "exit_code": 2}'},
        {"role": "tool", "tool_call_id": "c1", "content": '{"output": "apples\\npears", "exit_code": 0}'},
        {"role": "user", "content": "Read apples"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "shop/apples"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"content": "12 apples", "total_lines": 1}'},
        {"role": "assistant", "tool_calls": [{"id": "c9", "function": {"name": "terminal", "arguments": "{}"}}]},
    ],
}
TURNS = {
    "name": "research",
    "task_type": "research",
    "examples": [
        {
            "tool_name": "web_search",
            "arguments": {"query": "tea"},
            "result": "3 results",
            "success": True,
            "turn_number": 2,
        },
        {
            "tool_name": "web_search",
            "arguments": '{"query": "coffee"}',
            "result": {"results": []},
            "success": True,
            "turn_number": 3,
        },
        {"tool_name": "web_fetch", "arguments": {}, "result": "Error: 404", "success": False, "turn_number": 4},
    ],
    "usage_count": 17,
    "source_session_id": "sess-1",
    "tags": ["web", "tea"],
    "created_at": "2026-01-02T03:04:05Z",
}
HINTS = {
    "name": "deploy",
    "examples": [
        {
            "tool_name": "shell",
            "arguments": {"cmd": "make"},
            "result_summary": "built",
            "result_success": True,
            "context_hint": "build it",
        },
        {
            "tool_name": "shell",
            "arguments": {"cmd": "make x"},
            "result_summary": "no rule",
            "result_success": False,
            "context_hint": "x",
        },
    ],
    "system_prompt_addendum": "Prefer make.",
    "source_session_ids": ["s-1", "s-2"],
    "version": 4,
}


def read(value: Any, source: str = "old.json") -> Bundle:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_bundle(data, source, judge_result)


def example(**fields: Any) -> dict[str, Any]:
    return {"tool_name": "t", "arguments": {"a": 1}, "result": "fine", "success": True} | fields


def names(bundle: Bundle) -> list[str]:
    return [template.name for template in bundle.templates]


def reasons(bundle: Bundle) -> str:
    return "\n".join(problem.reason for problem in bundle.problems)


def test_layout_of_seed_messages() -> None:
    bundle = read(SEEDS)
    (template,) = bundle.templates
    assert (template.name, template.category, template.task_type) == ("list the shop", "coding", "mixed")
    listed, opened = template.examples
    assert (listed.tool, listed.arguments, listed.step) == ("terminal", {"command": "ls shop"}, 0)
    assert "apples\\npears" in listed.result
    assert listed.intent == "I look at both folders."
    assert (opened.tool, opened.arguments, opened.intent) == ("read_file", {"path": "shop/apples"}, "Read apples")
    assert opened.task == "What is in the shop folder?"
    assert reasons(bundle) == "template 1 (list the shop): 2 calls that did not work were left out"


def test_layout_of_turns() -> None:
    bundle = read(TURNS)
    (template,) = bundle.templates
    assert (template.category, template.task_type, template.tags) == ("research", "research", ("web", "tea"))
    assert template.source_sessions == ("sess-1",)
    assert template.created == 1767323045
    assert template.used == 17
    one, other = template.examples
    assert (one.arguments, one.result, one.step, one.session) == ({"query": "tea"}, "3 results", 2, "sess-1")
    assert (other.arguments, other.result) == ({"query": "coffee"}, '{"results": []}')
    assert "1 calls that did not work" in reasons(bundle)


def test_layout_of_hints() -> None:
    (template,) = read(HINTS).templates
    assert (template.version, template.addendum, template.source_sessions) == (4, "Prefer make.", ("s-1", "s-2"))
    (only,) = template.examples
    assert (only.tool, only.result, only.intent, only.session) == ("shell", "built", "build it", "")


@pytest.mark.parametrize("layout", [SEEDS, TURNS, HINTS])
def test_everything_arrives_untrusted(layout: dict[str, Any]) -> None:
    (template,) = read(layout | {"status": "active", "used": 99}, "dir/old.json").templates
    assert (template.status, template.used) == ("proposed", layout.get("usage_count", 0)), "our own count stays here"
    assert template.provenance == Provenance(origin="imported", source="dir/old.json")


@pytest.mark.parametrize(
    "document",
    [
        [SEEDS, TURNS, HINTS],
        {"templates": [SEEDS, TURNS, HINTS]},
        {"templates": {"a": SEEDS, "b": TURNS, "c": HINTS}},
        {"list the shop": SEEDS | {"name": None}, "research": TURNS | {"name": ""}, "x": HINTS},
        b"\xef\xbb\xbf" + "\n".join(map(json.dumps, (SEEDS, TURNS, HINTS))).encode(),
        json.dumps([SEEDS, TURNS, HINTS], indent=1)[:-1].encode(),
    ],
)
def test_many_in_one_file(document: Any) -> None:
    assert names(read(document)) == ["list the shop", "research", "deploy"]


def test_a_result_without_a_flag_is_judged() -> None:
    records = [
        example(success=None),
        example(success=None, result="Traceback (most recent call last):\n  x\nValueError: no"),
    ]
    bundle = read({"name": "n", "examples": records})
    assert [e.result for e in bundle.templates[0].examples] == ["fine"]


def test_unknown_kinds_fall_back() -> None:
    (template,) = read(HINTS | {"category": "cooking", "task_type": ["?"]}).templates
    assert (template.category, template.task_type) == ("ops", "mixed"), "as its tools say"
    unknown = {"name": "n", "examples": [example()]}
    assert (read(unknown).templates[0].category, read(unknown).templates[0].task_type) == ("general", "mixed")


def test_corrupt_entries_cost_no_others() -> None:
    broken = TURNS | {
        "name": "b",
        "examples": [5, None, {"arguments": {}}, example(tool_name=7), example(arguments=[1, 2])],
    }
    bundle = read([17, {"name": "a"}, broken, {"examples": [example()]}, TURNS | {"examples": "?"}, HINTS])
    assert names(bundle) == ["b", "deploy"]
    assert [(e.tool, e.arguments) for e in bundle.templates[0].examples] == [("7", {"a": 1}), ("t", "[1, 2]")]
    listed = reasons(bundle)
    for reason in (
        "template 1: it has neither examples", "template 2: it has neither", "template 3 (b), example 1: not an object",
        "example 3: it names no tool", "template 4: the name is empty", "template 5 (research): its examples are not a list",
        "template 5 (research): left out, because it has no example that worked",
    ):  # fmt: skip
        assert reason in listed
    assert {problem.path for problem in bundle.problems} == {"old.json"}


def test_a_broken_file_gives_what_it_has_and_says_where() -> None:
    text = json.dumps({"templates": [TURNS, HINTS | {"name": "NaN"}, SEEDS]}, indent=1)
    cut_off = read(text[: text.index('"seed_messages"') + 200].encode())
    assert names(cut_off) == ["research", "NaN"]
    assert cut_off.problems[-1].line == text[: text.index('"seed_messages"') + 200].count("\n") + 1
    deep = "[" * 100_000 + "]" * 100_000
    bundle = read(f'{{"templates": [\n{json.dumps(TURNS)},\n{{"examples": {deep}}},\n{json.dumps(HINTS)}]}}'.encode())
    assert names(bundle) == ["research", "deploy"]
    assert [problem.line for problem in bundle.problems if "deep" in problem.reason] == [3]
    lines = [json.dumps(TURNS), "{oops", json.dumps(HINTS)]
    bundle = read("\n".join(lines).encode())
    assert names(bundle) == ["research", "deploy"]
    assert 2 in [problem.line for problem in bundle.problems]


@pytest.mark.parametrize("name", ["../x", "/abs", "a\0b", "x" * 300, "CON", "..", "", None, 1.5e300, ["a"], {"a": 1}])
def test_bad_names_are_reported(name: Any) -> None:
    bundle = read([HINTS | {"name": name}, TURNS])
    assert names(bundle)[-1] == "research"
    assert len(bundle.templates) + reasons(bundle).count("template 1: the name") == 2


def test_names_that_collide() -> None:
    spelled = ["caf\u00e9", "cafe\u0301", "CAF\u00c9", "Deploy", "deploy"]
    bundle = read([HINTS | {"name": name} for name in spelled] + [HINTS | {"name": "Deploy", "version": 5}])
    assert [(t.name, t.version) for t in bundle.templates] == [("caf\u00e9", 4), ("Deploy", 4), ("Deploy", 5)]
    assert "version 4 appears twice" in reasons(bundle)
    assert "its name looks like 'Deploy'" in reasons(bundle)


def test_texts_are_bounded() -> None:
    long = "word " * 4_000
    records = [
        example(result=long, context_hint=long, arguments={"text": long, "list": list(range(900)), "deep": nested(40)})
    ] * 70
    bundle = read({"name": "n", "description": long, "tags": [long] * 30, "examples": records, "addendum": long})
    (template,) = bundle.templates
    assert len(template.examples) == 50
    assert "after number 50 were left out" in reasons(bundle)
    assert len(template.description) <= 500
    assert len(template.tags) == 20
    assert max(map(len, template.tags)) <= 40
    assert len(template.addendum) <= 4_000
    first = template.examples[0]
    assert isinstance(first.arguments, dict)
    assert len(first.result) <= 800
    assert len(first.arguments["text"]) <= 1_000
    assert len(json.dumps(first.arguments)) < 4_000
    assert "left out" in first.result


def test_a_call_too_large_is_no_example() -> None:
    bundle = read(
        {"name": "n", "examples": [example(arguments={str(i): ["x" * 900] * 20 for i in range(100)}), example()]}
    )
    assert len(bundle.templates[0].examples) == 1
    assert "its arguments are too large" in reasons(bundle)


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": [value]}
    return value


# Our own bundle.

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
word = st.text("abcdefg XYZéß0-9_", min_size=1, max_size=12).map(str.strip).filter(lambda t: t and t[0] not in "-.")
count = st.integers(0, 10**9)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
examples = st.builds(
    Example,
    tool=word,
    arguments=st.dictionaries(text, values, max_size=4) | text,
    result=text | text.filter(bool).map(lambda t: cut(t * 2_500, RESULT)),
    intent=text,
    task=text,
    correction=st.none() | text.filter(bool),
    why=text,
    session=text,
    step=st.none() | count,
    support=count,
    successes=count,
    failures=count,
    calls=st.lists(
        st.builds(
            ExampleCall,
            tool=word,
            arguments=st.dictionaries(text, values, max_size=2) | text,
            result=text,
            correction=st.none() | text.filter(bool),
        ),
        max_size=2,
    ).map(tuple),
    closing=text,
    stand_ins=st.lists(word, max_size=2).map(tuple),
)
templates = st.builds(
    Template,
    name=word,
    version=st.integers(1, 1_000),
    category=st.sampled_from(["coding", "research", "ops", "general"]),
    task_type=st.sampled_from(["code", "file", "research", "mixed"]),
    description=text,
    tags=st.lists(word, max_size=4).map(tuple),
    addendum=text,
    examples=st.lists(examples, max_size=3).map(tuple),
    source_sessions=st.lists(word, max_size=3).map(tuple),
    status=st.sampled_from(["proposed", "active", "retired"]),
    created=st.none() | st.floats(0, 1e11),
    used=count,
    provenance=st.builds(
        Provenance,
        origin=st.sampled_from(["learned", "captured", "imported"]),
        project=st.none() | word,
        agent=st.none() | word,
        parent=st.none() | word,
        source=st.none() | word,
        suspicions=st.lists(word, max_size=3).map(tuple),
    ),
)


def as_imported(template: Template, source: str) -> Template:
    """Return the template as an import changes it."""
    provenance = structs.replace(template.provenance, origin="imported", source=source)
    return structs.replace(template, status="proposed", used=0, provenance=provenance)


@settings(
    max_examples=100 if FULL else 40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
@given(st.lists(templates, max_size=4, unique_by=lambda t: name_key(t.name)))
def test_round_trip(chosen: list[Template]) -> None:
    data = write_bundle(chosen, redact=None)
    bundle = read_bundle(data, "b.json", judge_result)
    assert bundle.problems == ()
    assert sorted(bundle.templates, key=lambda t: t.name) == sorted(
        (as_imported(t, "b.json") for t in chosen), key=lambda t: t.name
    )
    assert write_bundle(bundle.templates, redact=None) == data
    assert write_bundle(reversed(chosen), redact=None) == data


def test_no_field_is_forgotten() -> None:
    """A new field must be added here, in the reader, and in the strategies above."""
    assert set(Example.__struct_fields__) == {
        *("tool", "arguments", "result", "intent", "task", "correction", "why", "session", "step"),
        *("support", "successes", "failures", "calls", "closing", "stand_ins"),
    }  # fmt: skip
    assert set(Provenance.__struct_fields__) == {
        *("origin", "project", "scope", "agent", "parent", "source", "suspicions", "partial")
    }  # fmt: skip
    written = json.loads(write_bundle([Template(name="n")], redact=None))["templates"][0]
    assert set(written) == set(Template.__struct_fields__) - {"status", "used", "further"}


def test_excerpts_are_not_cut_twice() -> None:
    long = "some words of a long result\n" * 500
    arguments = cut_value({"text": long, "list": list(range(900)), "deep": nested(40)}, 1_000)
    learned = Template(name="n", examples=(Example(tool="t", arguments=arguments, result=cut(long, RESULT)),))
    (back,) = read_bundle(write_bundle([learned], redact=None), "b", judge_result).templates
    assert back.examples == learned.examples


def test_one_template_alone_and_versions() -> None:
    both = [
        Template(name="n", version=version, provenance=Provenance(origin="learned", parent="n@1")) for version in (2, 1)
    ]
    document = json.loads(write_bundle(both, redact=None))
    assert document["warmstart"] == 1
    assert [(t.version, t.provenance.parent) for t in read(document).templates] == [(1, "n@1"), (2, "n@1")]
    assert names(read(document["templates"][0])) == ["n"]
    assert read({"warmstart": 1, "templates": []}) == Bundle((), ())
    with pytest.raises(SourceError, match="version 2"):
        read(document | {"warmstart": 2})


def personal_template(name: str) -> Template:
    said = "mail alice@corp.example.org, see /home/alice/shop on db7.internal.acme-corp.com"
    return Template(
        name=name,
        description=said,
        addendum=said,
        tags=("alice@corp.example.org",),
        examples=(
            Example(
                tool="shell",
                arguments={"command": said},
                result=said,
                intent=said,
                task=said,
                correction=said,
                why=said,
            ),
        ),
        source_sessions=("1240a4684403b160e6597a653a88f56c",),
        provenance=Provenance(
            origin="learned",
            project="/home/alice/shop",
            source="/home/alice/x.json",
            suspicions=(said,),
            parent=f"{name}@1",
        ),
    )


def test_sharing_hides_people_and_machines() -> None:
    chosen = [
        personal_template("alice@corp.example.org notes"),
        personal_template("bob@corp.example.org notes"),
        personal_template("plain"),
    ]
    data = write_bundle(chosen, redact=Redactor(share=True).scope().value)
    for hidden in (b"alice", b"bob@", b"acme-corp", b"/home/"):
        assert hidden not in data
    bundle = read(data)
    assert bundle.problems == ()
    assert sorted(names(bundle)) == ["email-1 notes", "email-2 notes", "plain"]
    assert {t.provenance.parent for t in bundle.templates} == {"email-1 notes@1", "email-2 notes@1", "plain@1"}
    assert {t.provenance.project for t in bundle.templates} == {None}
    assert bundle.templates[0].source_sessions == ("1240a4684403b160e6597a653a88f56c",)
    arguments = bundle.templates[0].examples[0].arguments
    assert isinstance(arguments, dict)
    assert "{{SECRET:email#" in arguments["command"]


def test_redacted_names_stay_apart() -> None:
    chosen = [Template(name=name) for name in ("a1", "a2", "a3")]
    data = write_bundle(
        chosen, redact=lambda value: "{{SECRET:x#1}}" if isinstance(value, str) and value[:1] == "a" else value
    )
    assert names(read(data)) == ["x-1", "x-1 2", "x-1 3"]
    assert redact_template(Template(name="n"), lambda value: "../" if value == "n" else value).name == "shared template"


# Files that hold no templates, and hostile files.


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"null",
        b"1",
        b'"x"',
        b"[]",
        b"{}",
        b"[1, 2]",
        b'{"a": 1}',
        b'{"messages": [{"role": "user", "content": "x"}]}',
        b'[{"role": "user"}]',
    ],
)
def test_nothing_of_the_kind(data: bytes) -> None:
    with pytest.raises(UnknownFormat):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"\x00\x01",
        b"\xff\xfe{\x00",
        b"SQLite format 3\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a": "',
        b"9" * 5_000,
    ],
)
def test_no_json_at_all(data: bytes) -> None:
    with pytest.raises(SourceError):
        read(data)


def test_too_large() -> None:
    with pytest.raises(SourceError, match="larger than 64 MB"):
        read(b" " * (MAX_BYTES + 1))


COUNT = (12 << 20) if FULL else (3 << 20)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" + b"{}," * COUNT, id="objects"),
        pytest.param(b"[" + b"[]," * COUNT, id="lists"),
        pytest.param(b'{"name": "n", "examples": [' + b"[]," * COUNT, id="examples", marks=pytest.mark.slow),
        pytest.param(b'{"templates": [' + b'"x",' * COUNT, id="templates"),
        pytest.param(b"{}\n{}\n" + b"x\n" * COUNT, id="lines"),
        pytest.param(b"[" + b"[]," * (COUNT // 6) + b"[]]", id="whole", marks=pytest.mark.slow),
    ],
)
def test_endless_lists_take_bounded_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        read(data)
    except SourceError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 300 << 20


def test_nan_surrogates_and_huge_numbers() -> None:
    data = b'[{"name": "a", "examples": [{"tool_name": "t", "arguments": {"x": NaN, "y": 1e999, "z": "\\ud800"}, "result": Infinity, "success": true}]},'
    data += b'{"name": "b", "examples": [' + b"9" * 5_000 + b']}, {"name": "c\\ud800", "examples": []}]'
    bundle = read(data)
    (template,) = bundle.templates
    assert template.examples[0].arguments == {"x": None, "y": None, "z": "\ufffd"}
    assert "too long to read" in reasons(bundle)
    write_bundle(bundle.templates, redact=None).decode()


def test_problems_are_bounded() -> None:
    bundle = read([HINTS] + [7] * 5_000)
    assert len(bundle.problems) == 1_001
    assert "the rest is not listed" in bundle.problems[-1].reason


KEYS = [
    "name",
    "examples",
    "seed_messages",
    "templates",
    "warmstart",
    "provenance",
    "tags",
    "version",
    "tool_name",
    "tool",
    "arguments",
]
KEYS += [
    "result",
    "success",
    "role",
    "content",
    "tool_calls",
    "id",
    "function",
    "source_session_id",
    "created",
    "category",
    "step",
]
WORDS = ["", "n", "assistant", "tool", "user", "{}", '{"a": [1]}', "\ud800", "\0", "../x", "true", "9" * 20]
fuzz = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=40,
)


def assert_sane(data: bytes) -> None:
    try:
        bundle = read(data)
    except SourceError:
        return
    again = read_bundle(write_bundle(bundle.templates, redact=None), "old.json", judge_result)
    unused = [structs.replace(template, used=0) for template in bundle.templates]
    assert sorted(again.templates, key=lambda t: (t.name, t.version)) == sorted(
        unused, key=lambda t: (t.name, t.version)
    )
    assert msgspec.json.encode(bundle)
    assert all(t.status == "proposed" and t.provenance.origin == "imported" for t in bundle.templates)


@pytest.mark.slow
@settings(max_examples=400 if FULL else 150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(fuzz, st.sampled_from(["as it is", "named", "listed", "message"]))
def test_any_json_is_read_or_refused(value: Any, where: str) -> None:
    wrapped = {
        "as it is": value,
        "named": {"name": "n", "examples": value, "tags": value, "version": value, "created": value},
        "listed": [
            {
                "name": "n",
                "examples": [{"tool_name": "t", "arguments": value, "result": value, "success": value, "step": value}],
            }
        ],
        "message": {"name": "n", "seed_messages": value if isinstance(value, list) else [value]},
    }
    assert_sane(json.dumps(wrapped[where]).encode())


def test_damaged_files_are_read_or_refused() -> None:
    rng = random.Random(3)
    whole = [
        json.dumps([SEEDS, TURNS, HINTS], indent=1),
        json.dumps({"warmstart": 1, "templates": [TURNS]}),
        "\n".join(map(json.dumps, (SEEDS, HINTS))),
    ]
    for _ in range(1_500 if FULL else 500):
        data = bytearray(rng.choice(whole).encode())
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            if rng.random() < 0.3:
                del data[at : at + rng.randint(1, 400)]
            else:
                data[at : at + 1] = rng.choice(
                    (b"", b"\xff", b"\0", b"}", b"]", b'"', b"{", b"[", b"NaN", b"\\ud800", b"\n")
                )
            data = data or bytearray(b"x")
        assert_sane(bytes(data))


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    files = {
        "a.json": json.dumps(SEEDS),
        "b.json": "{oops",
        "c.txt": json.dumps(HINTS),
        "d.json": '{"a": 1}',
        "e.jsonl": json.dumps(TURNS),
    }
    files |= {"f.json": json.dumps(TURNS), "sub/g.json": json.dumps(HINTS)}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    bundle = read_bundles(tmp_path, judge_result)
    assert names(bundle) == ["list the shop", "research", "deploy"]
    assert bundle.templates[-1].provenance.source == str(tmp_path / "sub/g.json")
    assert {Path(problem.path).name for problem in bundle.problems} == {
        "a.json",
        "b.json",
        "e.jsonl",
        "f.json",
        "g.json",
    }
    assert names(read_bundles(tmp_path / "c.txt", judge_result)) == ["deploy"]
    for name in ("b.json", "d.json", "missing.json"):
        with pytest.raises(SourceError):
            read_bundles(tmp_path / name, judge_result)
