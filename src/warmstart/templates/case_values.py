"""Find the values in a session that belong to a person or a case: names, addresses, e-mails, ids, birthdays, cards.

A value is known by its field in the arguments and results of business tools (`"last_name": "Li"`), and by its form in
messages. Sessions that use only files, shells and the web have no such values: their names and paths are the project's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from warmstart.calls import tools
from warmstart.model import PastCall

Kind = Literal["first", "last", "street", "email", "phone", "birth", "zip", "user", "id", "digits"]

_ADDRESSED = frozenset(("first", "last", "street", "email"))  # values that make a postal code somebody's
_DEPTH = 12  # levels of a value that are searched
_LONGEST = 120  # characters of a value
_SHORT = 4  # digits of a security code; a longer number must be a card's
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ſ"
_WORD = re.compile(rf"[{_UPPER}]?[{_LOWER}]+\d*|[{_UPPER}]+(?![{_LOWER}])\d*|\d+")
_PAIR = re.compile(r'"([\w -]{1,60})"\s*:\s*(?:"([^"\\]{1,120})"|(\d{3,19})\b)')
_LIST = re.compile(r'"([\w -]{1,60})"\s*:\s*\[((?:\s*"[^"\\]{1,120}"\s*,?)+)')
_CUT_OFF = re.compile(r'"([\w -]{1,60})"\s*:\s*"([^"\n]{1,120})\n\[\.\.\. \d+ characters left out')
_LEFT = re.compile(r'characters left out \.\.\.\]\n[^"\w]{0,4}"?([\w@.#\' -]{2,60})"')
_NAMES_IN_ID = re.compile(r"([a-z]{2,})[_.]([a-z]{2,})[_.]?\d*(?:@|$)")
_LINE = re.compile(r"^[ \t*-]*([^\W\d_][\w -]{1,30}?)[ \t]*:\**[ \t]+(\S.{0,118}?)[ \t]*$", re.M)  # `Phone: 030 4455`
_TEXT = re.compile(r'"([^"\\]{1,120})"')

_CATALOGUE = frozenset("product item flight sku variant model tool file host server branch commit session call".split())
_PEOPLE = frozenset(
    "user customer client member patient employee guest account subscriber buyer kunde cliente utente usuario".split()
)
_PERSONS = frozenset(
    """full customer passenger patient holder cardholder recipient contact client guest employee person traveller traveler
    reporter owner counterparty assignee requester beneficiary payee payer sender receiver kin author driver tenant
    landlord student pupil teacher attendee participant member applicant insured policyholder claimant doctor physician
    spouse child parent mother father guardian signer user approver manager adjuster witness witnesse technician picker
    attn reviewer clerk waiter ansprechpartner""".split()
)
_NAME_FIELDS = frozenset("name nombre nome naam navn nom".split())
_WHOSE = frozenset("to from display legal preferred real".split())  # of a name: mostly a person's
_CASES = frozenset(
    """order reservation booking payment transaction invoice ticket case claim passenger patient loyalty membership
    passport ssn license licence tracking card certificate confirmation policy shipment refund contract loan iban
    insurance voucher dni nif cpf kundennummer bestellnummer auftragsnummer rechnungsnummer buchungsnummer
    vertragsnummer personalnummer ausweisnummer""".split()
)
_NO_NAMES = _CASES | _CATALOGUE | frozenset("credit debit gift paypal bank method".split())  # in an id: what it is of
_ID_ENDS = frozenset("id ids number numbers no num code ref reference key".split())
_ACCOUNTS = frozenset(
    "savings checking current joint business main primary test admin support info service team".split()
)
ID_WORDS = _NO_NAMES | _PEOPLE | _ID_ENDS | _ACCOUNTS  # what ids are of, and not whose
_PHONES = frozenset(
    """phone telephone tel mobile cell fax msisdn telefon telefono teléfono telefone téléphone handy handynummer
    telefonnummer celular móvil""".split()
)
_BIRTHS = frozenset(
    "dob birth birthday birthdate geburtsdatum geburtstag nacimiento naissance nascita nascimento".split()
)
_ZIPS = frozenset("zip zipcode postal postcode plz postleitzahl cep".split())
_STREETS = frozenset(
    """street address1 address2 addr line1 line2 strasse straße anschrift adresse direccion dirección domicilio indirizzo
    endereco endereço adres""".split()
)
_NO_STREETS = frozenset("ip mac url web email mail memory wallet bind remote".split())
_NUMBERS = frozenset("cvv cvc pin last4".split())
_FIRST, _LAST = (
    frozenset("first given firstname forename vorname prenom prénom voornaam".split()),
    frozenset(
        "last family lastname surname nachname familienname apellido apellidos cognome sobrenome achternaam".split()
    ),
)
_LOGIN = frozenset(("user", "username", "login"))
_ORGANIZATIONS = frozenset(
    """team support department dept group office service services desk bank inc ltd llc gmbh ag corp company agency hr it
    admin system sales billing hotel clinic hospital school university store shop center centre infrastructure operations
    ops reliability engineering platform security network alerts robot bot release""".split()
)
_UNNAMED = frozenset("unknown none null n/a na test anonymous true false default root system".split())

_STREET_KINDS = "|".join(
    """Street St Avenue Ave Road Rd Drive Dr Lane Ln Boulevard Blvd Court Ct Way Place Pl Highway Hwy Terrace Parkway
    Circle""".split()
)
_STATES = "|".join(
    """AL AK AZ AR CA CO CT DC DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI
    SC SD TN TX UT VT VA WA WV WI WY""".split()
)
_CASE_WORDS = "reservation|booking|confirmation"
_CAPITALIZED = rf"[{_UPPER}][{_LOWER}]+(?:[-'’][{_UPPER}]?[{_LOWER}]+)?"
_NAME = rf"({_CAPITALIZED})[ \t]+({_CAPITALIZED})\b"
_DATE = r"(\d{4}-\d\d?-\d\d?|\d\d?[/.]\d\d?[/.]\d{2,4}|[A-Z][a-z]+ \d\d?(?:st|nd|rd|th)?,? \d{4}|\d\d?\.? [A-Z][a-zä]+ \d{4})"
_BORN = r"(?i:\bborn\b|\bbirth\w*|\bdob\b|\bgeboren\b|\bgeburts\w*|\bnacid[oa]\b|\bnée? le\b|\bnat[oa] il\b)"
_SECRET_WORDS = (
    r"(?:(?:(?:access|auth\w*|refresh|api|client|security|login) )?(?:tokens?|secrets?|password|pin|api key)"
    r"|(?:access|pass|security|verification) ?code)"
)
_LINK = r"(?:,? (?:is|are|of|being|as|labell?ed|named|called|with|number|starting)){0,3}\s*[:=]?\s*"
_MASKED = re.compile(r"\{\{SECRET:[^{}]*\}\}")
_IBAN = re.compile(r"(?<![\w-])([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)(?![\w-])")
_EVERYWHERE: tuple[tuple[Kind, re.Pattern[str]], ...] = (  # in messages of every session
    ("digits", re.compile(r"\b(?:cvv|cvc|cv2|security code|card code)\d?\b\D{0,15}(\d{3,4})\b", re.I)),
    ("digits", re.compile(r"(?<![\w-])(\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7})(?![\w-])")),
    ("id", _IBAN),
)
_MESSAGES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("email", re.compile(r"\b([\w.+-]+@[\w-]+(?:\.[\w-]+)+)\b")),
    ("user", re.compile(r"\b([a-z]+(?:_[a-z]+)+_\d{3,})\b")),
    ("id", re.compile(r"(?<!\w)(#(?:[A-Z]{1,3}\d|\d\d)\d{3,})\b")),
    ("id", re.compile(r"\b((?:paypal|certificate|voucher|card|account)_\d{3,})\b")),
    ("id", re.compile(r"(?i:\bending (?:in|with)\b|\blast (?:four|4)(?: digits)?\b)\D{0,12}(\d{4,7})\b")),
    ("id", re.compile(rf"(?i:\b(?:{_CASE_WORDS}|order|ticket|claim)s?\b)[^.\n]{{0,30}}?\b((?=\w*\d)[A-Z0-9]{{6,12}})\b")),
    ("id", re.compile(rf"(?i:\b(?:{_CASE_WORDS})s?\b)[^.\n]{{0,20}}?\b([A-Z]{{6}})\b")),
    ("street", re.compile(rf"\b(\d{{1,5}}(?: [A-Z][a-z]+){{1,3}} (?:{_STREET_KINDS}))\b\.?")),
    ("street", re.compile(rf"\b([{_UPPER}][{_LOWER}]+(?:straße|strasse|str\.|allee|weg|platz|gasse) \d{{1,4}}[a-z]?)\b")),
    ("street", re.compile(r"\b((?:Suite|Apt\.?|Apartment|Unit) #?\d{1,5}[A-Z]?)\b")),
    ("zip", re.compile(r"(?i:\b(?:zip|postal|post)[ -]?code\b|\bzip\b)\D{0,12}(\d{5}(?:-\d{4})?)\b")),
    ("zip", re.compile(rf"\b(?:{_STATES}),? (\d{{5}}(?:-\d{{4}})?)\b")),
    ("birth", re.compile(rf"{_BORN}[^.\n]{{0,30}}?{_DATE}")),
    ("id", re.compile(rf"(?i:\b{_SECRET_WORDS}\b){_LINK}[\"'‘“`]?((?=[\w!@#$%^&*-]*\d)[\w!@#$%^&*-]{{4,64}})")),
    ("id", re.compile(r"(?i:\b(?:passport|licen[cs]e|policy|insurance|social security|account|card)\b(?: number| no\.?| id)?)"
                      rf"{_LINK}[\"'‘“`]?((?=\w*\d)[A-Z0-9_-]{{5,20}})\b")),
    ("phone", re.compile(r"(?<![\w-])(\+?\d{0,2}[ -]?\(?\d{3}\)?[ -]\d{3}[ -]\d{4})(?![\w-])")),
)  # fmt: skip
_NAMED = re.compile(
    rf"(?i:\bname(?:['’]s|\s+is|\s+ist)?\s*:?\**\s+(?:is\s+)?(?!is\b)|\bI['’]m\s+|\bI am\s+|\bthis is\s+"
    rf"|\b(?:ich hei(?:ß|ss)e|ich bin|me llamo|mi nombre es|je m['’]appelle|je suis|mi chiamo|meu nome é)\s+"
    rf"|\b(?:user|customer|passenger|client|patient|mr|mrs|ms|dr|herr|frau|señora?|signora?|madame|monsieur)\.?\s+){_NAME}"
)
_TITLE = re.compile(r"(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|Sra?|Señora?|Mme|Madame|M|Monsieur)\.? ")
_PARTICLE = r"(?:van|von|der|den|de|del|della|da|di|dos|la|le|el|al|bin|ibn|ter|zu)"
_NAME_WORD = rf"(?:(?:Mc|Mac|[OD]['’])?{_CAPITALIZED}|[{_UPPER}]\.|{_PARTICLE})"
_PERSON = re.compile(
    rf"{_NAME_WORD}(?: {_NAME_WORD}){{0,5}} (?:Mc|Mac|[OD]['’])?{_CAPITALIZED}"
    rf"|[{_UPPER}]{{2,}}(?: [{_UPPER}'’-]{{2,}}){{1,3}}"
)
_SORTED = re.compile(rf"{_CAPITALIZED}, {_CAPITALIZED}")
_IDEOGRAPHS = re.compile(r"[\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,8}")


_GIVEN = re.compile(rf"(?i:\b(?:first|given)[ -]?name\b){_LINK}[\"'‘“`]?({_CAPITALIZED})\b")
_FAMILY = re.compile(rf"(?i:\b(?:last|family|sur)[ -]?name\b){_LINK}[\"'‘“`]?({_CAPITALIZED})\b")


class CaseValue(NamedTuple):
    """A value that belongs to a person or a case."""

    kind: Kind
    text: str


def find_case_values(messages: Sequence[str], calls: Sequence[PastCall]) -> list[CaseValue]:
    """Return the distinct values, in the order in which they appear. `messages`: the task and the intents of the calls."""
    business = [call for call in calls if tools.base_tool(call.tool) is None]
    fields = [value for call in business for value in _read_fields(call)]
    found = [CaseValue(kind, text) for message in messages for kind, text in _scan(message, _EVERYWHERE)]
    found += fields
    if fields or (business and len(business) == len(calls)):  # about people and cases: its messages name them too
        texts = [
            *messages,
            *(call.excerpt or "" for call in business),
            *_list_texts(call.arguments for call in business),
        ]
        for text in texts:
            found += [CaseValue(kind, value) for kind, value in _scan(text, (*_EVERYWHERE, *_MESSAGES))]
            for named in _NAMED.finditer(text):
                found += [CaseValue("first", named[1]), CaseValue("last", named[2])]
            found += [CaseValue("first", given) for given in _GIVEN.findall(text)]
            found += [CaseValue("last", family) for family in _FAMILY.findall(text)]
    found = [_call_by_kind(value) for value in found]
    found += [name for value in found for name in _read_names(value)]
    found = _drop_accounts(found)
    if not any(value.kind in _ADDRESSED for value in found):
        found = [value for value in found if value.kind != "zip"]  # of a town: nobody lives there by name
    return list(dict.fromkeys(found))


def _drop_accounts(found: Sequence[CaseValue]) -> list[CaseValue]:
    """Return the values without accounts that are words (`apache`): somebody's holds a name that is known (`mgarcia`)."""
    names = [value.text.lower() for value in found if value.kind == "last" and len(value.text) > 3]
    return [
        value
        for value in found
        if value.kind != "user" or not value.text.isalpha() or any(name in value.text for name in names)
    ]


def _call_by_kind(value: CaseValue) -> CaseValue:
    """Return a value as an id if its words say what it is of (`credit_card_4421486`) and name nobody (`mia_li_3668`)."""
    is_id = value.kind == "user" and not _NO_NAMES.isdisjoint(word.lower() for word in _WORD.findall(value.text))
    return value._replace(kind="id") if is_id else value


def _read_names(value: CaseValue) -> Iterator[CaseValue]:
    """Yield the names that an id or an e-mail address is made of: `mia_li_3668`, `mia.li@example.com`."""
    named = _NAMES_IN_ID.match(value.text) if value.kind in ("user", "email") else None
    if named and ID_WORDS.isdisjoint(named.groups()):
        yield CaseValue("first", named[1].title())
        yield CaseValue("last", named[2].title())


def _scan(text: str, patterns: Iterable[tuple[Kind, re.Pattern[str]]]) -> Iterator[tuple[Kind, str]]:
    text = _MASKED.sub("", text) if "{{" in text else text
    for kind, pattern in patterns:
        for match in pattern.finditer(text):
            is_number = kind != "digits" or len(match[1]) <= _SHORT or _is_card_number(match[1])
            if is_number and (pattern is not _IBAN or _is_iban(match[1])):
                yield kind, match[1]


def _is_card_number(text: str) -> bool:
    """Return whether the last digit checks the others, as in every card's number (Luhn)."""
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Return whether the two digits after the country check the others (ISO 7064)."""
    joined = text.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in joined[4:] + joined[:4])) % 97 == 1


def _list_texts(values: Iterable[Any]) -> Iterator[str]:
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _read_fields(call: PastCall) -> Iterator[CaseValue]:
    yield from _walk(call.arguments, call.tool)
    yield from _read_result(call.excerpt or "", call.tool)


def _read_result(text: str, tool: str = "") -> Iterator[CaseValue]:
    """Yield the values of a result's fields. A shortened result is no JSON any more: its pairs are read one by one."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        for key, text_of_line in _LINE.findall(text):
            yield from _take(key, tool, text_of_line)
        for key, word, number in _PAIR.findall(text):
            yield from _take(key, tool, word or number)
        for key, items in _LIST.findall(text):
            for item in _TEXT.findall(items):
                yield from _take(key, key, item)
        for key, start in _CUT_OFF.findall(text):  # the beginning of a value, before the gap
            kind = _classify([word.lower() for word in _WORD.findall(key)])
            yield from [CaseValue(kind, start)] if kind and len(start) > 2 else []
        for end in _LEFT.findall(text):  # a value after the gap, whose field is lost
            yield from (CaseValue(kind, end) for kind, form in _BY_FORM if form.fullmatch(end))
    else:
        yield from _walk(document, tool)


def _walk(value: Any, key: str = "", parent: str = "", depth: int = 0) -> Iterator[CaseValue]:
    if depth > _DEPTH:
        return
    if isinstance(value, dict):
        beside = _name_parent(key, value)
        for name, inner in value.items():
            yield from _walk(inner, str(name), beside if isinstance(inner, str) else key, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, key, key, depth + 1)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield from _take(key, parent, str(value))


def _name_parent(key: str, fields: Mapping[Any, Any]) -> str:
    """Return what a group of fields is about: a person, if it holds a person's other facts and nothing of a catalogue."""
    words = [[word.lower() for word in _WORD.findall(str(name))] for name in fields]
    if any(_CATALOGUE & set(name) for name in words):
        return key
    kinds = {_classify(name) for name in words}
    return f"{key} person" if kinds & {"first", "last", "birth", "user"} else key  # a hotel has a phone and a street


def _take(key: str, parent: str, text: str) -> Iterator[CaseValue]:
    text = text.strip()
    if not text or len(text) > _LONGEST or "{{" in text:
        return
    words = [word.lower() for word in _WORD.findall(key)]
    kind = _classify(words)
    is_named = kind not in ("first", "last") and _is_person(words, parent)
    names = list(_split_name(text, words)) if is_named else []
    yield from names
    if names:
        return
    if kind and text.lower() not in _UNNAMED and (_FORMS[kind].fullmatch(text) or _is_login(kind, words, text)):
        yield CaseValue(kind, text)


def _is_login(kind: Kind, words: Sequence[str], text: str) -> bool:
    """Return whether a value is a user's name without any sign (`mgarcia`): only its field can say so."""
    is_word = text.islower() and text.isalpha() and text not in ID_WORDS | _ORGANIZATIONS
    return kind == "user" and not _LOGIN.isdisjoint(words) and is_word


def _split_name(text: str, words: Sequence[str]) -> Iterator[CaseValue]:
    """Yield the parts of a person's name. A single word must be a title's or a name field's: `owner` may be a team."""
    title = _TITLE.match(text)
    name = _TITLE.sub("", text, count=1)
    if _SORTED.fullmatch(name):
        name = " ".join(reversed(name.split(", ")))
    name = name.partition(",")[0]  # a phone may follow
    is_single = title is not None or (words[-1] in _NAME_FIELDS and _WHOSE.isdisjoint(words))
    if _IDEOGRAPHS.fullmatch(name):
        yield CaseValue("last", name)
    elif not _ORGANIZATIONS.isdisjoint(name.lower().split()):
        return
    elif _PERSON.fullmatch(name):
        *given, family = name.split()
        while given and re.fullmatch(_PARTICLE, given[-1]):
            family = f"{given.pop()} {family}"
        yield from (CaseValue("first", one) for one in given if not re.fullmatch(rf"{_PARTICLE}|.\.", one))
        yield CaseValue("last", family)
    elif is_single and re.fullmatch(_CAPITALIZED, name):
        yield CaseValue("last", name)


def _is_person(words: Sequence[str], parent: str) -> bool:
    """Return whether a field names somebody: `passenger_name`, the `name` of a customer, `reporter`, `signed_by`."""
    if not words:
        return False
    if words[-1] not in _NAME_FIELDS:
        return words[-1].rstrip("s") in _PERSONS or (words[-1] == "by" and len(words) > 1)
    if len(words) > 1:
        return bool((_PERSONS | _WHOSE) & set(words))
    return bool((_PERSONS | _PEOPLE) & {word.lower().rstrip("s") for word in _WORD.findall(parent)})


def _classify(words: Sequence[str]) -> Kind | None:
    """Return the kind of value that a field of this name holds."""
    known = {*words, *(word.rstrip("s") for word in words)}
    if not words or known & _CATALOGUE:
        return None
    last = words[-1]
    for kind, names in _BY_NAME:
        if known & names:
            return kind
    if (known & _STREETS or words == ["address"]) and not known & _NO_STREETS:
        return "street"
    if known & _FIRST and (last == "name" or len(words) == 1):
        return "first"
    if known & _LAST and (last == "name" or len(words) == 1):
        return "last"
    if (known & _PEOPLE and last in (*_ID_ENDS, "name")) or words in (["username"], ["login"]):
        return "user"
    if known & _NUMBERS or {"last", "four"} <= known:
        return "digits"
    if known & _CASES and (last in _ID_ENDS or len(words) == 1):
        return "id"
    return "id" if words == ["id"] else None


_BY_NAME: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("email", frozenset(("email", "mail", "correo", "courriel"))),
    ("phone", _PHONES),
    ("birth", _BIRTHS),
    ("zip", _ZIPS),
)
_BY_FORM: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("birth", re.compile(r"\d{4}-\d\d-\d\d")),
    ("first", re.compile(r"[A-Z][a-z]+")),
    ("email", re.compile(r"[\w.+-]*@[\w.-]+")),
    ("user", re.compile(r"\w*_\d{3,}")),
)
_FORMS: dict[Kind, re.Pattern[str]] = {
    "first": re.compile(r"[^\W\d_][\w'’.-]+(?: [^\W\d_][\w'’.-]*){0,2}"),
    "last": re.compile(r"[^\W\d_][\w'’.-]+(?: [^\W\d_][\w'’.-]*){0,3}"),
    "street": re.compile(r"(?=.*[^\W\d_])(?=.*(?:\d|\s)).{4,}"),
    "email": re.compile(r"\S+@\S+"),
    "phone": re.compile(r"[+\d(][\d ()./-]{5,}"),
    "birth": re.compile(r".*\d.*"),
    "zip": re.compile(r"(?=.*\d)[\w -]{3,10}"),
    "user": re.compile(r"(?=.*[\d_.-])[\w.@-]{4,}"),
    "id": re.compile(r"(?!#?\d{4}$)#?(?=.*\d)[\w#-]{4,}|[A-Z]{5,}"),  # four digits may be a year, a port or an amount
    "digits": re.compile(r"[\d -]{3,23}"),
}
