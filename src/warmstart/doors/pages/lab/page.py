"""The lab's report as one HTML page: no network, no script, its style and plots inside.

An engineer should see in ten seconds which arm is better and how sure that is, so the finding is the title, and the plot of
solved tasks stands beside that of the differences. Task texts, names and the command come from outside: everything is
escaped, and a content policy allows nothing but the one style sheet.
"""

from __future__ import annotations

from pathlib import Path

from warmstart.doors.pages.insights.page import STYLE as SHARED_STYLE
from warmstart.doors.pages.lab.measures import show_arms, show_errors, show_solved, show_tokens, show_waits, typeset
from warmstart.doors.pages.lab.tasks import show_families, show_harmed, show_tasks
from warmstart.doors.pages.markup import Markup, element, isolate, join, make_document, make_section
from warmstart.doors.render.lab_findings import LabFinding, describe_finding, describe_run, list_limits, safe
from warmstart.doors.render.terminal import clean
from warmstart.lab.run.summary import LabReport
from warmstart.plurals import format_count

MARK = "<!doctype html><!-- made by warmstart lab -->"
STYLE = Path(__file__).with_name("page.css")
DECIDES = "This measure decides; the others help to understand."
_COMMAND = 2_000  # characters shown of the command


def render_page(report: LabReport) -> str:
    """Return the whole page, without half characters, so that it can be written as UTF-8."""
    style = SHARED_STYLE.read_text("utf-8") + STYLE.read_text("utf-8")
    page = make_document(MARK, "Warmstart lab", style, _header(report), _main(report), _footer(report))
    return page.encode("utf-8", "replace").decode()


def _header(report: LabReport) -> Markup:
    finding = describe_finding(report)
    about = (
        "Warmstart lab",
        safe(report.model.name, 60),
        safe(report.began or report.at, 40)[:10],
        f"{report.done} of {format_count(report.planned, 'session')}",
        f"{format_count(len(report.tasks), 'task')} in {len(report.families)} families",
    )
    return element(
        "header",
        {},
        element("p", {"class": "kicker"}, *_between(about)),
        _show_finding(finding),
        _progress(report) if not report.finished else None,
    )


def _between(parts: tuple[str, ...]) -> list[Markup]:
    return [join(" · " if at else "", isolate(part)) for at, part in enumerate(parts) if part]


def _show_finding(finding: LabFinding) -> Markup:
    first, *rest = finding.details or ("",)
    return join(
        element("h1", {"class": f"finding {finding.tone}"}, _prose(finding.headline)),
        element("p", {"class": "sure"}, _prose(first)) if first else None,
        *(element("p", {"class": "lead"}, _prose(detail)) for detail in rest),
    )


def _prose(text: str) -> Markup:
    """Return a sentence that contains names from outside. Unlike a name, it is never broken inside a number."""
    return element("bdi", {}, typeset(clean(text)))


def _progress(report: LabReport) -> Markup:
    label = f"{report.done} of {report.planned} sessions done"
    return element("progress", {"max": max(1, report.planned), "value": report.done, "aria-label": label}, label)


def _main(report: LabReport) -> Markup:
    if not report.arms:
        return element("main", {}, element("p", {"class": "note"}, "No session has been run yet."))
    so_far = "" if report.finished else " so far"
    return element(
        "main",
        {},
        make_section(f"Tasks solved{so_far}", DECIDES if len(report.arms) > 1 else "", show_solved(report)),
        make_section("The arms", "", show_arms(report)),
        make_section(f"Errors per call{so_far}", "", show_errors(report)),
        make_section("Turns to the first success", "", show_waits(report)),
        make_section("Tokens per session", "", show_tokens(report)),
        make_section("Which kinds of work", "Tasks solved; the largest gain first.", show_families(report)),
        make_section("Harmed tasks", _harm_lead(report), show_harmed(report)),
        make_section("Every task", "", show_tasks(report)),
    )


def _harm_lead(report: LabReport) -> Markup:
    control = safe(report.report.control)
    return isolate(f"Solved {control}, failed with the seed of the arm. A better mean does not excuse them.")


def _footer(report: LabReport) -> Markup:
    facts = [
        element("div", {}, element("dt", {}, name), element("dd", {}, isolate(fact)))
        for name, fact in describe_run(report)
    ]
    command = clean(report.command)
    shown = command if len(command) <= _COMMAND else f"{command[:_COMMAND]} [...]"
    return element(
        "footer",
        {},
        element("h2", {}, "What this cannot show"),
        element("ul", {}, *(element("li", {}, limit) for limit in list_limits(report))),
        element("h2", {}, "Run it again"),
        element("pre", {"class": "command", "dir": "ltr", "tabindex": 0}, element("code", {}, shown)),
        element("dl", {"class": "facts"}, *facts),
    )
