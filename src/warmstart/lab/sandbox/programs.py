"""The programs that `terminal` offers, each with an allowlist of options.

Left out on purpose: `rm`; programs that start others (awk, xargs, env, sh, python, find -exec), write anywhere (sort -T,
sed's w), never end (tail -f), or print another time, machine or user in every run (date, ps, ls -l's dates). Programs
that list a folder list it by name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from warmstart.lab.sandbox.fence import CommandRefused, resolve_inside


class Program(Struct, frozen=True):
    """The options and arguments that one program may be given."""

    flags: str = ""  # short options without a value
    values: str = ""  # short options with a value that is no path
    paths: str = ""  # short options whose value is a path
    long: str = ""  # long options separated by blanks: `--name`, or `--name=` if it takes a value
    texts: int = 0  # how many of the first arguments are no paths; -1: all
    free: bool = False  # every argument is text, even one that looks like an option (echo)


_TEXT = Program(free=True)
PROGRAMS: dict[str, Program] = {
    "basename": Program("az", "s", texts=-1, long="--multiple --suffix= --zero"),
    "cat": Program("AbeEnstTuv", long="--number --number-nonblank --show-all --show-ends --squeeze-blank --show-tabs"),
    "cd": Program(),
    "cmp": Program("bls", "n", long="--silent --quiet --print-bytes --verbose"),
    "comm": Program("123z", long="--check-order --nocheck-order --output-delimiter= --total"),
    "cp": Program("aRrfnpvTu", paths="t", long="--recursive --force --no-clobber --verbose --preserve --archive --update"),
    "cut": Program("sz", "dfcb", long="--delimiter= --fields= --characters= --bytes= --only-delimited --complement "
                   "--output-delimiter="),
    "diff": Program("quriwBbcyNEZas", "UC", long="--brief --unified --unified= --recursive --ignore-case --side-by-side "
                    "--ignore-all-space --ignore-blank-lines --ignore-space-change --suppress-common-lines --color=never"),
    "dirname": Program("z", texts=-1),
    "echo": _TEXT,
    "expand": Program("i", "t"),
    "false": _TEXT,
    "find": Program(free=True),  # _check_find reads its expression
    "fold": Program("bs", "w", long="--width= --spaces --bytes"),
    "grep": Program("EFGPivwxcLlqsonHhrRaIzbT0123456789", "emABC", "f", texts=1, long="--extended-regexp --fixed-strings "
                    "--ignore-case --invert-match --word-regexp --line-regexp --count --files-with-matches "
                    "--files-without-match --quiet --only-matching --line-number --with-filename --no-filename --recursive "
                    "--text --perl-regexp --regexp= --max-count= --include= --exclude= --exclude-dir= --color=never "
                    "--after-context= --before-context= --context= --no-messages"),
    "head": Program("qv0123456789", "nc", long="--lines= --bytes= --quiet --verbose"),
    "join": Program("i", "12aevtoj", long="--header --nocheck-order"),
    "ls": Program("1aAdFhlmnprRSstXC", long="--all --almost-all --directory --human-readable --recursive --reverse --color=never "
                  "--classify --size --group-directories-first"),
    "md5sum": Program("bt"),
    "mkdir": Program("pv", "m", long="--parents --verbose --mode="),
    "mv": Program("fnvTu", paths="t", long="--force --no-clobber --verbose"),
    "nl": Program("p", "bdfhilnsvw"),
    "paste": Program("sz", "d", long="--delimiters= --serial"),
    "printf": _TEXT,
    "pwd": Program("LP"),
    "rev": Program(),
    "sed": Program("nErsuz", "el", "f", texts=1, long="--quiet --silent --regexp-extended --expression= --in-place --separate "
                   "--in-place= --null-data"),
    "seq": Program("w", "sf", texts=-1, long="--equal-width --separator= --format="),
    "sha256sum": Program("bt"),
    "sort": Program("nrufbdghVMscCizm", "kt", "o", long="--numeric-sort --reverse --unique --ignore-case --key= --stable "
                    "--field-separator= --human-numeric-sort --version-sort --check --general-numeric-sort --zero-terminated "
                    "--ignore-leading-blanks --dictionary-order --month-sort --merge"),
    "stat": Program("", "c", long="--format= --printf="),
    "tac": Program("br", "s"),
    "tail": Program("qv0123456789", "nc", long="--lines= --bytes= --quiet --verbose"),
    "tee": Program("a", long="--append"),
    "test": Program(free=True),
    "touch": Program("acm", "dt", "r", long="--no-create --date="),
    "tr": Program("cCdst", texts=-1, long="--complement --delete --squeeze-repeats --truncate-set1"),
    "true": _TEXT,
    "uniq": Program("cduiDz", "fsw", long="--count --repeated --unique --ignore-case --skip-fields= --skip-chars= "
                    "--check-chars="),
    "wc": Program("lwcmL", long="--lines --words --bytes --chars --max-line-length"),
}  # fmt: skip
_ALIASES = {"egrep": ("grep", "-E"), "fgrep": ("grep", "-F"), "[": ("test",)}
_HINTS = {
    **dict.fromkeys(("python", "python3", "node", "perl", "ruby", "awk", "gawk", "bash", "sh"), " Use execute_code."),
    **dict.fromkeys(("sqlite3", "sqlite"), " Use sqlite_query."),
    **dict.fromkeys(("nano", "vi", "vim"), " Use write_file."),
}
_FIND_TESTS = frozenset("-name -iname -path -ipath -wholename -regex -iregex -type -size -maxdepth -mindepth -perm -mtime "
                        "-mmin -printf -regextype -links".split())  # fmt: skip
_FIND_WORDS = frozenset("-empty -print -print0 -not ! -a -and -o -or ( ) -prune -depth -true -false -readable "
                        "-writable -executable -mount -xdev".split())  # fmt: skip
_FIND_TIMES = re.compile(r"%[-0-9.]*[atcATCBiDkSugUGHbl]")  # inodes, times and owners, which differ in every run
_STAT_FORMAT = re.compile(r"(?:[^%]|%%|%[-0-9]*[nNsFaAh])*")
_TEST_WORDS = re.compile(r"-[a-zA-Z]{1,2}|!|==?|!=|\(|\)|<|>|-?\d+")
_SED_PART = r"""(?:(?:\d+|\$|/[^/\n]*/)(?:,(?:\d+|\$|/[^/\n]*/))?!?\ *)?
    (?:[pdq=]|s/(?:\\.|[^\\/\n])*/(?:\\.|[^\\/\n])*/[gpI0-9]*|s\|(?:\\.|[^\\|\n])*\|(?:\\.|[^\\|\n])*\|[gpI0-9]*)"""
_PLAIN_SED = re.compile(rf"\ *{_SED_PART}(?:\ *[;\n]\ *{_SED_PART})*[\ ;]*", re.X)  # for a sed without --sandbox
_PATTERNS = frozenset(("e", "f", "regexp", "expression"))
_GNU = sys.platform == "linux"
Given = dict[str, list[str]]  # an option's letter or long name -> its values, "" if it takes none


def check_offered(name: str) -> None:
    """Refuse a program that is not on the list, with a hint and the list."""
    if name not in PROGRAMS and name not in _ALIASES:
        shown = name if len(name) <= 40 else name[:37] + "..."
        raise CommandRefused(f"{shown}: not offered here.{_HINTS.get(name, '')} Offered: {' '.join(PROGRAMS)}", 127)


def check_arguments(argv: list[str], folder: Path, here: Path) -> list[str]:
    """Return the command as it is run; refuse options that are not listed and paths outside the folder."""
    check_offered(argv[0])
    if argv[0] == "[":
        if argv[-1] != "]":
            raise CommandRefused("[: missing ]", 2)
        argv = argv[:-1]
    name, *more = _ALIASES.get(argv[0], (argv[0],))
    argv = [name, *more, *argv[1:]]
    if name == "find":
        return _check_find(argv, folder, here)
    if name == "test":
        for word in argv[1:]:
            if word and not _TEST_WORDS.fullmatch(word):
                resolve_inside(folder, here, word)
        return argv
    given, others = _check_options(argv, folder, here)
    return _finish(argv, given, others, here)


def _check_options(argv: list[str], folder: Path, here: Path) -> tuple[Given, list[str]]:
    """Check the arguments; return the options and the other arguments."""
    name, program = argv[0], PROGRAMS[argv[0]]
    if program.free:
        return {}, argv[1:]
    given: Given = {}
    others: list[str] = []
    rest = iter(argv[1:])
    for word in rest:
        if word == "--":
            others.extend(rest)
        elif word.startswith("--"):
            _read_long(name, program, word, rest, given)
        elif len(word) > 1 and word[0] == "-" and not (program.texts == -1 and re.fullmatch(r"-[\d.]+", word)):
            _read_short(name, program, word, rest, given)
        else:
            others.append(word)
    texts = 0 if program.texts == 1 and given.keys() & _PATTERNS else program.texts
    paths = [path for letter in program.paths for path in given.get(letter, ())]
    for path in paths + (others[texts:] if texts >= 0 else []):
        if path != "-":
            resolve_inside(folder, here, path)
    return given, others


def _read_long(name: str, program: Program, word: str, rest: Iterator[str], given: Given) -> None:
    option, equals, value = word.partition("=")
    offered = program.long.split()
    if not equals and option not in offered and f"{option}=" in offered:
        value = next(rest, "")
    elif word not in offered and option + equals not in offered:
        raise CommandRefused(f"{name}: option {option[:40]} is not offered")
    given.setdefault(option[2:], []).append(value)


def _read_short(name: str, program: Program, word: str, rest: Iterator[str], given: Given) -> None:
    """Read combined letters; one that takes a value takes the rest of the word, or the next word."""
    for at, letter in enumerate(word[1:], 2):
        if letter in program.values + program.paths:
            given.setdefault(letter, []).append(word[at:] or next(rest, ""))
            return
        if name == "sed" and letter == "i":  # its value, a suffix, is never the next word
            given.setdefault("in-place", []).append(word[at:])
            return
        if letter not in program.flags:
            raise CommandRefused(f"{name}: option -{letter} is not offered")
        given.setdefault(letter, []).append("")


def _finish(argv: list[str], given: Given, others: list[str], here: Path) -> list[str]:
    """Add what a program needs to stay in the folder and to print the same in every run."""
    name, rest = argv[0], argv[1:]
    if name == "sed":
        return _check_sed(argv, given, others)
    if name == "ls" and given.keys() & {"l", "n"} and _GNU:
        return [name, "--time-style=+", "-gG", *rest]  # without dates and the user's name
    if name == "stat":
        wanted = [value for key in ("c", "format", "printf") for value in given.get(key, ())]
        if not wanted or not all(_STAT_FORMAT.fullmatch(value) for value in wanted):
            raise CommandRefused("stat: offered only as stat -c FORMAT with %n %s %F %a %A %h")
    if name == "diff" and given.keys() & {"u", "U", "c", "C", "unified"}:
        if given.keys() & {"r", "recursive"}:
            raise CommandRefused("diff: -r together with -u or -c is not offered")
        return [name, *(part for path in others[:2] for part in ("--label", path)), *rest]  # else it prints file times
    if name == "grep" and given.keys() & {"r", "R", "recursive"}:
        return _name_files(argv, given, others, here)
    return argv


def _check_sed(argv: list[str], given: Given, others: list[str]) -> list[str]:
    if not all(re.fullmatch(r"[\w.~-]*", suffix) for suffix in given.get("in-place", ())):
        raise CommandRefused("sed: -i takes a plain suffix only")
    if _GNU:
        return ["sed", "--sandbox", *argv[1:]]
    scripts = [script for key in ("e", "expression") for script in given.get(key, ())] or others[:1]
    if "f" in given or not all(_PLAIN_SED.fullmatch(script) for script in scripts):
        raise CommandRefused("sed: only p, d, q, = and s/// are offered on this system")
    return argv


def _name_files(argv: list[str], given: Given, others: list[str], here: Path) -> list[str]:
    """Replace the folders of `grep -r`, which reads them in the order of the disk, by their files sorted by name."""
    has_pattern = bool(given.keys() & _PATTERNS)
    pattern, paths = ([], others) if has_pattern else (others[:1], others[1:])
    if not has_pattern and not pattern:
        return argv
    named: list[str] = []
    for path in paths or [""]:
        top = here / path
        below = [Path(place, file) for place, _folders, files in os.walk(top) for file in files]
        prefix = f"{path.rstrip('/')}/" if path else ""
        named += sorted(f"{prefix}{file.relative_to(top)}" for file in below if not file.is_symlink()) or [path or "."]
    options = _without(argv[1:], others)
    return ["grep", *(["-H"] if named != paths else []), *options, "--", *pattern, *named]


def _without(words: list[str], others: list[str]) -> list[str]:
    """Return the words without `others`, which occur in them in the same order."""
    left, options = list(reversed(others)), list[str]()
    for word in reversed(words):
        if left and word == left[0]:
            left.pop(0)
        elif word != "--":
            options.append(word)
    return options[::-1]


def _check_find(argv: list[str], folder: Path, here: Path) -> list[str]:
    words = argv[1:]
    at = 0
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!"):
        resolve_inside(folder, here, words[at])
        at += 1
    rest = iter(words[at:])
    for word in rest:
        if word in _FIND_TESTS:
            value = next(rest, "")
            if word == "-printf" and _FIND_TIMES.search(value.replace("%%", "")):
                raise CommandRefused("find: -printf is offered with %p %P %f %h %s %y %d %m only")
        elif word in ("-newer", "-anewer"):
            resolve_inside(folder, here, next(rest, "") or ".")
        elif word not in _FIND_WORDS:
            raise CommandRefused(f"find: {word[:40]} is not offered")
    return argv
