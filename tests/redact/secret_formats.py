"""Fake secrets in the formats of real ones, drawn at random for each seed.

This file holds no secret and no literal that looks like one: prefixes and bodies are joined at run time, so that secret
scanners of the repository stay quiet. A `vendor` secret is recognised by its form, a `generic` one only by its place.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM, HEX, BASE32 = LOWER + UPPER + DIGITS, "0123456789abcdef", UPPER + "234567"
URLSAFE, BASE64 = ALNUM + "-_", ALNUM + "+/"


class Secret(NamedTuple):
    name: str
    kind: str  # vendor or generic
    value: str
    line: str


class Draw:
    """Draws the random parts of secrets."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, alphabet: str, size: int) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(size))

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def lines(self, size: int, width: int = 64) -> str:
        body = self(BASE64, size)
        return "\n".join(body[i : i + width] for i in range(0, size, width))

    def segment(self, value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    def password(self, size: int = 14) -> str:
        """Draw a password with at least one character of each class, as password managers do."""
        chars = [self(LOWER, 1), self(UPPER, 1), self(DIGITS, 1), self("!@#%^*-_+", 1)]
        chars += list(self(ALNUM + "!#%*-_+", size - 4))
        self.random.shuffle(chars)
        return "".join(chars).lstrip("-") + self(ALNUM, 1)


def _key_block(label: str, body: str) -> str:
    dashes = "-" * 5
    return f"{dashes}BEGIN {label}{dashes}\n{body}\n{dashes}END {label}{dashes}"


Maker = Callable[[Draw], str]

# name: (function that draws the secret, the line that holds it)
VENDOR: dict[str, tuple[Maker, str]] = {
    "aws access key": (lambda d: "AK" + "IA" + d(BASE32, 16), "aws_access_key_id = {}"),
    "aws secret key": (lambda d: d(BASE64, 40), "aws_secret_access_key = {}"),
    "aws temporary key": (lambda d: "AS" + "IA" + d(BASE32, 16), "key {} expires soon"),
    "aws session token": (lambda d: "IQoJb3JpZ2luX2Vj" + d(BASE64, 300) + "==", "export AWS_SESSION_TOKEN={}"),
    "github classic": (lambda d: "gh" + "p_" + d(ALNUM, 36), "git clone with {} please"),
    "github oauth": (lambda d: "gh" + "o_" + d(ALNUM, 36), "oauth: {}"),
    "github app": (lambda d: "gh" + "s_" + d(ALNUM, 36), "https://x-access-token:{}@github.com/o/r.git"),
    "github fine-grained": (lambda d: "github" + "_pat_" + d(ALNUM, 22) + "_" + d(ALNUM, 59), "GH_TOKEN={}"),
    "gitlab": (lambda d: "gl" + "pat-" + d(URLSAFE, 19) + d(ALNUM, 1), "PRIVATE-TOKEN: {}"),
    "gitlab runner": (lambda d: "gl" + "rt-" + d(URLSAFE, 19) + d(ALNUM, 1), 'token = "{}"'),
    "slack bot": (lambda d: "xo" + "xb-" + d(DIGITS, 12) + "-" + d(DIGITS, 12) + "-" + d(ALNUM, 24), "bot {} joined"),
    "slack app": (lambda d: "xa" + "pp-1-A" + d(UPPER + DIGITS, 10) + "-" + d(DIGITS, 13) + "-" + d(HEX, 64), "{}"),
    "slack webhook": (
        lambda d: "T" + d(UPPER + DIGITS, 8) + "/B" + d(UPPER + DIGITS, 10) + "/" + d(ALNUM, 24),
        "curl https://hooks.slack.com/services/{} -d hi",
    ),
    "stripe live": (lambda d: "sk" + "_live_" + d(ALNUM, 24), "stripe.api_key = '{}'"),
    "stripe restricted": (lambda d: "rk" + "_live_" + d(ALNUM, 24), "restricted {} in use"),
    "stripe webhook": (lambda d: "wh" + "sec_" + d(ALNUM, 32), "endpoint {}"),
    "openai": (lambda d: "sk" + "-" + d(ALNUM, 20) + "T3Blbk" + "FJ" + d(ALNUM, 20), "OPENAI_API_KEY={}"),
    "openai project": (lambda d: "sk" + "-proj-" + d(URLSAFE, 155) + d(ALNUM, 1), "using {} now"),
    "anthropic": (lambda d: "sk" + "-ant-api03-" + d(URLSAFE, 93) + "AA", "x-api-key: {}"),
    "openrouter": (lambda d: "sk" + "-or-v1-" + d(HEX, 64), "key: {}"),
    "google api": (lambda d: "AI" + "za" + d(URLSAFE, 34) + d(ALNUM, 1), "https://maps.example.com/api?key={}"),
    "google oauth": (lambda d: "ya" + "29.a0" + d(URLSAFE, 120) + d(ALNUM, 1), "access {} granted"),
    "google client secret": (lambda d: "GOC" + "SPX-" + d(URLSAFE, 27) + d(ALNUM, 1), '"client_secret":"{}"'),
    "azure storage": (
        lambda d: d(BASE64, 86) + "==",
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={};EndpointSuffix=core.windows.net",
    ),
    "azure sas": (
        lambda d: quote(base64.b64encode(d(ALNUM, 32).encode()).decode(), safe=""),
        "https://shop.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={}",
    ),
    "azure ad": (lambda d: d(ALNUM, 3) + "8Q~" + d(ALNUM + "_-.~", 33) + d(ALNUM, 1), "app secret {} created"),
    "npm": (lambda d: "np" + "m_" + d(ALNUM, 36), "//registry.example.com/:_authToken={}"),
    "pypi": (lambda d: "py" + "pi-AgEIcHlwaS5vcmc" + d(URLSAFE, 150) + d(ALNUM, 1), "password = {}"),
    "docker hub": (lambda d: "dckr" + "_pat_" + d(URLSAFE, 26) + d(ALNUM, 1), "docker login -u me -p {}"),
    "huggingface": (lambda d: "h" + "f_" + d(ALNUM, 34), "HF_TOKEN={}"),
    "twilio": (lambda d: "S" + "K" + d(HEX, 32), "twilio {} active"),
    "sendgrid": (lambda d: "S" + "G." + d(URLSAFE, 21) + d(ALNUM, 1) + "." + d(URLSAFE, 42) + d(ALNUM, 1), "mail: {}"),
    "mailgun": (lambda d: "key" + "-" + d(HEX, 32), "curl --user api:{} https://api.mailgun.net/v3"),
    "mailgun new": (lambda d: d(HEX, 32) + "-" + d(HEX, 8) + "-" + d(HEX, 8), "MAILGUN_KEY={}"),
    "mailchimp": (lambda d: d(HEX, 32) + "-us" + d("12345", 1), "mailchimp {} ok"),
    "telegram": (
        lambda d: d("123456789", 10) + ":AA" + d(URLSAFE, 32) + d(ALNUM, 1),
        "https://api.telegram.org/bot{}/getMe",
    ),
    "discord bot": (
        lambda d: "M" + d(ALNUM, 23) + "." + d(ALNUM, 6) + "." + d(URLSAFE, 37) + d(ALNUM, 1),
        "client.run('{}')",
    ),
    "discord webhook": (
        lambda d: d(DIGITS, 18) + "/" + d(URLSAFE, 67) + d(ALNUM, 1),
        "https://discord.com/api/webhooks/{}",
    ),
    "digitalocean": (lambda d: "dop" + "_v1_" + d(HEX, 64), "doctl auth init -t {}"),
    "heroku": (lambda d: "HRKU" + "-AA" + d(URLSAFE, 57) + d(ALNUM, 1), "heroku said {}"),
    "heroku uuid": (lambda d: d.uuid(), "HEROKU_API_KEY={}"),
    "cloudflare": (lambda d: d(URLSAFE, 39) + d(ALNUM, 1), "CLOUDFLARE_API_TOKEN={}"),
    "cloudflare origin": (lambda d: "v1" + ".0-" + d(HEX, 24) + "-" + d(HEX, 146), "origin ca {}"),
    "datadog": (lambda d: d(HEX, 32), "DD_API_KEY={}"),
    "new relic": (lambda d: "NR" + "AK-" + d(UPPER + DIGITS, 27), "newrelic {} set"),
    "sentry dsn": (lambda d: d(HEX, 32), "SENTRY_DSN=https://{}@o12345.ingest.sentry.io/4501"),
    "shopify": (lambda d: "shp" + "at_" + d(HEX, 32), "X-Shopify-Access-Token: {}"),
    "square": (lambda d: "sq0" + "csp-" + d(URLSAFE, 42) + d(ALNUM, 1), "square {}"),
    "braintree": (lambda d: "access_token$" + "production$" + d(LOWER + DIGITS, 16) + "$" + d(HEX, 32), "{}"),
    "databricks": (lambda d: "da" + "pi" + d(HEX, 32), "databricks configure --token {}"),
    "dropbox": (lambda d: "s" + "l." + d(URLSAFE, 134) + d(ALNUM, 1), "dropbox: {}"),
    "figma": (lambda d: "fig" + "d_" + d(URLSAFE, 40) + d(ALNUM, 1), "X-Figma-Token: {}"),
    "linear": (lambda d: "lin" + "_api_" + d(ALNUM, 40), "Authorization: {}"),
    "notion": (lambda d: "nt" + "n_" + d(ALNUM, 46), "notion {}"),
    "atlassian": (lambda d: "ATA" + "TT3xFfGF0" + d(URLSAFE, 170) + "=" + d(UPPER + DIGITS, 8), "-u me@example.com:{}"),
    "airtable": (lambda d: "pat" + d(ALNUM, 14) + "." + d(HEX, 64), "airtable {}"),
    "asana": (lambda d: "1/" + d("123456789", 16) + ":" + d(HEX, 32), "asana {}"),
    "postman": (lambda d: "PM" + "AK-" + d(HEX, 24) + "-" + d(HEX, 34), "x-api-key={}"),
    "grafana": (lambda d: "gl" + "sa_" + d(ALNUM, 32) + "_" + d(HEX, 8), "grafana {}"),
    "vault": (lambda d: "hv" + "s." + d(URLSAFE, 94) + d(ALNUM, 1), "VAULT_TOKEN={}"),
    "terraform": (
        lambda d: d(ALNUM, 14) + ".atlas" + "v1." + d(ALNUM, 67),
        'credentials "app.terraform.io" {{ token = "{}" }}',
    ),
    "pulumi": (lambda d: "pu" + "l-" + d(HEX, 40), "pulumi login {}"),
    "doppler": (lambda d: "dp" + ".st.prd." + d(ALNUM, 43), "doppler {}"),
    "1password": (lambda d: "ops" + "_" + d.segment({"signInAddress": "x", "key": d(ALNUM, 60)}), "op: {}"),
    "age": (lambda d: "AGE-SECRET-" + "KEY-1" + d("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), "{}"),
    "groq": (lambda d: "gs" + "k_" + d(ALNUM, 52), "groq {}"),
    "replicate": (lambda d: "r" + "8_" + d(ALNUM, 37), "replicate {}"),
    "perplexity": (lambda d: "pp" + "lx-" + d(ALNUM, 48), "perplexity {}"),
    "xai": (lambda d: "xa" + "i-" + d(ALNUM, 80), "grok {}"),
    "fireworks": (lambda d: "f" + "w_" + d(ALNUM, 24), "fireworks {}"),
    "pinecone": (lambda d: "pc" + "sk_" + d(ALNUM, 5) + "_" + d(ALNUM, 60), "pinecone {}"),
    "supabase": (lambda d: "sb" + "p_" + d(HEX, 40), "supabase {}"),
    "netlify": (lambda d: "nf" + "p_" + d(ALNUM, 36), "netlify {}"),
    "fly": (lambda d: "fm" + "2_" + d(BASE64, 120) + "=", "FLY_API_TOKEN=FlyV1 {}"),
    "render": (lambda d: "rn" + "d_" + d(ALNUM, 28), "render {}"),
    "railway": (lambda d: d.uuid(), "RAILWAY_TOKEN={}"),
    "planetscale": (lambda d: "pscale" + "_tkn_" + d(URLSAFE, 42) + d(ALNUM, 1), "planetscale {}"),
    "neon": (lambda d: "nap" + "i_" + d(LOWER + DIGITS, 64), "neon {}"),
    "sourcegraph": (lambda d: "sg" + "p_" + d(HEX, 16) + "_" + d(HEX, 40), "src {}"),
    "circleci": (lambda d: "CCI" + "PAT_" + d(ALNUM, 22) + "_" + d(HEX, 40), "circle {}"),
    "buildkite": (lambda d: "bk" + "ua_" + d(HEX, 40), "buildkite {}"),
    "jfrog": (lambda d: "AK" + "Cp" + d(ALNUM, 69), "jfrog {}"),
    "sonar": (lambda d: "sq" + "p_" + d(HEX, 40), "sonar.login={}"),
    "snyk": (lambda d: d.uuid(), "SNYK_TOKEN={}"),
    "okta": (lambda d: "00" + d(URLSAFE, 39) + d(ALNUM, 1), "Authorization: SSWS {}"),
    "auth0": (lambda d: d(URLSAFE, 63) + d(ALNUM, 1), "AUTH0_CLIENT_SECRET={}"),
    "firebase": (lambda d: "AAAA" + d(ALNUM, 7) + ":APA91b" + d(URLSAFE, 133) + d(ALNUM, 1), "fcm {}"),
    "mapbox": (
        lambda d: "s" + "k." + d.segment({"u": d(LOWER, 8), "a": d(ALNUM, 20)}) + "." + d(URLSAFE, 21) + d(ALNUM, 1),
        "{}",
    ),
    "algolia": (lambda d: d(HEX, 32), "ALGOLIA_ADMIN_KEY={}"),
    "intercom": (lambda d: "dG9r" + base64.b64encode(b":" + d(HEX, 42).encode()).decode(), "intercom {}"),
    "zendesk": (lambda d: d(ALNUM, 40), "curl -u me@example.com/token:{} https://x.zendesk.com"),
    "hubspot": (lambda d: "pa" + "t-na1-" + d.uuid(), "hubspot {}"),
    "plaid": (lambda d: "access" + "-production-" + d.uuid(), "plaid {}"),
    "coinbase": (lambda d: d(ALNUM, 32), "COINBASE_API_SECRET={}"),
    "tailscale": (lambda d: "tskey" + "-auth-" + d(ALNUM, 17) + "-" + d(ALNUM, 32), "tailscale up --authkey {}"),
    "alibaba": (lambda d: "LT" + "AI5t" + d(ALNUM, 20), "aliyun {}"),
    "rubygems": (lambda d: "ruby" + "gems_" + d(HEX, 48), "gem push {}"),
    "new vendor": (lambda d: d(LOWER, 4) + "_live_" + d(ALNUM, 32), "token {}"),
    "jwt": (
        lambda d: (
            d.segment({"alg": "HS256", "typ": "JWT"})
            + "."
            + d.segment({"sub": d(DIGITS, 10)})
            + "."
            + d(URLSAFE, 42)
            + d(ALNUM, 1)
        ),
        "cookie jwt {}",
    ),
    "rsa private key": (lambda d: _key_block("RSA PRIVATE " + "KEY", d.lines(1600)), "{}"),
    "openssh private key": (
        lambda d: _key_block("OPENSSH PRIVATE " + "KEY", "b3BlbnNzaC1rZXktdjE" + d.lines(400, 70)),
        "{}",
    ),
    "pgp private key": (lambda d: _key_block("PGP PRIVATE " + "KEY BLOCK", "\n" + d.lines(900)), "{}"),
    "ethereum": (lambda d: "0x" + d(HEX, 64), "PRIVATE_KEY={}"),
    "wireguard": (lambda d: d(BASE64, 43) + "=", "PrivateKey = {}"),
}

GENERIC: dict[str, tuple[Maker, str]] = {
    "env password": (lambda d: d.password(), "DB_PASSWORD={}"),
    "yaml password": (lambda d: d.password(), "  password: {}"),
    "json password": (lambda d: d.password(), '{{"user": "bob", "password": "{}"}}'),
    "json api key": (lambda d: d(ALNUM, 24), '"apiKey": "{}",'),
    "toml secret": (lambda d: d.password(20), 'secret = "{}"'),
    "ini password": (lambda d: d(ALNUM, 12), "password = {}"),
    "export token": (lambda d: d(HEX, 40), "export MY_SERVICE_TOKEN={}"),
    "flag password": (lambda d: d.password(), "tool login --user bob --password {}"),
    "flag token": (lambda d: d(ALNUM, 20), "deploy --token={} --prod"),
    "mysql -p": (lambda d: d(ALNUM, 12), "mysql -h db -u root -p{} shop"),
    "curl -u": (lambda d: d(ALNUM, 12), "curl -u admin:{} https://example.com/api"),
    "bearer": (lambda d: d(ALNUM, 32), "Authorization: Bearer {}"),
    "basic": (lambda d: base64.b64encode(f"bob:{d.password()}".encode()).decode(), "Authorization: Basic {}"),
    "cookie": (lambda d: d(ALNUM, 32), "Cookie: sessionid={}; theme=dark"),
    "postgres url": (lambda d: d(ALNUM, 14), "postgres://app:{}@db.example.com:5432/shop"),
    "mongodb url": (lambda d: d(ALNUM, 14), "mongodb+srv://app:{}@cluster0.example.net/?retryWrites=true"),
    "redis url": (lambda d: d(ALNUM, 20), "REDIS_URL=redis://:{}@cache:6379/0"),
    "amqp url": (lambda d: d(ALNUM, 14), "amqp://guest:{}@mq/%2f"),
    "jdbc": (lambda d: d(ALNUM, 14), "jdbc:mysql://db:3306/shop?user=app&password={}&useSSL=false"),
    "ado.net": (lambda d: d(ALNUM, 14), "Server=db;Database=shop;User Id=sa;Password={};Encrypt=true"),
    "netrc": (lambda d: d(ALNUM, 14), "machine api.example.com login bob password {}"),
    "npmrc password": (lambda d: base64.b64encode(d(ALNUM, 16).encode()).decode(), "//npm.example.com/:_password={}"),
    "docker auth": (lambda d: base64.b64encode(f"bob:{d(ALNUM, 20)}".encode()).decode(), '"auth": "{}"'),
    "kubeconfig": (lambda d: d(ALNUM, 40), "    token: {}"),
    "htpasswd": (lambda d: "$apr1$" + d(ALNUM, 8) + "$" + d(ALNUM + "./", 22), "bob:{}"),
    "bcrypt": (lambda d: "$2b$12$" + d(ALNUM + "./", 53), "hash {}"),
    "sha512 crypt": (lambda d: "$6$" + d(ALNUM, 16) + "$" + d(ALNUM + "./", 86), "root:{}:19000:0:99999:7:::"),
    "xml": (lambda d: d.password(16).replace("<", "x"), "<password>{}</password>"),
    "rails": (lambda d: d(HEX, 128), "secret_key_base: {}"),
    "django": (lambda d: d(ALNUM + "!@#%^*(-_=+)", 49) + "k", "SECRET_KEY = 'django-insecure-{}'"),
    "prose": (lambda d: d(LOWER, 6) + d(DIGITS, 3), "the password is {} by the way"),
    "wifi": (lambda d: d(ALNUM, 16), '    psk="{}"'),
    "mnemonic": (lambda d: " ".join(d(LOWER, d.random.randint(3, 8)) for _ in range(12)), "mnemonic: {}"),
    "totp": (lambda d: d(BASE32, 32), "otpauth://totp/acme:bob?secret={}&issuer=acme"),
    "query": (lambda d: d(ALNUM, 24), "GET /v1/items?access_token={}&page=2"),
    "tuple": (lambda d: d(ALNUM, 20), 'os.environ.setdefault("API_KEY", "{}")'),
    "kubernetes env": (lambda d: d(ALNUM, 18), "- name: DB_PASSWORD\n  value: {}"),
    "sql": (lambda d: d.password().replace("'", "x"), "CREATE USER app IDENTIFIED BY '{}';"),
    "opaque": (lambda d: d(ALNUM, 40), "the value {} was returned"),
    "opaque url-safe": (lambda d: d(ALNUM, 1) + d(URLSAFE, 41) + d(ALNUM, 1), "got {} from the service"),
    "header": (lambda d: d(ALNUM, 32), '-H "X-Auth-Token: {}"'),
    "set config": (lambda d: d(BASE64, 39) + "x", "aws configure set aws_secret_access_key {}"),
    "license": (lambda d: "-".join(d(UPPER + DIGITS, 5) for _ in range(5)), "license key: {}"),
}


def make_secrets(seed: int) -> list[Secret]:
    """Make one secret of every format."""
    draw = Draw(seed)
    return [
        Secret(name, kind, value, line.format(value))
        for kind, formats in (("vendor", VENDOR), ("generic", GENERIC))
        for name, (make, line) in formats.items()
        for value in [make(draw)]
    ]


def _colour(text: str, value: str) -> str:
    half = len(value) // 2
    painted = f"\x1b[1;31m{value[:half]}\x1b[0m\x1b[32m{value[half:]}\x1b[0m"
    return text.replace(value, painted)


# Each encoding of a line, and the parts of the secret that must not remain in it.
ENCODINGS: dict[str, Callable[[Secret], tuple[str, list[str]]]] = {
    "raw": lambda s: (s.line, [s.value]),
    "json": lambda s: (json.dumps({"out": s.line, "n": 1}), [json.dumps(s.value)[1:-1]]),
    "json twice": lambda s: (json.dumps(json.dumps({"out": s.line})), [json.dumps(json.dumps(s.value)[1:-1])[1:-1]]),
    "unicode escapes": lambda s: (
        "".join(f"\\u{ord(c):04x}" for c in s.line),
        ["".join(f"\\u{ord(c):04x}" for c in s.value)],
    ),
    "base64": lambda s: (base64.b64encode(s.line.encode()).decode(), [base64.b64encode(s.line.encode()).decode()]),
    "base64 in text": lambda s: (
        f"payload: {base64.b64encode(s.line.encode()).decode()} (decoded below)",
        [base64.b64encode(s.line.encode()).decode()],
    ),
    "url": lambda s: (quote(s.line, safe=""), [quote(s.value, safe="")]),
    "url query": lambda s: ("https://example.com/cb?state=1&q=" + quote(s.line, safe=""), [quote(s.value, safe="")]),
    "ansi": lambda s: (_colour(s.line, s.value), [s.value, s.value[: len(s.value) // 2], s.value[len(s.value) // 2 :]]),
}


def leaks(redacted: str, parts: list[str]) -> bool:
    """Return whether a text still holds the secret, or two thirds of it."""
    for part in parts:
        if part in redacted:
            return True
        size = max(len(part) * 2 // 3, 8)
        if len(part) > size and any(part[i : i + size] in redacted for i in range(len(part) - size + 1)):
            return True
    return False
