"""`warmstart usage`: tables and prices; unknown is never shown as zero."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import warmstart
from places import ROOT
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.doors.cli.main import main
from warmstart.doors.cli.usage import draw_bar, format_figure
from warmstart.errors import ConfigError, Refused
from warmstart.model import Price, Spent, Usage
from warmstart.usage.prices import TABLE, PriceList, find_cost, parse_name
from warmstart.usage.report import Account, Groups, UsageQuery, join

DAY, NEXT = "2026-10-01", "2026-10-02"


def spent(model: str = "m", day: str = DAY, guessed: bool = False, **figures: float) -> Spent:
    return Spent(Usage(**figures, basis="estimated" if guessed else "reported"), model, day)  # type: ignore[arg-type]


def account(
    id: str, *recorded: Spent, live: tuple[Spent, ...] = (), agent: str = "a", project: str | None = "/p"
) -> Account:
    return Account(id, agent, "m", project, DAY, recorded, live)


def price(usage: Usage, model: str) -> float | None:
    return PriceList({"m": Price(input=1, output=10)}).cost(usage, model)


def grouped(*accounts: Account, by: str = "day", **wanted: str):
    groups = Groups(UsageQuery(by=by, **wanted), price)
    for session in accounts:
        groups.take(session)
    return groups.report("here")


# Joining


def test_reported_wins_live_fills_and_estimates_come_last():
    recorded = [spent("a", input=10, output=2), spent("b", NEXT, input=30, output=2)]
    cells = join(recorded, [spent("x", input=999, reasoning=8, cost=4.0)])
    assert [(cell.model, cell.usage.input, cell.usage.reasoning, cell.usage.cost) for cell in cells] == [
        ("a", 10, 2, pytest.approx(12 / 44 * 4)),
        ("b", 30, 6, pytest.approx(32 / 44 * 4)),
    ]
    assert not any(cell.estimated for cell in cells)
    (cell,) = join([spent(guessed=True, input=10, output=2, cost=0.5)], [spent("x", input=7, cost=9.0)])
    assert cell == ("x", DAY, Usage(input=7, output=2, cost=0.5), frozenset({"output"}))


def test_alone_each_is_what_it_is():
    (cell,) = join([spent(guessed=True, input=1)], [])
    assert cell.estimated == {"input"} and cell.usage.input == 1
    assert join([], [spent(input=1)])[0].usage == Usage(input=1)
    assert join([], []) == ()


# Grouping


def test_sums_cover_known_figures_and_count_unknown_ones():
    report = grouped(
        account("1", spent(input=10, output=1)),
        account("2", spent(guessed=True, input=5, output=1)),
        account("3"),
        account("4", spent(cost=3.0)),
        account("5", spent("unpriced", input=1, output=1)),
    )
    (row,) = report.rows
    assert (row.sessions, row.input, row.output, row.total, row.cache_read) == (5, 16, 3, 19, None)
    assert (row.tokens_estimated, row.tokens_unknown, row.cost_estimated, row.cost_unknown) == (1, 2, 2, 2)
    assert row.cost == pytest.approx(3 + 35e-6)
    assert row.estimated == {"input": 5, "output": 1, "total": 6, "cost": pytest.approx(35e-6)}
    assert report.unpriced == ("unpriced",) and msgspec.structs.replace(report.totals, name=DAY) == row


@pytest.mark.parametrize("by", ["day", "agent", "model", "project", "session"])
def test_a_session_on_two_days_with_two_models_is_one_session(by):
    one = account("1", spent("m", input=10, output=1), spent("n", NEXT, input=5, output=1))
    report = grouped(one, account("2", spent(input=1, output=1), agent="b", project=None), by=by)
    assert report.totals.sessions == 2 and report.totals.input == 16
    assert sum(row.input for row in report.rows) == 16
    names = [row.name for row in report.rows]
    assert (
        names
        == {
            "day": [DAY, NEXT],
            "agent": ["a", "b"],
            "model": ["m", "n"],
            "project": ["/p", None],
            "session": ["1", "2"],
        }[by]
    )


def test_costs_add_up_to_the_same_in_any_order():
    """A store and a lake list sessions in other orders; the last digit of a sum of floats would depend on it."""
    amounts = [0.1, 0.2, 0.3, 1e-9, 402.1290980000001, 0.046963499, 1 / 3, 7e-7]
    accounts = [account(f"s{n}", spent(input=1, cost=amount)) for n, amount in enumerate(amounts * 40)]
    assert grouped(*accounts) == grouped(*reversed(accounts)) == grouped(*sorted(accounts, key=lambda one: one.id))
    assert grouped(*accounts).totals.cost == round(40 * sum(round(amount, 9) for amount in amounts), 9)


def test_a_period_takes_the_days_in_it():
    one = account("1", spent(input=10, output=1), spent("m", NEXT, input=5, output=1))
    undated = Account("2", "a", "m", None, "", (spent(day="", input=7, output=1),))
    assert grouped(one, undated, since=NEXT).totals.input == 5
    assert grouped(one, undated, until=DAY).totals.input == 10
    assert grouped(one, undated, until=DAY).undated == 1 and grouped(one, undated).undated == 0
    assert grouped(one, undated, since=DAY, until=NEXT).totals.sessions == 1
    assert grouped(one, undated).totals.input == 22


def test_a_session_that_reports_a_cost_is_not_priced_as_well():
    one = account("1", spent("m", input=10**6, output=1, cost=0.5), spent("n", input=10**6, output=1))
    assert grouped(one).totals.cost == 0.5 and grouped(one).totals.cost_unknown == 1


# Prices

MODELS = PriceList()


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("eu.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("vertex_ai/claude-opus-4-6@default", "claude-opus-4-6"),
        ("claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("openai/gpt-4.1-2025-04-14", "gpt-4.1"),
        ("azure/gpt-4o-2024-08-06", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("google/gemini-2.5-pro", "gemini-2.5-pro"),
        ("x-ai/grok-4.3", "grok-4.3"),
        ("deepseek/deepseek-chat", "deepseek-chat"),
        ("moonshotai/kimi-k2.5", "kimi-k2.5"),
        ("z-ai/glm-4.6", "glm-4.6"),
        ("mistralai/mistral-large-2512", "mistral-large-2512"),
    ],
)
def test_names_of_the_same_model_have_the_same_price(name, same):
    assert MODELS.find(same) is not None and MODELS.find(name) == MODELS.find(same)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt",
        "gpt-4o-turbo",
        "gpt-5-codex-ultra",
        "claude",
        "claude-sonnet",
        "claude-sonnet-4-5-fast",
        "my-claude-sonnet-4-5",
        "groq/gpt-4o",
        "ollama/deepseek-chat",
        "openai/claude-sonnet-4-5",
        "openrouter/deepseek/deepseek-chat:free",
        "ft:gpt-4o:acme",
        "anthropic/openai/gpt-4o",
        "<synthetic>",
        "../prices",
        "x" * 10_000,
    ],
)
def test_similar_names_and_unknown_hosts_have_no_price(name):
    assert MODELS.find(name) is None and MODELS.cost(Usage(input=1, output=1), name) is None


def test_a_snapshot_with_a_price_of_its_own_keeps_it():
    assert MODELS.find("gpt-4o-2024-05-13") != MODELS.find("gpt-4o")


def test_a_cost_needs_a_price_for_every_kind_of_token():
    full = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    assert find_cost(Usage(10**6, 10**6, 10**6, 10**6), full) == pytest.approx(22.05)
    assert find_cost(Usage(10**6, 0, None, None, 500), full) == 3.0, "reasoning is part of the output"
    assert find_cost(Usage(1, 1, 1), Price(input=1, output=1)) is None
    assert find_cost(Usage(1, 1, 0), Price(input=1, output=1)) is not None
    assert find_cost(Usage(input=1), full) is None and find_cost(Usage(output=1), full) is None
    assert find_cost(Usage(1, 1), Price(input=0, output=0)) == 0


def test_ones_own_prices_come_first():
    own = PriceList({"Claude-Sonnet-4-5": Price(input=1, output=2), "ollama/qwen3": Price(input=0, output=0)})
    assert own.find("anthropic/claude-sonnet-4-5-20250929") == Price(input=1, output=2)
    assert own.cost(Usage(5, 5), "ollama/qwen3") == 0
    assert own.find("qwen3") is None and own.find("gpt-4o") == MODELS.find("gpt-4o")


def test_the_table_says_where_it_is_from_and_is_small_and_sound():
    assert TABLE.stat().st_size < 60_000
    table = MODELS.table
    assert (
        re.match(r"litellm \d", table.source) and table.license == "MIT" and re.match(r"20\d\d-\d\d-\d\d", table.date)
    )
    for maker, models in table.models.items():
        assert models, maker
        for name, row in models.items():
            assert parse_name(name).model == name
            assert 0 < row[0] < 1_000 and 0 < row[1] < 1_000, name
            assert all(each is None or 0 <= each <= row[0] * 2 for each in row[2:4]), name


@pytest.mark.parametrize("wrong", ["input = -1", "input = 'much'", "inputs = 3", "input = nan", "input = inf"])
def test_wrong_prices_in_the_settings_are_reported(tmp_path, wrong):
    (tmp_path / "config.toml").write_text(f'[prices."gpt-x"]\n{wrong}\n')
    with pytest.raises(ConfigError, match=r"config\.toml"):
        config.load(tmp_path)


# The command


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two sessions with tokens, one without any text of the agent."""
    usage = {"input_tokens": 1_000, "output_tokens": 100, "cache_read_input_tokens": 20_000}
    for session, model in (("s1", "claude-sonnet-4-5"), ("s2", "nobody-knows-1")):
        lines = claude_lines(session)
        for line in lines:
            if line["type"] == "assistant":
                line["message"] |= {"usage": usage, "model": model}
        write_jsonl(tmp_path / "in" / f"{session}.jsonl", lines)
    write_jsonl(tmp_path / "in" / "s3.jsonl", claude_lines("s3", calls=0))
    with warmstart.open(tmp_path / "home") as ws:
        ws.ingest(tmp_path / "in")
    return tmp_path / "home"


def run(home: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, ["--home", str(home), "usage", *words])
    assert done.exit_code == code, done.output
    return done.output


def test_the_table_shows_what_is_estimated_and_what_is_not_known(home):
    shown = run(home)
    row = next(line for line in shown.splitlines() if line.strip().startswith("2026-10-01"))
    assert row.split() == ["2026-10-01", "3", "4,000", "400", "80,000", "-", "-", "84,400", "~$0.02", "█" * 12]
    assert "total" in shown
    assert "1 of 3 sessions: tokens unknown" in shown
    assert "1 of 3 sessions: cost from list prices (~; litellm" in shown
    assert "2 of 3 sessions: cost unknown" in shown
    assert "no price for: nobody-knows-1" in shown


def test_json_has_the_documented_keys_and_null_for_unknown(home):
    report = json.loads(run(home, "--by", "model", "--json"))
    assert list(report) == ["by", "since", "until", "rows", "totals", "undated", "unpriced", "prices", "unread_files"]
    keys = "name sessions input output cache_read cache_write reasoning total cost estimated tokens_estimated output_completed tokens_unknown cost_estimated cost_unknown"
    by_name = {row["name"]: row for row in report["rows"]}
    assert set(by_name) == {"claude-sonnet-4-5", "nobody-knows-1", None}
    for row in (*report["rows"], report["totals"]):
        assert " ".join(row) == keys
    assert by_name["nobody-knows-1"]["cost"] is None and by_name[None]["total"] is None
    assert by_name["claude-sonnet-4-5"]["cost"] == pytest.approx((2_000 * 3 + 200 * 15 + 40_000 * 0.3) / 1e6)
    docs = (ROOT / "docs" / "insights.md").read_text()
    assert all(f"`{key}`" in docs for key in (*report, *keys.split()))


def test_ones_own_price_makes_a_cost_known(home):
    (home / "config.toml").write_text('[prices."nobody-knows-1"]\ninput = 1.0\noutput = 1.0\ncache_read = 0.0\n')
    report = json.loads(run(home, "--json"))
    assert report["totals"]["cost_unknown"] == 1 and report["unpriced"] == []


def test_filters(home):
    assert json.loads(run(home, "--json", "--agent", "codex"))["totals"]["sessions"] == 0
    assert json.loads(run(home, "--json", "--project", "/home/dev/shop"))["totals"]["sessions"] == 3
    assert json.loads(run(home, "--json", "--since", "2026-10-02"))["totals"]["input"] is None
    assert json.loads(run(home, "--json", "--since", "36500"))["totals"]["sessions"] == 3
    assert "no session with usage matches" in run(home, "--until", "2026-09-30")
    assert "1 more rows are not shown" in run(home, "--by", "session", "--limit", "2")


def test_reports_from_the_command_line(home):
    words = ("s1", "--agent", "claude-code", "--reasoning", "5", "--at", "2026-10-01T12:00:00+02:00")
    assert "counted" in run(home, "set", *words)
    assert "unchanged (the totals are not larger than before)" in run(home, "set", *words)
    taken = json.loads(run(home, "add", "live", "--input", "7", "--event", "e", "--at", "1790000000", "--json"))
    assert taken == {"session": "live", "changed": True, "reason": "", "usage": {"input": 7} | dict.fromkeys(("output", "cache_read", "cache_write", "reasoning", "cost")) | {"basis": "reported"}}  # fmt: skip
    assert "the event was already counted" in run(home, "add", "live", "--input", "7", "--event", "e")
    totals = json.loads(run(home, "--json"))["totals"]
    assert (totals["sessions"], totals["reasoning"], totals["input"]) == (4, 5, 4_007)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("set", "s", "--input", "-1"), 2, "not in the range"),
        (("set", "s", "--input", "1e3"), 2, "not a valid integer"),
        (("set", "s", "--input", str(10**16)), 2, "not in the range"),
        (("set", "s", "--cost", "nan"), 1, "not a number of dollars"),
        (("set", "s", "--at", "noon", "--input", "1"), 2, "is not a time"),
        (("set", "s"), 1, "has no figures"),
        (("set", "", "--input", "1"), 1, "id is empty"),
        (("add", "s", "--input", "1"), 1, "--event"),
        (("--by", "moon"), 2, "moon"),
        (("--since", "yesterday"), 2, "neither a number of days nor a date"),
    ],
)
def test_mistakes_are_reported(home, words, code, message):
    assert message in run(home, *words, code=code)


def test_the_library_refuses_wrong_arguments(home):
    with warmstart.open(home) as ws:
        for wish in ({"by": "moon"}, {"since": "yesterday"}, {"until": "2026-13-01"}):
            with pytest.raises(Refused):
                ws.usage.report(**wish)


def test_figures_and_bars_for_people():
    assert format_figure(None, "input", True, True) == "-"
    assert format_figure(1_234_567, "input", True, True) == "~1,234,567"
    assert format_figure(1_234_567, "input", False, False) == "1.23M"
    assert (
        format_figure(999_600, "input", False, False) == "1M" and format_figure(9_999, "total", False, False) == "9,999"
    )
    assert format_figure(0.0001, "cost", True, True) == "~<$0.01" and format_figure(0.0, "cost", False, True) == "$0.00"
    assert draw_bar(None, 10) == draw_bar(0, 10) == draw_bar(5, 0) == ""
    assert draw_bar(10, 10) == "█" * 12 and draw_bar(1, 10**9) == "▏" and len(draw_bar(5, 10)) == 6
