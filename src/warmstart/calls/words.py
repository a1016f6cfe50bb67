"""Words as search, topics and review compare them: one splitter, one stemmer, one table of stop words.

The table has three steps, each a superset of the one before. `STOP_WORDS` say nothing in any text. `GENERIC_WORDS` stand
in requests of every kind and name no topic; a search still needs them, because tools are called `list_files` or
`get_user_details`. `AGENT_WORDS` stand in most transcripts and prove no claim; "change" and "project" still name topics.
`FILLER_WORDS` are the stop words and the small talk of several languages.
"""

from __future__ import annotations

from functools import lru_cache

from warmstart import lazy_regex as re

_ID = re.compile(  # an id says which order, not what an order is
    r"#?(?<!\w)(?=[A-Z0-9_-]*\d)[A-Z0-9_-]{5,}(?!\w)|(?<!\w)#?[\w-]*\d{3,}[\w-]*"
)
_DIGIT = re.compile(r"\d")  # every id has one
_COULD_BE_ID = re.compile(r"\d{3}|[A-Z0-9_-]{5}")
_CONTRACTED = re.compile(r"(?:n['’]t|['’](?:s|d|m|ll|re|ve))\b", re.I)  # don't, it's: a stop word is left
_WORD = re.compile(r"[^\W\d_]+")
_RUN = re.compile(r"[\w-]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL_ES = re.compile(r"(?:ss|sh|x|[^aeiou]ch)es\Z")
_ENDINGS = (("ation", 4), ("ing", 4), ("ed", 4))  # an ending, and how many letters must be left

STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been but by ca can could did do does doing
    don done for from get give go had has have he hello help her here hey hi him his how i if in into is it its just
    let like make me more my need no not now of ok okay on one only or our out over please see she should so some
    sure than thank thanks that the their them then there these they this those to too up us use using very want was
    we well were what when where which while who why will with wo would yes you your""".split()
)
GENERIC_WORDS = STOP_WORDS | frozenset(
    """able above account actually against already another anything app around ask assist before being below best
    better both call called calling cannot check code come consider context create current currently description
    details different down each else even every everything exactly false feature feedback few file files find first
    following full gets getting given goes going good got handy having hoping however idea important info
    information instead issue keep know last list little look looking looks made many may maybe mean might most much
    must name needed needs new next none note nothing null off old open other own part phase plan possible prefer
    problem provide put question quite read really receive received recent recently regarding right run running said
    same say says seem seems set several show since situation small someone something start still such summary take
    talk tell thing things think though through time today true try trying two under understand until upcoming upon
    used user via wait wanted way went whether wish without work working wrong yet""".split()
)
AGENT_WORDS = GENERIC_WORDS | frozenset(
    """agent always calls change command correct ensure error example fixed found fully further itself known later
    likes making memory never notes once otherwise output preferred prefers project runs session sessions shows
    skill step steps system task tool tools useful users uses wants within worked works write""".split()
)
FILLER_WORDS = STOP_WORDS | frozenset(  # agreement, thanks, greetings and urging: they name no work
    """absolutely ahead afternoon agree agreed alright amazing appreciate appreciated approve approved awesome bonjour
    bye carry cheers confirm confirmed continue continuing cool correct correctly day definitely evening exactly excellent
    fine friend good goodbye great greetings haha hallo happy hmm hooray hope hoped hopefully hopes hoping keep kindly
    lol lovely mate meet moin morning
    much nah nice night nope okey perfect perfectly pleased pleasure proceed right salut sir sorry sounds there today tomorrow
    true weekend welcome went wonderful work working works wow yeah yep yup
    bitte danke dankeschön genau gerne gut guten ja jawohl jetzt klar mach machen morgen nein prima servus abend
    vielen weiter alles klar wie geht bene buongiorno buonasera certo ciao continua grazie sì vai
    allez bien bonsoir continuez merci non oui parfait salutations vas
    adelante buenas buenos claro días gracias hola noches perfecto seguir sí sigue tardes vale
    bom boa continue dia obrigada obrigado olá perfeito pode seguir sim tarde
    да давай добрый день доброе утро вечер дальше здравствуйте ладно нет ок окей отлично пожалуйста понятно привет
    продолжай продолжайте спасибо хорошо так
    dobrze dzień dobry proszę tak dziękuję cześć dalej hej hoi tack takk tak goed dank bedankt doorgaan prima
    evet hayır merhaba selam tamam teşekkürler devam günaydın namaste shukriya shalom xin chào cảm ơn
    はい いいえ うん ありがとう ありがとうございます こんにちは こんばんは おはよう おはようございます お願いします よろしく
    続けて 続けてください 了解 了解です どうも いいよ
    你好 您好 大家好 早上好 下午好 晚上好 谢谢 谢谢你 多谢 好 好的 是 是的 对 不 不是 继续 请继续 可以 行 没问题
    嗨 哈喽 你好吗 在吗 繼續 謝謝 請繼續 네 예 아니요 안녕 안녕하세요 감사합니다 고마워 고마워요 계속 계속해 계속해주세요
    좋아 좋아요 مرحبا شكرا نعم لا أهلا استمر السلام عليكم שלום תודה כן נמשיך नमस्ते धन्यवाद हाँ जारी
    γεια ναι ευχαριστώ สวัสดี ขอบคุณ""".split()
)


def find_words(text: str, *, camel: bool = False) -> list[str]:
    """Return the words of a text in lower case, without ids. `camel`: split camelCase names into their parts."""
    words = find_parts(text)
    if not camel or text.islower():
        return [word.lower() for word in words]
    return [part for word in words for part in split_camel(word)]


def find_parts(text: str) -> list[str]:
    """Return the words of a text as they are written, without ids."""
    if _DIGIT.search(text) and _COULD_BE_ID.search(text):
        text = _ID.sub(" ", text)
    words: list[str] = _WORD.findall(_expand(text))
    return words


def find_runs(text: str) -> list[str]:
    """Return the runs of letters, digits, underscores and hyphens: no word and no id is longer than its run."""
    runs: list[str] = _RUN.findall(_expand(text))
    return runs


def _expand(text: str) -> str:
    return _CONTRACTED.sub("", text) if "'" in text or "’" in text else text


@lru_cache(4_096)
def split_camel(word: str) -> list[str]:
    """Return the parts of a camelCase name in lower case."""
    return [part.lower() for part in _CAMEL.split(word)]


def singular(word: str) -> str:
    """Return a word without its plural ending; the result is still readable."""
    if len(word) < 5 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    return word[:-2] if _PLURAL_ES.search(word) else word[:-1]


def stem(word: str) -> str:
    """Return what the forms of a word share: deploy for deployed, reserv for reservations."""
    word = singular(word)
    for ending, rest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= rest:
            return word[: -len(ending)]
    return word
