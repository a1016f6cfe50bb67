"""The fence reads command lines like a shell and refuses everything that leads out of the folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmstart.lab.sandbox.fence import (
    Command,
    CommandRefused,
    Pipeline,
    Redirect,
    Word,
    expand_word,
    read_line,
    resolve_inside,
)
from warmstart.lab.sandbox.programs import PROGRAMS, check_arguments, check_offered


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    place = Path(os.path.realpath(tmp_path)) / "folder"
    (place / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "-n", ".hidden", "sub/c.log", "sub/d.log"):
        (place / name).write_text(f"{name}\n")
    (tmp_path / "secret.txt").write_text("CANARY")
    (place / "out").symlink_to(tmp_path)
    (place / "inner").symlink_to("sub")
    yield place


def words(line: str) -> list[list[str]]:
    return [[word.text for word in command.words] for pipeline in read_line(line) for command in pipeline.commands]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls -la sub", [["ls", "-la", "sub"]]),
        ("echo 'a  b' \"c d\"e f\\ g", [["echo", "a  b", "c de", "f g"]]),
        ("echo '' \"\"", [["echo", "", ""]]),
        ("grep 'foo$' a.txt | wc -l", [["grep", "foo$", "a.txt"], ["wc", "-l"]]),
        ('grep "foo$" a.txt', [["grep", "foo$", "a.txt"]]),
        ('echo "a\\"b\\$c\\d"', [["echo", 'a"b$c\\d']]),
        ("cat a.txt # the first", [["cat", "a.txt"]]),
        ("echo a#b", [["echo", "a#b"]]),
        ("ls; pwd;", [["ls"], ["pwd"]]),
        ("ls\npwd\n", [["ls"], ["pwd"]]),
        ("ls &&\n pwd", [["ls"], ["pwd"]]),
        ("ls \\\n -l", [["ls", "-l"]]),
        ("find . \\( -name 'a' \\)", [["find", ".", "(", "-name", "a", ")"]]),
        ("echo {} a{b}c", [["echo", "{}", "a{b}c"]]),
        ("echo '{a,b}' '$(x)' '`y`' '$HOME'", [["echo", "{a,b}", "$(x)", "`y`", "$HOME"]]),
        ("echo a'b'\"c\"d", [["echo", "abcd"]]),
    ],
)
def test_words_are_read_as_a_shell_reads_them(line: str, expected: list[list[str]]) -> None:
    assert words(line) == expected


def test_pipes_sequences_and_redirects() -> None:
    assert read_line("sort < a.txt 2>/dev/null | uniq -c >> b.txt 2>&1 && ls || pwd") == (
        Pipeline(
            "",
            (
                Command((Word("sort"),), (Redirect(0, Word("a.txt")), Redirect(2, Word("/dev/null")))),
                Command((Word("uniq"), Word("-c")), (Redirect(1, Word("b.txt"), append=True), Redirect(2, 1))),
            ),
        ),
        Pipeline("&&", (Command((Word("ls"),)),)),
        Pipeline("||", (Command((Word("pwd"),)),)),
    )
    assert read_line("> new.txt")[0].commands == (Command((), (Redirect(1, Word("new.txt")),)),)
    assert read_line("ls &> x")[0].commands[0].redirects == (Redirect(1, Word("x")), Redirect(2, 1))
    assert read_line("echo 2 > x")[0].commands[0] == Command(
        (Word("echo"), Word("2")), (Redirect(1, Word("x")),)
    )  # the 2 is a word of its own
    assert read_line("echo '2'> x")[0].commands[0].words == (Word("echo"), Word("2"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo $(ls)", "command substitution"),
        ("echo `ls`", "command substitution"),
        ('echo "`ls`"', "command substitution"),
        ('echo "$(ls)"', "command substitution"),
        ("echo $HOME", "variables"),
        ('echo "${HOME}"', "variables"),
        ("echo $? $1 $$", "variables"),
        ("X=1 ls", "variables"),
        ("X=1", "variables"),
        ("echo $'a\\tb'", "printf"),
        ("ls &", "background"),
        ("ls & pwd", "background"),
        ("cat << EOF\nx\nEOF", "here-documents"),
        ("cat <<< x", "here-strings"),
        ("(ls)", "subshells"),
        ("ls <(pwd)", "subshells"),
        ("ls |& cat", "2>&1"),
        ("ls 2>&3", "not offered"),
        ("ls 0> x", "not offered"),
        ("ls >", "without a file name"),
        ("ls > | cat", "without a file name"),
        ("| ls", "no command before |"),
        ("ls | ", "no command at the end"),
        ("ls && ; pwd", "no command before ;"),
        ("", "empty"),
        ("  # nothing", "empty"),
        ("echo 'a", "not closed"),
        ('echo "a', "not closed"),
        ("cat ~/x", "relative to the folder"),
        ("touch file{1..3}.txt", "brace"),
        ("mkdir -p a/{b,c}", "brace"),
        ("ls \0", "NUL"),
        ("echo " + "x" * 200_000, "longer"),
        (" | ".join(["cat"] * 40), "more than"),
    ],
)
def test_what_only_a_shell_can_do_is_refused_with_a_reason(line: str, said: str) -> None:
    with pytest.raises(CommandRefused, match=said.replace("|", r"\|")):
        read_line(line)


@given(st.text(alphabet="ab '\"\\|&;<>$(){}`~#*?[]=12-/.\n\0é", max_size=60) | st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_line_is_read_or_refused(line: str) -> None:
    try:
        pipelines = read_line(line)
    except CommandRefused:
        return
    assert pipelines
    assert all(command.words or command.redirects for pipeline in pipelines for command in pipeline.commands)


@pytest.mark.parametrize(
    "path", ["a.txt", "sub/../a.txt", ".", "./sub//c.log", "not/yet/there", "inner/c.log", "..a", "é"]
)
def test_paths_inside(folder: Path, path: str) -> None:
    assert resolve_inside(folder, folder, path) == Path(os.path.realpath(folder / path))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc/passwd",
        "..",
        "../secret.txt",
        "sub/../../secret.txt",
        "out",
        "out/secret.txt",
        "out/new",
        "a\0b",
        "",
        "//etc",
    ],
)
def test_paths_outside(folder: Path, path: str) -> None:
    with pytest.raises(CommandRefused):
        resolve_inside(folder, folder, path)


def test_a_twin_with_the_same_beginning_is_outside(folder: Path) -> None:
    twin = folder.parent / "folder-2"
    twin.mkdir()
    with pytest.raises(CommandRefused):
        resolve_inside(folder, folder, "../folder-2")
    assert resolve_inside(folder, folder / "sub", "../a.txt") == folder / "a.txt"


def test_globs_are_sorted_and_stay_inside(folder: Path) -> None:
    def expand(line: str) -> list[str]:
        return [name for word in read_line(line)[0].commands[0].words for name in expand_word(word, folder, folder)]

    assert expand("ls *.txt") == ["ls", "a.txt", "b.txt"]
    assert expand("ls sub/?.log") == ["ls", "sub/c.log", "sub/d.log"]
    assert expand("ls [a]*") == ["ls", "a.txt"]
    assert expand("ls '*.txt' \\*.txt") == ["ls", "*.txt", "*.txt"]
    assert expand("ls *.nope") == ["ls", "*.nope"]
    assert expand("cat *") == ["cat", "./-n", "a.txt", "b.txt", "inner", "sub"]  # no option, nothing that leads out
    assert expand("cat out/s*") == ["cat", "out/s*"]
    assert expand("cat /etc/pass*") == ["cat", "/etc/pass*"]
    assert expand("cat ../*.txt") == ["cat", "../*.txt"]


ORDINARY = [
    "ls -la sub", "cat -n a.txt", "head -5 a.txt", "head -n 5 a.txt", "tail -n +2 a.txt", "tail -n5 a.txt", "wc -l *.txt",
    "head --lines 2 a.txt", "grep -rn 'x/y' .", "grep -e /x -e y a.txt", "grep --include='*.txt' -r x", "sort -t/ -k2,2n a.txt",
    "sort -o a.txt a.txt", "sort -u -r a.txt", "uniq -c a.txt", "cut -d/ -f1 a.txt", "cut -d ' ' -f 2 a.txt", "tr / -",
    "tr -d '\\r'", "sed 's/a/b/' a.txt", "sed -n '1,2p' a.txt", "sed -i.bak -e 's/a/b/' a.txt", "sed -ri 's/(a)/\\1/' a.txt",
    "find . -name '*.txt' -type f", "find sub \\( -name a -o -name b \\) -not -empty", "mkdir -p x/y", "cp -r sub sub2",
    "cp -a a.txt sub", "mv a.txt sub/", "touch new", "echo /etc/passwd ../..", "printf '%s\\n' /x", "diff a.txt b.txt",
    "basename /a/b.txt .txt", "dirname /a/b", "tee -a b.txt", "seq 5 -1 1", "test -f a.txt", "[ -f a.txt ]", "[ 3 -gt 2 ]",
    "stat -c '%s %n' a.txt", "comm -12 a.txt b.txt", "paste -d, a.txt -", "nl -ba a.txt", "egrep 'a|b' a.txt", "pwd",
]  # fmt: skip


def is_refused(line: str, folder: Path) -> bool:
    argv = [name for word in read_line(line)[0].commands[0].words for name in expand_word(word, folder, folder)]
    try:
        check_arguments(argv, folder, folder)
    except CommandRefused:
        return True
    return False


def test_ordinary_commands_pass(folder: Path) -> None:
    assert [line for line in ORDINARY if is_refused(line, folder)] == []


HOSTILE = [
    "rm -rf .", "rm a.txt", "rmdir sub", "ln -s / x", "ln a.txt b", "chmod 777 a.txt", "python -c 1", "python3 a.py", "bash -c ls",
    "sh a.sh", "env ls", "xargs ls", "awk 1 a.txt", "perl -e 1", "tar cf x .", "git init", "npm install", "curl http://x",
    "wget x", "sudo ls", "dd if=a.txt", "kill 1", "./a.sh", "/bin/ls", "nohup ls", "time ls", "eval ls", "exec ls", "source a",
    "cat /etc/passwd", "cat ../secret.txt", "cat -- /etc/passwd", "cat out/secret.txt", "cat -n ../../x", "head -n1 /etc/passwd",
    "tail -f a.txt", "tail --follow a.txt", "tail --pid=1 a.txt", "grep x /etc/passwd", "grep -f /etc/passwd a.txt",
    "grep -f../secret.txt a.txt", "grep --file=/etc/passwd x", "grep -r x ..", "grep -e x /etc/passwd", "cp a.txt /tmp",
    "cp a.txt ../x", "cp -t /tmp a.txt", "cp -t.. a.txt", "cp -s a.txt x", "cp -l a.txt x", "cp --target-directory=/tmp a.txt",
    "cp --symbolic-link a.txt x", "cp --sym a.txt x", "cp out/secret.txt x", "mv a.txt /tmp/x", "mv ../secret.txt .",
    "sort -o /tmp/x a.txt", "sort -o../x a.txt", "sort --output=/tmp/x a.txt", "sort -T /tmp a.txt", "sort -T. a.txt",
    "sort --compress-program=sh a.txt", "sort --compress=sh a.txt", "sort --files0-from=a.txt", "sort -R a.txt", "sort -no/tmp/x a.txt",
    "wc --files0-from=/etc/passwd", "tee /tmp/x", "tee ../x", "tee -a out/x", "touch /tmp/x", "touch -r /etc/passwd a.txt",
    "mkdir /tmp/x", "mkdir -p ../x", "find / -name x", "find .. -name x", "find . -exec cat {} ;", "find . -execdir ls ;",
    "find . -ok rm {} ;", "find . -okdir rm {} ;", "find . -delete", "find . -fprint /tmp/x", "find . -fprintf x y", "find . -fls x",
    "find . -fprint0 x", "find -L . -name x", "find . -newer /etc/passwd", "find -files0-from a.txt", "find . -follow", "find . -ls",
    "find . -printf '%T@'", "sed -f /etc/passwd a.txt", "sed -n p /etc/passwd", "sed -e p ../secret.txt", "sed -i/tmp/* p a.txt",
    "sed --in-place=/tmp/* p a.txt", "sed --follow-symlinks -i p a.txt", "diff a.txt /etc/passwd", "diff -r . ..",
    "diff --from-file=/etc/passwd a.txt", "uniq a.txt /tmp/x", "stat a.txt", "stat -c %i a.txt", "stat -c %Y a.txt", "date", "ps",
    "md5sum -c a.txt", "test -f /etc/passwd", "[ -e ../x ]", "[ -f a.txt", "comm a.txt /etc/passwd", "nl /etc/passwd",
    "ls /", "ls -la ..", "ls out", "ls --dired", "join a.txt /etc/passwd", "cmp a.txt /dev/sda", "rev /etc/passwd", "cd /",
]  # fmt: skip


def test_hostile_commands_are_refused(folder: Path) -> None:
    assert [line for line in HOSTILE if not is_refused(line.replace(" ;", r" \;"), folder)] == []


def test_a_refused_program_says_what_there_is() -> None:
    with pytest.raises(CommandRefused, match="Offered: basename cat ") as told:
        check_offered("rm")
    assert told.value.exit_code == 127
    with pytest.raises(CommandRefused, match="Use execute_code"):
        check_offered("python3")


def test_what_is_added_to_commands(folder: Path) -> None:
    def run(*argv: str) -> list[str]:
        return check_arguments(list(argv), folder, folder)

    assert run("diff", "-u", "a.txt", "b.txt")[:5] == ["diff", "--label", "a.txt", "--label", "b.txt"]
    assert run("grep", "-r", "x", "sub") == ["grep", "-H", "-r", "--", "x", "sub/c.log", "sub/d.log"]
    assert run("grep", "-rn", "-e", "x") == [
        *["grep", "-H", "-rn", "-e", "x", "--", "-n", ".hidden", "a.txt", "b.txt", "sub/c.log", "sub/d.log"]
    ]
    assert run("grep", "-r", "x", "a.txt") == ["grep", "-r", "--", "x", "a.txt"]
    if sys.platform == "linux":
        assert run("sed", "p", "a.txt") == ["sed", "--sandbox", "p", "a.txt"]
        assert "--time-style=+" in run("ls", "-l")


_PARTS = st.sampled_from(
    ["..", ".", "/", "//", "a.txt", "sub", "out", "inner", "secret.txt", "etc", "passwd", "", "-", "=", "x"]
)
_WITH_PATHS = sorted(
    name for name, program in PROGRAMS.items() if not program.free and program.texts == 0 and name != "cd"
)


@pytest.mark.slow
@given(st.sampled_from(_WITH_PATHS), st.lists(st.lists(_PARTS, max_size=6).map("/".join), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_no_argument_of_any_program_leads_out(name: str, arguments: list[str]) -> None:
    folder = _shared_folder()
    try:
        argv = check_arguments([name, *arguments], folder, folder)
    except CommandRefused:
        return
    for argument in (word for word in argv[1:] if not word.startswith("-")):
        real = Path(os.path.realpath(folder / argument))
        assert real == folder or folder in real.parents, argv


_folders: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = Path(os.path.realpath(tmp_path_factory.mktemp("fence"))) / "folder"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("a\n")
    (place / "out").symlink_to("/etc")
    (place / "inner").symlink_to("sub")
    _folders[:] = [place]


def _shared_folder() -> Path:
    return _folders[0]
