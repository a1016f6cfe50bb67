"""Secrets are replaced, everything else stays, in linear time."""

from __future__ import annotations

import base64
import json
import os
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redact.secret_formats import ENCODINGS, Draw, leaks, make_secrets
from warmstart.redact import Redactor

FULL = os.environ.get("WARMSTART_FULL") == "1"
SEEDS = range(3 if FULL else 1)
PLACEHOLDER = re.compile(r"\{\{SECRET:[a-z0-9-]+#[0-9]+\}\}")
GH = "gh" + "p_"


def redact(text: str) -> str:
    return Redactor().scope().text(text)


# --- secrets are replaced ---------------------------------------------------------------------------------------------


def test_there_are_enough_formats() -> None:
    secrets = make_secrets(0)
    assert len(secrets) >= 140
    assert sum(secret.kind == "vendor" for secret in secrets) >= 90
    assert len({secret.name for secret in secrets}) == len(secrets)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_recall_by_encoding(encoding: str) -> None:
    redactor = Redactor()
    missed: dict[str, list[str]] = {"vendor": [], "generic": []}
    total = {"vendor": 0, "generic": 0}
    for seed in SEEDS:
        for secret in make_secrets(seed):
            text, parts = ENCODINGS[encoding](secret)
            total[secret.kind] += 1
            if leaks(redactor.scope().text(text), parts):
                missed[secret.kind].append(secret.name)
    assert len(missed["vendor"]) <= 0.01 * total["vendor"], missed
    assert len(missed["vendor"]) + len(missed["generic"]) <= 0.05 * sum(total.values()), missed


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_redacting_twice_changes_nothing(encoding: str) -> None:
    scope = Redactor().scope()
    for secret in make_secrets(7):
        once = scope.text(ENCODINGS[encoding](secret)[0])
        assert scope.text(once) == once
        assert redact(once) == once


@pytest.mark.slow
def test_placeholders_reveal_nothing_of_the_value() -> None:
    for secret in make_secrets(11):
        for placeholder in PLACEHOLDER.findall(redact(secret.line)):
            kind = placeholder.removeprefix("{{SECRET:")
            fragments = {kind[i : i + 4] for i in range(len(kind) - 3)}
            assert not [part for part in fragments if part in secret.value.lower()], (secret.name, placeholder)


def test_numbers_are_stable_in_a_scope() -> None:
    draw = Draw(1)
    first, second = (GH + draw("abcdefgh0123456789XYZ", 36) for _ in range(2))
    scope = Redactor().scope()
    text = scope.text(f"{first} then {second} then {first}")
    assert text == "{{SECRET:github#1}} then {{SECRET:github#2}} then {{SECRET:github#1}}"
    assert scope.text(f"again \x1b[31m{second}\x1b[0m") == "again \x1b[31m{{SECRET:github#2}}\x1b[0m"
    assert scope.kinds == {"github": 4}
    assert Redactor().scope().text(second) == "{{SECRET:github#1}}"


def test_a_learned_password_is_known_from_then_on() -> None:
    scope = Redactor().scope()
    value = Draw(2).password(16)
    assert value not in scope.text(f"export DB_PASSWORD='{value}'")
    assert value not in scope.text(f"login failed for bob with {value}")


def test_placeholders_are_left_alone() -> None:
    for text in (
        "password={{SECRET:password#1}}",
        "Authorization: Bearer {{SECRET:bearer#3}}",
        '{"api_key": "{{SECRET:token#2}}"}',
        "https://bob:{{SECRET:url-password#1}}@example.com",
    ):
        assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"the token is {GH}aB3",
        "key " + "AK" + "IA7QX",
        "Authorization: sk-" + "ant-api03-x9",
        "curl -H 'Authorization: Bearer " + "eyJ" + "hbGciOiJIUzI1",
    ],
)
def test_a_token_cut_off_by_the_end_of_the_text_goes(text: str) -> None:
    assert text.split()[-1] not in redact(text)


def test_a_token_cut_off_by_an_excerpt_goes() -> None:
    text = f"cloning with {GH}aB3x\n[... 900 characters left out ...]\ndone"
    assert redact(text) == "cloning with {{SECRET:cut-token#1}}\n[... 900 characters left out ...]\ndone"


def test_a_bare_prefix_is_no_token() -> None:
    assert redact(f"GitHub tokens start with {GH}") == f"GitHub tokens start with {GH}"


def test_key_blocks_without_their_ends_go() -> None:
    draw = Draw(3)
    dashes, label = "-" * 5, "RSA PRIVATE " + "KEY"
    lines = draw.lines(640).split("\n")
    headless = "\n".join([*lines[3:], f"{dashes}END {label}{dashes}", "all done"])
    tailless = "\n".join(["cat id_rsa", f"{dashes}BEGIN {label}{dashes}", *lines[:6], lines[6][:20]])
    numbered = "\n".join(f"{i:6}\t{line}" for i, line in enumerate(tailless.split("\n"), 1))
    quoted = json.dumps(tailless)
    for text in (headless, tailless, numbered, quoted):
        out = redact(text)
        assert not [line for line in lines if line in out], out
    assert redact(headless).endswith("all done")
    assert redact(tailless).startswith("cat id_rsa")


def test_wrapped_base64_is_read_as_one() -> None:
    value = Draw(4).password(20)
    plain = "# settings of the shop\n" * 3 + f"DB_PASSWORD={value}\n" + "# end of the settings\n" * 2
    wrapped = base64.encodebytes(plain.encode()).decode()
    assert "{{SECRET:" in redact(wrapped)
    assert base64.b64encode(plain.encode()).decode()[90:130] not in redact(wrapped).replace("\n", "")


# --- known values -----------------------------------------------------------------------------------------------------


def test_known_values_go_in_every_spelling() -> None:
    value = 'blue "horse"/ä=7'
    scope = Redactor({"SHOP_SECRET": value}).scope()
    for spelling in (
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        "blue%20%22horse%22%2F%C3%A4%3D7",
        base64.b64encode(value.encode()).decode(),
        base64.b64encode(f"x{value}yz".encode()).decode(),
        base64.urlsafe_b64encode(f"xy{value}".encode()).decode(),
    ):
        assert spelling not in scope.text(f"see {spelling} there"), spelling


def test_common_values_of_the_environment_stay() -> None:
    known = {
        "A": "true",
        "ENV": "production",
        "HOST": "localhost",
        "SHORT": "abc12",
        "USER": "somebody",
        "PWD": "/home/somebody",
    }
    text = "true: production on localhost as somebody in /home/somebody with abc12"
    assert Redactor(known).scope().text(text) == text


# --- values and identifiers -------------------------------------------------------------------------------------------


def test_any_value_under_a_name_of_a_secret_is_replaced() -> None:
    data = {
        "password": "tulip",
        "apiKey": "short",
        "headers": {"Authorization": "Bearer some-thing", "Accept": "text/html"},
        "env": [{"name": "DB_PASSWORD", "value": "rose"}, {"name": "REGION", "value": "eu"}],
        "argv": ["login", "--token", "lily", "--verbose"],
        "pin_password": 12345678,
        "api_keys": ["iris", "aster"],
    }
    out = json.dumps(Redactor().scope().value(data))
    for secret in ("tulip", "short", "some-thing", "rose", "lily", "12345678", "iris", "aster"):
        assert secret not in out
    for kept in ("text/html", "REGION", '"eu"', "--verbose", "Bearer ", "login"):
        assert kept in out


@pytest.mark.parametrize(
    "data",
    [
        {
            "password": "",
            "token": None,
            "api_key": True,
            "secret": "${SECRET}",
            "passwd": "****",
            "pwd": "{{SECRET:password#1}}",
        },
        {"max_tokens": 4096, "token_count": "12", "tokens": ["a", "b"], "public_key": "abc", "key": "name"},
        {"a": [1, 2.5, None, True, {"b": []}], "c": {}},
    ],
)
def test_values_that_are_no_secrets_stay(data: object) -> None:
    assert Redactor().scope().value(data) == data


def test_keys_and_nested_json_are_redacted_too() -> None:
    token = GH + Draw(5)("abcdefgh0123456789XYZ", 36)
    out = Redactor().scope().value({token: {"x": json.dumps({"password": "hunter2222"})}})
    assert token not in json.dumps(out)
    assert "hunter2222" not in json.dumps(out)


def test_redacting_a_value_twice_changes_nothing() -> None:
    scope = Redactor().scope()
    once = scope.value(
        {"password": "rose", "headers": {"Authorization": "Basic Ym9iOnJvc2VzMTI="}, "x": ["--token", "lily"]}
    )
    assert scope.value(once) == once


@pytest.mark.slow
def test_deep_nesting_is_no_problem() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    Redactor().scope().value(deep)


def test_identifiers_keep_their_opaque_parts() -> None:
    scope = Redactor().scope()
    opaque = Draw(6)("abcdefghijKLMNOP0123456789", 32)
    assert scope.identifier(f"/data/{opaque}/x") == f"/data/{opaque}/x"
    assert scope.text(f"the value {opaque} came back") == "the value {{SECRET:opaque#1}} came back"
    token = GH + opaque
    assert token not in scope.identifier(f"/data/{token}/x")


def test_sharing_hides_people_and_machines() -> None:
    text = (
        r"bob.smith@acme.example wrote /home/bob/a.py, /Users/alice/b and C:\Users\Carol\c from 93.184.216.34; "
        "call +49 30 1234567; see https://wiki.acme-corp.net/x and db7.prod.internal, not https://github.com/a/b or 127.0.0.1"
    )
    out = Redactor(share=True).scope().text(text)
    for gone in ("bob.smith", "/home/bob", "/Users/alice", "Carol", "93.184", "1234567", "acme-corp", "db7.prod"):
        assert gone not in out
    for kept in ("github.com/a/b", "127.0.0.1", "/a.py"):
        assert kept in out
    assert redact(text) == text


# --- other text stays -------------------------------------------------------------------------------------------------

CLEAN = [
    "def get_password(self) -> str:\n    return self._password",
    "password = getpass.getpass('Password: ')",
    "token = tokens[self.position]",
    "if token.type == TokenType.IDENTIFIER:",
    "api_key=os.environ['OPENAI_API_KEY']",
    'client = OpenAI(api_key=os.getenv("OPENAI_API_KEY"))',
    "const apiKey = process.env.API_KEY;",
    "password: str | None = None",
    "secret: Optional[SecretStr] = Field(default=None)",
    "export GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }}",
    "DATABASE_PASSWORD=${DATABASE_PASSWORD:?required}",
    "curl -H 'Authorization: Bearer $TOKEN' https://api.example.com",
    "Authorization: Bearer <token>",
    "API_KEY=your-api-key-here",
    "password: ********",
    "sorted(items, key=lambda item: item.name)",
    "max_tokens=4096, temperature=0.7, top_p=0.95",
    '"usage": {"input_tokens": 1523, "output_tokens": 88, "cache_read_input_tokens": 0}',
    "The password must be at least 8 characters long.",
    "Enter your password:",
    "error: password is required",
    "Invalid token: unexpected end of input",
    "The secret to good tests is small steps.",
    "This key is used to sort the table.",
    "commit 3f2a1b4c5d6e7f8091a2b3c4d5e6f708192a3b4c\nAuthor: A Developer\nDate:   Mon Jan 5 10:00:00 2026 +0100",
    "3f2a1b4 fix: parse glued lines\n9c0d1e2 feat: add a reader",
    "index 83db48f..bf269f4 100644\n--- a/src/app.py\n+++ b/src/app.py",
    "123e4567-e89b-12d3-a456-426614174000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",',
    "github.com/stretchr/testify v1.8.4 h1:CcVxjf3Q8PM0mHUKJCdn+eZZtm5yQwehR5yeSVQQcUk=",
    "d41d8cd98f00b204e9800998ecf8427e  empty.txt",
    "Digest: sha256:9b7c8d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c",
    "toolu_01A2b3C4d5E6f7G8h9J0k1L2 returned in 3.2 s",
    "call_abc123DEF456ghi789JKL012 and chatcmpl-AbC123dEf456GhI789jKl012mNo345",
    "msg_01XFDUDYJgAACzvnptvVoYEL",
    "/usr/lib/python3.11/site-packages/google/protobuf/internal/well_known_types.py",
    "/home/user/.cache/pip/wheels/5e/1c/25/9d4f8f1a6e2b3c7d8e9f0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c/pkg.whl",
    "node_modules/@typescript-eslint/eslint-plugin/dist/rules/no-unnecessary-type-assertion.js",
    "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "https://github.com/python/cpython/blob/3.12/Lib/test/test_asyncio/test_subprocess.py#L120-L140",
    "https://docs.python.org/3/library/asyncio-subprocess.html?highlight=subprocess#asyncio.create_subprocess_exec",
    "AbstractSingletonProxyFactoryBeanConfigurationManagerImpl",
    "getServerSidePropsWithAuthenticationAndTranslations",
    "test_that_the_parser_handles_unterminated_strings_at_end_of_file",
    "MAX_CONCURRENT_CONNECTIONS_PER_AUTHENTICATED_CLIENT = 16",
    "XMLHttpRequestEventTargetUploadProgressListener",
    "Traceback (most recent call last):\n  File \"/app/main.py\", line 12, in <module>\n    main()\nKeyError: 'password'",
    "    at Object.<anonymous> (/app/node_modules/jest-circus/build/legacy-code-todo-rewrite/jestAdapterInit.js:441:5)",
    "tests/test_auth.py::TestLogin::test_wrong_password_is_rejected PASSED [ 45%]",
    "====== 120 passed, 3 skipped in 4.56s ======",
    "--- PASS: TestTokenRefresh/expired_token_2 (0.01s)",
    "2026-01-05T10:00:00.123Z INFO [main] server started on port 8080 in 1234ms",
    "SELECT id, name, password_hash FROM users WHERE token_expires_at > NOW() LIMIT 10;",
    "docker run -p 8080:80 -v /data:/data nginx:1.25-alpine",
    "mkdir -p src/components && cd src && git checkout -b feature/add-login",
    "git clone git@github.com:example/project.git",
    "ssh -i ~/.ssh/id_ed25519 deploy@example.com",
    "user:group 1000:1000 drwxr-xr-x 2 root root 4096 Jan  5 10:00 .",
    "x86_64-unknown-linux-gnu aarch64-apple-darwin i686-pc-windows-msvc",
    "rgba(255, 255, 255, 0.5); color: #a1b2c3; --token-color: #d0d0d0",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "pi = 3.14159265358979323846264338327950288419716939937510",
    "0x7ffee4b8c9d0 0xdeadbeef 0xFFFFFFFF",
    '<input type="password" name="password" placeholder="Password" autocomplete="current-password">',
    '<label for="token">Token</label>',
    '"scripts": {"build": "tsc -p tsconfig.json", "test": "vitest run --coverage"}',
    "key: value\nname: example\nport: 5432\nusername: postgres",
    "- uses: actions/checkout@v4\n  with:\n    token: ${{ secrets.PAT }}",
    "ssl_certificate /etc/nginx/certs/server.pem; ssl_certificate_key /etc/nginx/certs/server.key;",
    "export PATH=/usr/local/bin:$PATH",
    "Das Passwort ist falsch. Le mot de passe est incorrect.",
    "The quick brown fox jumps over the lazy dog; 50% of 3/4 is 37.5%, isn't it?",
    "résumé naïve café — “quotes” … 日本語のテキスト ✓ → ✗",
    "for (let i = 0; i < tokens.length; i++) { const token = tokens[i]; }",
    "func (s *Server) validateToken(ctx context.Context, token string) (*Claims, error) {",
    "pub fn parse_token(input: &str) -> Result<Token, ParseError> {",
    "session_id=test-session-1 transcript_path=/tmp/x.jsonl",
    '{"type":"user","sessionId":"2d984148-cddb-4605-aac1-13e720fe613c","version":"2.0.1"}',
]


@pytest.mark.parametrize("text", CLEAN)
def test_clean_text_stays(text: str) -> None:
    assert redact(text) == text


def test_there_is_enough_clean_text() -> None:
    assert len(CLEAN) >= 60


# --- any input --------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_is_redacted_without_complaint(text: str) -> None:
    scope = Redactor({"KNOWN": "tangerine-dream"}, share=True).scope()
    once = scope.text(text)
    assert scope.text(once) == once
    scope.identifier(text)


_PIECES = st.sampled_from(
    [
        *(
            "password",
            "token",
            "api_key",
            "secret",
            "=",
            ": ",
            '"',
            "'",
            "\\",
            "\\n",
            "\\u0041",
            "%41",
            "+",
            "\x1b[31m",
            "\x00",
        ),
        *(
            "{{SECRET:x#1}}",
            "{{SECRET:",
            "-----BEGIN RSA PRIVATE " + "KEY-----",
            "-----END RSA PRIVATE " + "KEY-----",
            "\n",
            " ",
        ),
        *(
            "://",
            "@",
            "bob:",
            "Bearer ",
            "hunter2",
            "aB3dE5fG7hJ9kL1mN3pQ",
            "QUJDREVGR0hJSktMTU5PUA==",
            "curl -u ",
            "is ",
            "\ud800",
            "é",
        ),
    ]
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=24).map("".join))
def test_redaction_is_idempotent_on_tangles(text: str) -> None:
    scope = Redactor().scope()
    once = scope.text(text)
    assert scope.text(once) == once


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | _PIECES | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | _PIECES, inner, max_size=4),
        max_leaves=20,
    )
)
def test_any_value_keeps_its_shape(value: object) -> None:
    out = Redactor().scope().value(value)
    if isinstance(value, list | dict):
        assert type(out) is type(value)
    if isinstance(value, list) and isinstance(out, list):
        assert len(out) == len(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            "=",
            "password=",
            'password="',
            "\\u0041",
            "%41",
            "\\",
            "\x1b[31m",
            "{{SECRET:",
            "<password>",
            "curl ",
            "mnemonic ",
        ),
        *(
            "://a:",
            "a://b:c@",
            "-----BEGIN RSA PRIVATE " + "KEY-----\n",
            "-----END RSA PRIVATE " + "KEY-----\n",
            "key: '",
            "cookie=a=",
        ),
        *(
            "QUJD",
            "a1",
            "/a1b2",
            "\x00",
            "é",
            "\ud800",
            "&amp;",
            "password is ",
            GH,
            "eyJ",
            "mysql -p ",
            '"password", ',
        ),
    ],
)
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        """Return processor time, which other processes on the machine do not lengthen."""
        text = (piece * (size // len(piece) + 1))[:size]
        start = time.process_time()
        Redactor().scope().text(text)
        return time.process_time() - start

    size = 100_000 if FULL else 20_000
    seconds(1_000)
    small = min(seconds(size) for _ in range(2))
    assert seconds(10 * size) < 40 * small + 0.1  # ten times the text; the rest is noise
