"""Classify the answer of a scheduled run: delivered, silent (on purpose), or failed.

Most answers with "failed" in them are good reports about failures: of builds, of logins, of rockets. So a failure has to be
the run's own: the marker; or the agent saying that it could not do its work; or its script or command failing, now, in plain
words and not in a quotation, a condition, a negation or a story about yesterday.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from warmstart.excerpt import cut, first

SILENT_MARK = "[SILENT]"
FAILED_MARK = "[SCRIPT_FAILED]"

_SILENT = frozenset(("[SILENT]", "SILENT", "NO_REPLY", "NO REPLY"))
_NO_ANSWER = re.compile(r"\W*(?:\((?:empty|no (?:response|answer|reply)(?: generated)?)\)\W*\Z|no reply: )", re.I)
_MOST_TEXT = 20_000
_MOST_REASON = 200
_MOST_SENTENCE = 600  # characters looked at of one sentence


class JobOutput(Struct, frozen=True):
    """How a scheduled run ended."""

    status: Literal["delivered", "silent", "failed"]
    reason: str = ""  # why it failed


def classify_job_output(text: str) -> JobOutput:
    """Classify an answer as delivered, silent or failed, with the reason of a failure."""
    text = cut(text, _MOST_TEXT)
    lines = _split_lines(text)
    if not lines:
        return JobOutput("silent")
    if mark := _find_mark(lines):
        reason = mark[len(FAILED_MARK) :].strip("*_`:- \t")
        return JobOutput("failed", first(reason, _MOST_REASON) or "the run says so and gives no reason")
    if lines[0].upper().startswith(SILENT_MARK) or any(_is_silence(line) for line in (lines[0], lines[-1])):
        return JobOutput("silent")
    reason = _find_failure(text)
    return JobOutput("failed", first(reason, _MOST_REASON)) if reason else JobOutput("delivered")


def says_it_failed(text: str) -> bool:
    """Return whether an answer carries the mark of a failed run, in its first or last line."""
    return FAILED_MARK in text.upper() and bool(_find_mark(_split_lines(cut(text, _MOST_TEXT))))


def is_no_answer(text: str) -> bool:
    """Return whether an answer is empty, or only the agent program's note that there was none."""
    return not text.strip() or _NO_ANSWER.match(text) is not None


def asks_for_marks(request: str) -> bool:
    """Return whether a request explains the marks of scheduled runs, as `build_job_prompt` writes it."""
    return FAILED_MARK in request and SILENT_MARK in request


def _split_lines(text: str) -> list[str]:
    return [line for line in (raw.strip().strip("*_`~ \t") for raw in text.splitlines()) if line]


def _find_mark(lines: list[str]) -> str:
    """Return the line with the mark of a failed run; empty if there is none."""
    ends = (lines[0], lines[-1]) if lines else ()
    return next((line for line in ends if line.upper().startswith(FAILED_MARK)), "")


def _is_silence(line: str) -> bool:
    return " ".join(line.upper().split()) in _SILENT


# Phrases that people and models really write; tests/data/jobs has the list.

_CODE = r"(?:an? )?(?:non-?zero|(?:exit )?(?:code|status)(?: code)? -?[1-9]\d*|[1-9]\d*\b)"
_BROKE = (
    r"(?:(?:has |have |had )?(?:just )?(?:failed|crashed|died|broke|hung|errored(?: out)?|aborted|timed out|times out|bombed(?: out)?|blew up|gave up|ended early|ran out of (?:memory|disk))"
    rf"|exited (?:with )?{_CODE}|(?:returned|stopped with|ended with|gave) (?:an? )?(?:error|{_CODE})"
    r"|(?:raised|threw|hit) an? (?:\w+ )?(?:error|exception|timeout)|refused to (?:start|run)|(?:was|got|is being) (?:\w+-)?(?:killed|aborted|terminated)"
    r"|(?:kept|keeps|is|has been) (?:failing|crashing|timing out)|(?:can ?not|can['’]t|could not|couldn['’]t) run|stopped with \S+"
    r"|(?:did not|didn['’]t) (?:run|succeed|complete|finish|work|start|go through))\b"
)
_SUBJECT = r"(?:script|command|tool call|process|program|subprocess|collector|exporter|importer|scraper|crawler|fetcher|parser)"
_REPORTED_ON = (
    r"(?:CI|builds?|tests?|suites?|pipelines?|workflows?|deploys?|deployments?|logins?|payments?|launch|checks?)"
)
_NOT_WORK = (  # "I could not find ..." is no failure in a good report
    r"(?!(?:find|see|spot|say|decide|recommend|reproduce|resist|agree|confirm|help|imagine|think|remember|promise|rule)\b)"
)
_WORK = rf"{_NOT_WORK}[a-z]+"
_WORKED = (
    r"(?:run|executed|fetched|completed?|finished|produced|created|generated|downloaded|collected|started|performed|"
    r"updated|sent|uploaded|written|done|made|built|delivered|prepared|published|synced|imported|exported|backed up)"
)
_CAME = (  # past participles, except those of good news
    r"(?!(?:affected|needed|changed|required|expected|reported|included|impacted|used|involved|seen|noticed|lost|broken|"
    r"damaged|missed|found|flagged|touched|surprised)\b)(?:\w+ed|run|sent|written|done|made|built|complete)"
)
_RESULT = r"(?:report|digest|data|results?|output|summary|figures|numbers|answer|backup|export|update|forecast)"

_OWN_COMMAND = re.compile(  # "the backup script crashed", but not "3 scripts failed" nor "no script failed"
    rf"(?:^|[^\w-])(?:(?:the|this|my|its|your)\s+(?:[\w'’./-]+\s+){{0,3}}?|^\W*(?:[\w-]+\s+){{0,2}}?){_SUBJECT}\b"
    rf"(?:\s+`[^`]*`|\s+\([^)]*\)|\s+itself|\s+unfortunately)?\s+(?:itself\s+)?{_BROKE}",
    re.I,
)
_NAMED_COMMAND = re.compile(rf"(?:^\W*|[:,] |\b(?:but|because|so|and|then|command) )`[^`]+`\s+(?:just )?{_BROKE}", re.I)
_IT_BROKE = re.compile(
    rf"\b(?:ran|run|running|tried|attempted|started|executed)\b.{{0,80}}\b(?:but|and) it {_BROKE}", re.I
)
_RUN_BROKE = re.compile(
    r"\b(?:this |the |today['’]s )?(?:job|run|check)\b (?:(?:did not|didn['’]t) (?:run|complete|finish|succeed|start)"
    r"|was (?:aborted|killed|cancelled)|could not (?:run|start|complete|finish))\b"
    r"|\b(?:this|today['’]s|tonight['’]s) (?:run|job|check|\w+) (?:failed|is (?:unavailable|incomplete|missing|empty))\b"
    r"|^\W*(?:run|job) incomplete\b|^\W*[A-Z][a-z]+ing (?:the |your )[^.:]{1,40} failed\b",
    re.I,
)
_HEADLINE = re.compile(  # "Job failed.", "Stock check aborted": a short first sentence
    rf"^\W*(?!.*\b{_REPORTED_ON}\b.*\bfailed)(?:[\w'’-]+:? ){{1,3}}(?:failed|aborted|crashed|ended early|timed out|did not go through)\s*(?:[.:!(]|$)",
    re.I,
)
_FAILED_TO = re.compile(
    rf"^\W*(?:(?:error|sorry|note|unfortunately)\W+)?(?:(?:failed|unable) to|could not|couldn['’]t) {_WORK}\b", re.I
)
_I_COULD_NOT = re.compile(
    r"\bI(?:['’]m| am| was|['’]ve been| have been)?(?: therefore| still| also| unfortunately)? "
    rf"(?:could not|couldn['’]t|can ?not|can['’]t|unable to|not able to|wasn['’]t able to|failed to) {_WORK}\b",
    re.I,
)
_NOT_THIS_TASK = re.compile(
    r"\bI (?:could not|couldn['’]t|can ?not|can['’]t) (?:complete|finish|do|run|carry out) (?:this|the|your|today['’]s) "
    r"(?:\w+ )?(?:task|job|report|check|script|command)\b",
    re.I,
)
_COULD_NOT_BE = re.compile(
    rf"(?:^|[^\w-])(?:the|this|today['’]s|tonight['’]s)\s+(?:[\w'’-]+\s+){{0,4}}?could(?: not|n['’]t) be {_WORKED}\b",
    re.I,
)
_NOTHING_CAME = re.compile(
    rf"\b(?:(?:there is|there['’]s|I have|we have|gave|returned|produced|printed|with) (?:no|nothing)\b(?: \w+)? ?(?:{_RESULT}|to \w+)"
    rf"|(?:so|and) I have (?:no|nothing)|I (?:do not|don['’]t) have (?:the|any|your)|nothing I can (?:report|tell|give|show)|your \w+ were not {_CAME}"
    r"|no (?:\w+ )?\w+ (?:today|tonight|this (?:time|morning|evening|week|hour))"
    rf"|no (?:\w+ )?{_RESULT} (?:was|were|could be|is) (?:{_WORKED}|available|received)"
    rf"|nothing (?:was|could be|has been) {_CAME}|(?:printed|produced) (?:nothing|no \w+)"
    r"|0 \w+ (?:were )?(?:imported|exported|uploaded)"
    rf"|(?:was|is) (?:therefore )?(?:not {_CAME}|skipped)|^\W*\w+ not (?:taken|{_WORKED})|skipping the|{_RESULT}s? (?:is|are) missing)\b",
    re.I,
)
_BROKEN = re.compile(  # any failure of anything
    rf"\b(?:failed|failing|failure|crash(?:ed)?|time[sd]? ?out|exited (?:with )?{_CODE}|exit (?:code|status) [1-9]\d*|killed|gave up"
    r"|no longer (?:exists|works)|[45]\d\d (?:access )?(?:denied|forbidden)|command not found|no such file|not found|does not exist|refused|denied|rejected|unreachable|unavailable"
    r"|not available|not there|not installed|isn['’]t (?:installed|running)|status [1-9]\d*|without access|unauthori[sz]ed"
    r"|HTTP [45]\d\d|answer(?:s|ed|ing) (?:with )?[45]\d\d|\w*Error|errors?|exception"
    r"|could not resolve|out of memory|no space left|missing|locked|not running|fatal|hung|broke|aborted|down)\b",
    re.I,
)
_RAW_LINE = re.compile(  # a program's error message as the first line of an answer
    r"\A\W*(?:(?:/\w+)*/?(?:ba|z|da)?sh: (?:line \d+: )?)?[\w./-]+: (?:command )?not found\b"
    r"|\A\W*curl: \(\d+\) |\A\W*Traceback \(most recent call last\)|\A\W*(?:fatal|error): ",
    re.I,
)
_EXCUSED = re.compile(  # a failure that is past, hypothetical, or not this run's
    r"\b(?:if|unless|whenever|in case|would|as soon as|no longer (?!exist|work|there|available|respond|reachable)|fixe[sd]|fixed|fixing|resolved|repaired|recovered"
    r"|(?:no|not a single|none of the|never an?y?|zero|0) (?:\w+ )?(?:scripts?|commands?|jobs?|requests?|errors?|failures?)"
    r"|(?:did not|didn['’]t|does not|doesn['’]t|never) (?:fail|crash|time out)|(?:that|which|who) (?:had )?(?:failed|crashed)"
    r"|yesterday|last (?:week|month|year)|(?:days?|weeks?|months?) ago|has (?:run|been ok|passed|cleared)|every (?:time|one) since"
    r"|(?:on|since|until|last) (?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?"
    r"|(?:on|since|in) (?:\d{1,2}\.? )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
    r"|post-?mortem|incident|outage|changelog|release notes|root cause|(?:log|CI|build) (?:digest|summary|report)"
    r"|times this (?:week|month)|passes again|green again|rolled back|customers?|users?"
    r"|(?!(?:I|it|which|that)\b)\w+ (?:said|wrote|reported|told|asked|mentioned|noted|complained|explained)|why)\b",
    re.I,
)
_MADE_GOOD = re.compile(
    r"\b(?:retr(?:y|ied)|(?:second|third|next) (?:attempt|try|run|one)|tried again|ran it again|re-?ran|instead|fallback)\b"
    r"[^.]{0,80}\b(?:succeeded|worked|got|passed|fine|completed|finished|read|used|fetched|went through)\b"
    r"|\b(?:used?|from|fell back (?:to|on)|switched to) (?:the|a|an) (?:\w+ )?(?:cached?|backup|mirror|fallback|copy|archive|other)\b",
    re.I,
)

_WENT_WELL = re.compile(
    r"^(?!.*\b(?:not|never|un\w+|in\w+)\b)[^.:]{0,60}\b(?:OK|succeeded|success(?:ful|fully)?|finished|completed|done|passed)\b",
    re.I,
)

_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_QUOTED_LINE = re.compile(r"^(?:[ \t]*>.*| {4,}\S.*|\t.*|[ \t]*\|.*\|[ \t]*)$", re.M)
_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|«[^»\n]{0,300}»|(?<![\w])'[^'\n]{3,300}'(?!\w)")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_LISTED = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s")


class _Sentence(Struct, frozen=True):
    """A sentence of the run's own that is not excused."""

    text: str
    plain: str  # the text without quotations
    listed: bool  # an item of a list; those more often report on something else


def _find_failure(text: str) -> str:
    """Return the sentence that says the run failed; empty if none does."""
    if _RAW_LINE.match(text):
        return text.strip().splitlines()[0]
    prose = _QUOTED_LINE.sub("", _FENCE.sub("", text))
    sentences = list(_split_sentences(prose))
    nothing = next((sentence.text for sentence in sentences if _NOTHING_CAME.search(sentence.plain)), "")
    if _MADE_GOOD.search(prose) and not nothing:
        return ""
    unlisted = [sentence for sentence in sentences if not sentence.listed]
    if unlisted and prose.lstrip().startswith(unlisted[0].text[:20]) and _HEADLINE.search(unlisted[0].plain):
        return unlisted[0].text
    is_broken = _BROKEN.search(text) is not None
    for sentence in unlisted:
        if _says_it_broke(sentence.plain) or (is_broken and _says_it_could_not(sentence.plain)):
            return sentence.text
    if sentences and _WENT_WELL.search(sentences[0].plain):
        return ""
    return nothing if any(_BROKEN.search(sentence.plain) for sentence in sentences) else ""


def _says_it_broke(plain: str) -> bool:
    patterns = (_OWN_COMMAND, _NAMED_COMMAND, _IT_BROKE, _RUN_BROKE, _NOT_THIS_TASK)
    return any(pattern.search(plain) for pattern in patterns)


def _says_it_could_not(plain: str) -> bool:
    return any(pattern.search(plain) for pattern in (_I_COULD_NOT, _FAILED_TO, _COULD_NOT_BE))


def _split_sentences(prose: str) -> Iterator[_Sentence]:
    for line in prose.splitlines():
        listed = _LISTED.match(line) is not None
        for part in _SENTENCE_END.split(_LISTED.sub("", line)):
            sentence = part.strip().strip("*_# \t").strip()[:_MOST_SENTENCE]
            plain = _QUOTED.sub('""', sentence)
            if sentence and not _EXCUSED.search(plain):
                yield _Sentence(sentence, plain, listed)
