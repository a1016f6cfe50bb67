"""The same request leads to the same examples, however long its prompt is; small talk leads to none."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warmstart
from places import needs_corpus
from template_files import DEPLOY, REPORT, example, template, write_bundle
from transcripts import cart_sessions, teach
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.scopes import EVERYWHERE
from warmstart.templates.focus import Passage, find_passage, split_request

MIGRATE = template(
    "migrate",
    example("terminal", "alembic upgrade head", "migrate the orders table of the database"),
    example("terminal", "alembic revision -m rename", "rename a column in a migration"),
    category="coding",
    task_type="code",
    tags=["database"],
)
REQUESTS = (
    "Please deploy the shop to the cluster and see whether the rollout came up.",
    "Write the quarterly report from the template, and search the web for figures.",
    "Rename the customer column of the orders table in a database migration.",
)
LOG = "".join(
    f"2026-11-1{n % 7} 10:{n % 60:02}:07.123 [main] INFO com.acme.Runner{n} - migration {n} of the orders table done\n"
    for n in range(30)
)
TRACE = """Traceback (most recent call last):
  File "/srv/shop/cluster.py", line 42, in deploy
    response = upgrade(shop, cluster)
  File "/srv/shop/report.py", line 10, in write
    return render(report, template, quarter)
ValueError: too many values to unpack (expected 2)
"""
STACK = """Error: Cannot find module 'report'
    at Function.Module._resolveFilename (internal/modules/cjs/loader.js:636:15)
    at Object.<anonymous> (/srv/shop/migrations/orders.js:3:17)
"""
FENCED = "```python\ndef deploy(shop, cluster):\n    return helm(shop).upgrade(cluster, report=True)\n```\n"
BARE = "for table in sorted(tables):\n    results[table] = migrate(table, database=orders)\n    print(f'{table}: ok')\n"
DATA = '{"id": 12, "status": "failed", "items": [{"name": "report", "quarter": 3}, {"name": "cluster"}]}\n' * 4
KIND = "Hi there! I hope you are having a wonderful day and that everything is going well on your side.\n"
THANKS = "Thank you so much in advance, I really appreciate your patience. Take your time, there is no hurry at all.\n"
DIFF = "@@ -1,4 +1,4 @@\n-    migrate(orders, database)\n+    deploy(shop, cluster)\n"
PADS = (LOG, TRACE, STACK, FENCED, BARE, DATA, KIND, THANKS, DIFF)
SMALL_TALK = (
    *(
        "hi",
        "Hello!",
        "good morning",
        "thanks",
        "thank you so much",
        "ok go on",
        "yes please",
        "how are you?",
        "bye",
        "lol",
        "how are you doing today? hope you had a nice weekend",
    ),
    *(
        "hallo",
        "guten Morgen",
        "danke schön",
        "bonjour",
        "merci beaucoup",
        "hola",
        "buenos días",
        "ciao",
        "olá",
        "cześć",
    ),
    *(
        "こんにちは",
        "ありがとうございます",
        "你好",
        "谢谢",
        "早上好",
        "привет",
        "спасибо",
        "안녕하세요",
        "مرحبا",
        "नमस्ते",
        "שלום",
    ),
    *("merhaba", "xin chào", "sawubona", "nice to meet you", "see you tomorrow", "great job, my friend!", "👋", "?"),
)


@pytest.fixture(scope="module")
def ws(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prompts")
    with warmstart.open(folder / "home") as opened:
        opened.templates.import_(write_bundle(folder / "t.json", DEPLOY, REPORT, MIGRATE), approve=True)
        yield opened


def choose(ws: Warmstart, text: str, project: str | None = None) -> list[str]:
    """Return the calls that the seed for a prompt shows."""
    seed = ws.provision(Task(text=text, project=project))
    return [str(message["tool_calls"]) for message in seed.messages if message.get("tool_calls")]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    request=st.sampled_from(REQUESTS),
    before=st.lists(st.sampled_from(PADS), max_size=4),
    after=st.lists(st.sampled_from(PADS), max_size=4),
    gap=st.sampled_from(("\n", "\n\n")),
)
def test_what_is_pasted_around_a_request_changes_nothing(ws, request, before, after, gap):
    prompt = f"{''.join(before)}{gap}{request}{gap}{''.join(after)}"[-20_000:]
    assert choose(ws, request)
    assert choose(ws, prompt) == choose(ws, request)


@pytest.mark.parametrize("request_text", REQUESTS)
@pytest.mark.parametrize("length", [200, 500, 1_000, 2_000, 5_000])
def test_a_prompt_of_any_length_gets_the_examples_of_its_request(ws, request_text, length):
    padding = (KIND + LOG + TRACE + THANKS) * 3
    assert choose(ws, f"{request_text}\n\n{padding}"[: max(length, len(request_text))]) == choose(ws, request_text)
    assert choose(ws, f"{padding[:length]}\n\n{request_text}") == choose(ws, request_text)


def test_a_long_request_of_many_sentences_gets_examples(ws):
    detail = "The manager of the northern region wants to see every figure that the accountants have collected so far. "
    assert choose(ws, f"{REQUESTS[1]} {detail * 30}") == choose(ws, REQUESTS[1])


def test_what_a_paragraph_asks_for_in_its_last_words_is_found():
    library = {"long": [1], "journey": [1], "country": [1], "cousin": [1], "gasoline": [2], "gallon": [2]}
    frequency = {word: len(ids) for word, ids in library.items()} | {"": 40}

    def find(text: str) -> Passage:
        return find_passage(split_request(text), frequency, lambda word: [(id, 1.0) for id in library.get(word, ())])

    plan = "We plan a long journey across the country with my cousin and have 166 of gasoline."
    assert find(f"{plan} How much is that in gallons?").near == {1, 2}
    assert find(f"{plan}\nHow much is that in gallons?").near == {1}, "a paragraph of its own that says little"
    assert find(f"{plan} {'Nobody said anything new about ' * 30}\n").near == {1}


def test_a_prompt_that_is_only_a_log_is_still_looked_at(ws):
    assert choose(ws, LOG)


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_gets_nothing(ws, text):
    seed = ws.provision(Task(text=text))
    assert not seed.templates
    assert "similar" in seed.reason


def test_small_talk_gets_nothing_although_earlier_requests_began_with_it(tmp_path):
    with warmstart.open() as learned:
        sessions = cart_sessions(3)
        for lines in sessions:
            lines[0]["message"]["content"] = (
                "Good morning my friend, nice to meet you! Please fix the failing cart tests."
            )
        teach(learned, *sessions)
        learned.learn()
        assert choose(learned, "fix the cart tests", "/home/dev/shop")
        for text in ("good morning", "Good morning, my friend!", "nice to meet you"):
            assert not choose(learned, text, "/home/dev/shop")


def test_a_task_that_is_not_known_yet_gets_the_strongest_templates(ws):
    assert choose(ws, "")


@pytest.mark.slow
@needs_corpus
def test_real_prompts_of_any_length_get_the_same_templates(corpus):
    with warmstart.open() as learned:
        learned.ingest(corpus / "claude_code", corpus / "openai_chat")
        learned.learn()
        rows = [row for row in learned.sessions(limit=None) if row.task and 50 <= len(row.task) <= 1_200]
        same = tried = 0
        for row in rows[::3]:
            text, where = row.task or "", row.project or EVERYWHERE
            alone = learned.provision(Task(text=text, project=where)).templates
            for padded in (f"{text}\n\n{LOG}", f"{TRACE}{FENCED}\n{text}", f"{KIND}{text}\n\n{THANKS}{DATA}"):
                prompt = padded if len(padded) <= 5_000 else padded[-5_000:]
                tried += 1
                same += learned.provision(Task(text=prompt, project=where)).templates == alone
        assert tried > 100
        assert same >= 0.97 * tried, f"{same} of {tried}"


def test_a_call_that_differs_only_in_an_id_a_number_or_a_file_is_shown_once(tmp_path):
    lookups = [
        example("terminal", command, f"look up the order of customer {who}")
        for who, command in (
            ("ann", "orders show W8123 --limit 5 src/ann.json"),
            ("ben", "orders show W9947 --limit 7 src/ben.json"),
            ("cid", "orders show W1100 --limit 5 src/cid.json"),
        )
    ]
    refund = example("terminal", "orders refund W8123 src/ann.json", "refund the order of a customer")
    with warmstart.open() as opened:
        bundle = write_bundle(
            tmp_path / "t.json",
            template("lookup", *lookups),
            template("twin", *lookups[:2]),
            template("refund", refund),
        )
        opened.templates.import_(bundle, approve=True)
        calls = choose(opened, "look up the order of a customer and refund it")
        assert len(calls) == 2
        assert sum("orders show" in call for call in calls) == sum("orders refund" in call for call in calls) == 1
