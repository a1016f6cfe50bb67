"""Put stand-ins in the place of people's values: obviously fictional, of the same shape, the same throughout a session.

`mia_li_3668` becomes `user_name_0001`, `#W1234567` becomes `#W0000001`, `4 Elm St` becomes `1 Example Street`. An id in a
request and in an argument still agree, so the example still shows where the value comes from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import structs

from warmstart.model import PastCall, PastSession
from warmstart.templates.case_values import ID_WORDS, CaseValue, Kind, find_case_values

_FIRST = ("Alex", "Robin", "Kim", "Sam", "Jo", "Dana", "Noa", "Chris", "Pat", "Terry")
_LAST = ("Example", "Sample", "Specimen", "Placeholder", "Fictional", "Pattern", "Instance", "Model", "Proxy", "Dummy")
MADE_UP_NAMES = frozenset(
    "alex robin kim dana noa chris terry example specimen placeholder fictional".split()
)  # no topics
_WORD_NAMES = frozenset(  # names that are also words, from five letters on: only their capital tells
    """angel april archer baker banks berry bishop black bloom bowman brave brook brooks brown cannon carter chance charity
    chase christian church clark coleman cooper crystal daisy dawson destiny duke early english faith field fields fisher
    flowers forest foster fowler frank franklin gardner gates glass golden grace grant graves green hardy harmony harper
    haven hazel heath holly hooper hunter jewel joiner jordan judge justice knight large liberty light lilac lilly little
    london madison major marsh marshall mason mercy merry miles miller mills moody moore morning noble novel olive paige
    paris parker parks pearl penny piper plummer pointer porter potter powers price pride prince quick ranger reader
    rhodes rivers robin rowan royal rusty sailor sawyer savage serenity sharp shepherd silver skinner small snow spring
    steel steele stern stock stone storm street strong summer summers sunny swift taylor temple tower trinity turner tyler
    usher victor victoria violet virginia walker walls waters weaver weeks wells wheeler white willow winter winters
    woods wright young""".split()
)
_RUN = re.compile(r"[A-Za-z]+|\d+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MOST = 2_000  # values of one session
_LONG_NUMBER = 9  # digits; a card, an account or a phone: people write it in groups, calls in one piece
_GROUPING = r"[ \u00a0.()/-]{0,2}"
_BETWEEN = re.compile(r"[ \u00a0.()/-]")
_LETTER = r"[0-9A-Za-z_\u00aa-\u1fff]"  # of scripts with spaces between words
_PAIRS = 400  # of first and last names, at most


def put_stand_ins(session: PastSession, calls: Sequence[PastCall]) -> tuple[PastSession, list[PastCall]]:
    """Return a session's task and some of its calls with stand-ins for the values of people and cases."""
    said = dict.fromkeys(text for call in calls for text in (call.intent, call.asked, call.closing) if text)
    messages = [session.task, *said]
    values = find_case_values(messages, session.calls)
    if not values:
        return session, list(calls)
    stand_ins = name_stand_ins(values)
    replace = _make_replacer(stand_ins)
    small = _list_small(values, stand_ins)
    replace_small = _make_replacer(small | stand_ins) if small else replace

    def say(text: str) -> str:
        return replace_small(text) if text.islower() else replace(text)

    stored = tuple(_change_call(call, replace, say) for call in session.calls)
    changed = [_change_call(call, replace, say) for call in calls]
    made_up = tuple(dict.fromkeys(stand_ins.values()))
    return structs.replace(session, task=say(session.task), calls=stored, stand_ins=made_up), changed


def _list_small(values: Iterable[CaseValue], stand_ins: Mapping[str, str]) -> dict[str, str]:
    """Return the names that are words in small letters (`white`), for messages of people who use no capitals."""
    names = [value.text for value in values if value.kind in ("first", "last") and value.text.lower() in _WORD_NAMES]
    return {
        name.lower(): stand_ins[name].lower() for name in names if name in stand_ins and name.lower() not in stand_ins
    }


def _change_call(call: PastCall, replace: Callable[[str], str], say: Callable[[str], str]) -> PastCall:
    cause = replace(call.outcome.cause) if call.outcome.cause else call.outcome.cause
    return structs.replace(
        call,
        arguments=replace_in(call.arguments, replace),
        intent=say(call.intent),
        asked=say(call.asked),
        closing=say(call.closing),
        excerpt=replace(call.excerpt) if call.excerpt else call.excerpt,
        outcome=structs.replace(call.outcome, cause=cause),
    )


def name_stand_ins(values: Iterable[CaseValue]) -> dict[str, str]:
    """Return the stand-in of each value, also in other letters."""
    stand_ins: dict[str, str] = {}
    counts: Counter[Kind] = Counter()
    numbers: dict[tuple[Kind, str], int] = {}  # the same for a date in every form
    values = list(values)[:_MOST]
    for value in values:
        if _is_long_number(value.text):
            value = value._replace(text=_join_groups(value.text))
        elif value.kind == "id":
            value = value._replace(text=value.text.removeprefix("#"))  # people leave the sign out
        if value.text not in stand_ins:
            same = (value.kind, _read_date(value.text) if value.kind == "birth" else value.text.casefold())
            if same not in numbers:
                counts[value.kind] += 1
                numbers[same] = counts[value.kind]
            stand_ins[value.text] = make_stand_in(value, numbers[same])
    names = {kind: [value.text for value in values if value.kind == kind] for kind in ("first", "last")}
    if len(names["first"]) * len(names["last"]) <= _PAIRS:  # also a name that is too short by itself: `sara doe`
        for first, last, sign in product(names["first"], names["last"], " _-."):
            stand_ins.setdefault(f"{first}{sign}{last}", f"{stand_ins[first]}{sign}{stand_ins[last]}")
    single = {*names["first"], *names["last"]}
    for text, stand_in in list(stand_ins.items()):  # people also write their names and ids in other letters
        if len(text) > (2 if text in single else 4):
            stand_ins.setdefault(text.upper(), stand_in.upper())
        if len(text) > 4 and not (text in single and text.lower() in _WORD_NAMES):
            stand_ins.setdefault(text.lower(), stand_in.lower())
        if len(text) > 4 and text in names["last"]:  # in an id: `credit_card_trelawney`
            for name, other in ((text, stand_in), (text.lower(), stand_in.lower())):
                stand_ins.setdefault(f"_{name}", f"_{other}")
                stand_ins.setdefault(f"{name}_", f"{other}_")
        if "@" in text:
            stand_ins.setdefault(text.replace("@", "%40"), stand_in.replace("@", "%40"))
    return stand_ins


def _make_replacer(stand_ins: Mapping[str, str]) -> Callable[[str], str]:
    words = sorted(stand_ins, key=lambda text: (-len(text), text))
    pattern = _match_any(words)

    def change(match: re.Match[str]) -> str:
        text = match[0]
        return stand_ins[text] if text in stand_ins else _group_like(stand_ins[_join_groups(text)], text)

    return lambda text: pattern.sub(change, text)


def find_stand_ins(text: str, stand_ins: Iterable[str]) -> list[str]:
    """Return the stand-ins in a text as they stand there, in order; an id that holds a name as a whole."""
    found = _match_any(stand_ins, "[0-9A-Za-z_]*").findall(text)
    return list(dict.fromkeys(f"({one}" if one.find(")") >= 0 > one.find("(") else one for one in found))


def _match_any(values: Iterable[str], rest: str = "") -> re.Pattern[str]:
    """Return the pattern of all values, as whole words. `rest`: the pattern of what stands before `_name` or after `name_`."""
    listed = list(values)
    whole = [_spell(value) for value in listed if "_" not in (value[0], value[-1])]
    ends = [rest + re.escape(value) for value in listed if value[0] == "_"]
    starts = [re.escape(value) + rest for value in listed if value[-1] == "_" != value[0]]
    kinds = (rf"(?<!{_LETTER})(?:{{}})(?!{_LETTER})", rf"(?:{{}})(?!{_LETTER})", rf"(?<!{_LETTER})(?:{{}})")
    groups = zip(kinds, (whole, ends, starts), strict=True)
    return re.compile("|".join(kind.format("|".join(group)) for kind, group in groups if group))


def _spell(text: str) -> str:
    """Return the pattern of a value: a long number also in groups, another number not within an amount or a date."""
    if _is_long_number(text):
        return _GROUPING.join(map(re.escape, text))
    return rf"(?<![$€£.,/-]){text}(?![.,/-]\d)" if text.isdecimal() else re.escape(text)


def _is_long_number(text: str) -> bool:
    digits = sum(character.isdigit() for character in text)
    return digits >= _LONG_NUMBER and 2 * digits >= len(_join_groups(text))


def _join_groups(text: str) -> str:
    return _BETWEEN.sub("", text)


def _group_like(stand_in: str, text: str) -> str:
    """Return a stand-in in the groups of a text: `DE00 0000 1` for `DE89 3704 4`."""
    if len(stand_in) != len(_join_groups(text)):
        return stand_in
    left = iter(stand_in)
    return "".join(character if _BETWEEN.match(character) else next(left) for character in text)


def replace_in(value: Any, replace: Callable[[str], str]) -> Any:
    """Return a value with every text replaced, also keys: some tools name fields by an id."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, dict):
        return {
            replace(key) if isinstance(key, str) else key: replace_in(inner, replace) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [replace_in(inner, replace) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and (text := replace(str(value))) != str(value):
        return int(text)
    return value


def make_stand_in(value: CaseValue, number: int) -> str:
    """Return the stand-in for the number-th value of its kind in a session."""
    text = value.text
    match value.kind:
        case "first":
            return _pick(_FIRST, number)
        case "last":
            return _pick(_LAST, number)
        case "email":
            return f"name{number}@example.com"
        case "street":
            return _make_street(text, number)
        case "birth":
            return _make_date(text, number)
        case "user":
            return _make_user(text, number)
        case "id":
            return _make_id(text, number)
        case "phone" | "zip" | "digits":
            return _number_digits(text, number)


def _make_street(text: str, number: int) -> str:
    if re.match(r"(?i)(?:suite|apt|apartment|unit)\b", text):
        return _number_digits(text, number)
    return f"{number} Example Street" if text[0].isdigit() or not text[-1].isdigit() else f"Example Street {number}"


def _pick(names: Sequence[str], number: int) -> str:
    name = names[(number - 1) % len(names)]
    return name if number <= len(names) else f"{name}{(number - 1) // len(names) + 1}"


def _read_date(text: str) -> str:
    """Return a date in ISO form: `March 23, 1968`, `23 March 1968` and `1968-03-23` are one; other texts as they are."""
    words = _RUN.findall(text)
    month = next((at for at, name in enumerate(_MONTHS, 1) for word in words if word[:3].lower() == name), None)
    digits = [int(word) for word in words if word.isdigit()]
    year = next((number for number in digits if number > 31), None)
    rest = [number for number in digits if number != year]
    if year is None or not rest:
        return text
    if month is None and len(rest) > 1:
        month, day = rest[0], rest[1]
    else:
        day = rest[0]
    return f"{year}-{month}-{day}"


def _make_date(text: str, number: int) -> str:
    day = (number - 1) % 28 + 1
    if re.match(r"\d{4}-\d", text):
        return f"1990-01-{day:02}" + text[10:]
    return f"January {day}, 1990" if re.search(r"[A-Za-z]", text) else f"01/{day:02}/1990"


def _make_user(text: str, number: int) -> str:
    """Return words for words and digits for digits: `mia_li_3668` -> `user_name_0001`."""
    if "@" in text:
        return f"name{number}@example.com"
    words = iter(("user", "name"))
    shape = _RUN.sub(lambda run: run[0] if run[0].isdigit() else next(words, "x"), text)
    return _number_digits(shape, number) if re.search(r"\d", shape) else f"{shape}{number}"


def _make_id(text: str, number: int) -> str:
    """Return an id of the same shape. Words that only name its kind stay: `credit_card_4421486` -> `credit_card_0000001`.

    So does a short prefix (`W1234567`), but not half of a code (`XYNI64`). Other words may be a person's: `card_smith_4411`.
    """
    prefix = re.fullmatch(r"#?([A-Z]{0,4})-?(\d+)", text)
    if re.fullmatch(r"[a-z]+[_-]?\d+", text) or (prefix and len(prefix[1]) < len(prefix[2])):
        return _number_digits(text, number)
    if re.fullmatch(r"[a-z]+(?:[_-][a-z]+)+[_-]?\d+", text):
        known = re.sub("[a-z]+", lambda word: word[0] if word[0] in ID_WORDS else "name", text)
        return _number_digits(known, number)
    shape = re.sub(r"[A-Z]", "X", re.sub(r"[a-z]", "x", re.sub(r"\d", "0", text)))
    digits = str(number)
    return shape[: max(1, len(shape) - len(digits))] + digits


def _number_digits(text: str, number: int) -> str:
    """Return the text with zeros for its digits, and the number in the last ones.

    Digits alone may be a number in a call: it begins with 1, because zeros before a number are lost.
    """
    places = [at for at, character in enumerate(text) if character.isdigit()]
    characters = ["0" if character.isdigit() else character for character in text]
    if text.isdigit() and text[0] != "0":
        characters[0] = "1"
    for at, digit in zip(reversed(places), reversed(str(number)), strict=False):
        characters[at] = digit
    return "".join(characters)
