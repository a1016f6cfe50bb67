"""Names and words that look alike: letters of other alphabets that read as Latin ones.

The table follows Unicode's list of confusable characters (UTS #39), as far as its letters are not joined by
compatibility (NFKC), and adds small letters that look like Latin ones in common fonts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from warmstart.names import name_key

_LETTERS = {
    "2": "ƧϨᒿꙄꝚ",
    "3": "ƷȜЗӠⳌꝪꞫ𑣊𖼻",
    "4": "Ꮞ𑢯",
    "5": "Ƽ𑢻",
    "6": "бᏮⳒ𑣕",
    "7": "𐓒𑣆",
    "8": "Ȣȣ𐌚",
    "9": "ⳊꝮ𑢬𑣌𑣖",
    "A": "ΑАᎪᗅꓮ𐊠𖽀",
    "a": "ɑαа",
    "B": "ΒВᏴᗷꓐꞴ𐊂𐊡𐌁",
    "b": "ƄЬвьᏏᑲᖯ",
    "C": "СᏟⲤꓚ𐊢𐌂𐐕𐔜",
    "c": "сᴄⲥꮯ𐐽",
    "D": "Ꭰᗞᗪꓓ",
    "d": "ԁᏧᑯꓒ",
    "E": "ΕЕᎬⴹꓰ𐊆𑢦𑢮",
    "e": "εеҽꬲ",
    "F": "ϜᖴꓝꞘ𐊇𐊥𐔥𑢢𑣂",
    "f": "ẝꞙꬵ",
    "G": "ԌᏀᏳꓖ",
    "g": "ƍɡցᶃ",
    "H": "ΗНᎻᕼⲎꓧ𐋏",
    "h": "нһհᏂ",
    "I": "ΙІӀ",
    "i": "ıɩɪιіᎥꙇꭵ𑣃",
    "J": "ͿЈᎫᒍꓙꞲ",
    "j": "ϳјյ",
    "K": "ΚКᏦᛕⲔꓗ𐔘",
    "k": "κк",
    "L": "ԼᏞᒪⳐꓡ𐐛𐔦𑢣𑢲𖼖",
    "l": "ƖǀӏլւᛁⲒⵏꓲ𐊊𐌉𖼨",
    "M": "ΜϺМᎷᗰᛖⲘꓟ𐊰𐌑",
    "m": "м",
    "N": "ΝՈⲚꓠ𐔓",
    "n": "ηпոռ",
    "O": "ΟОՕଠዐⲞⵔꓳ𐊒𐊫𐐄𐓂𐔖𑢵",
    "o": "οσоօഠဝჿᴏᴑⲟꬽ𐐬𐓪𑣈𑣗",
    "P": "ΡРᏢᑭⲢꓑ𐊕",
    "p": "ρрքⲣ",
    "Q": "Ԛⵕ",
    "q": "ԛգզ",
    "R": "ƦᎡᏒᖇꓣ𐒴𖼵",
    "r": "гᴦⲅꭇꭈꮁ",
    "S": "ЅՏᏕᏚꓢ𐊖𐐠𖼺",
    "s": "ƽѕꜱꮪ𐑈𑣁",
    "T": "ΤТᎢⲦꓔ𐊗𐊱𐌕𑢼𖼊",
    "t": "τт",
    "U": "Սሀᑌꓴ𐓎𑢸𖽂",
    "u": "ʋυսᴜꞟꭎꭒ𐓶𑣘",
    "V": "ѴᏙᐯⴸꓦꛟ𐔝𑢠𖼈",
    "v": "νѵᴠꮩ𑜆𑣀",
    "W": "ԜᎳᏔꓪ",
    "w": "ɯѡԝաᴡꮃ𑜊𑜎𑜏",
    "X": "ΧХᚷⲬⵝꓫꞳ𐊐𐊴𐌗𐔧",
    "x": "χхᕁᕽ",
    "Y": "ΥУҮᎩᎽⲨꓬ𐊲𑢤𖽃",
    "y": "ɣʏγуүყᶌỿꭚ𑣜",
    "Z": "ΖᏃꓜ𑢩",
    "z": "ᴢꮓ𑣄",
}
_LOOKS = {ord(letter): latin for latin, letters in _LETTERS.items() for letter in letters}
_FIGURES = str.maketrans({"I": "l", "1": "l", "|": "l", "0": "o"})  # alike in most fonts
_WORD = re.compile(r"[^\W\d_]+")
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET", "OSAGE", "GEORGIAN")


def write_latin(text: str) -> str:
    """Replace letters by the Latin ones that they look like."""
    return unicodedata.normalize("NFKC", text).translate(_LOOKS)


@lru_cache(4096)
def look_key(name: str) -> str:
    """Return a key that names have in common if a reader would take one for the other."""
    return name_key(write_latin(name).translate(_FIGURES))


def is_lookalike(one: str, other: str) -> bool:
    """Return whether a reader would take one name for the other, or they are the same."""
    return one == other or name_key(one) == name_key(other) or look_key(one) == look_key(other)


def find_mixed_word(name: str) -> str:
    """Return the first word with letters of several alphabets that look alike, or an empty text."""
    return next((word for word in _WORD.findall(name) if len(_list_alphabets(word)) > 1), "")


def _list_alphabets(word: str) -> set[str]:
    kinds = (unicodedata.name(letter, "").partition(" ")[0] for letter in unicodedata.normalize("NFKC", word))
    return {kind for kind in kinds if kind in _ALPHABETS}
