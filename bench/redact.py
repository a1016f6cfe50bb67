"""Redaction: how many secrets it finds, how much clean text it replaces, and its speed compared with `json.loads`.

    python bench/redact.py [DIR] [--json] [--seeds N]

Secrets are generated (tests/redact/secret_formats.py) in every encoding. Clean text is this project's own source; with
DIR also the strings of the transcripts below it (JSON, JSONL), some of which may really be secret; images and encrypted
thoughts are left out. Speed is measured on texts of 200 to 1,000 characters, 200 of them in a scope as in a session, on
the first pass and after one warm-up pass, and on whole strings; with Hyperscan, if it is installed, and with RE2 alone.
Dense text is 250 KB of one token per line.

JSON keys: `recall` {encoding: {vendor, generic, all}}, `missed` [names], `formats`, `clean_chars`, `clean_replaced`
(share of characters), `clean_spans`, `corpus_chars`, `corpus_replaced`, `corpus_spans`, `corpus_kinds` {kind: n} (null
without DIR), `mb_per_s`, `re2_mb_per_s`, `single_mb_per_s` (texts one by one), `first_pass_mb_per_s`, `whole_mb_per_s`
(whole strings, after that),
`json_loads_mb_per_s`, `ratio` (to json.loads), `clean_500_us`, `dense_s`, `fast` (whether Hyperscan is installed).
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import string
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from warmstart.redact import Redactor
from warmstart.redact.gate import GATE, SearchGate

FORMATS: Any = importlib.import_module("redact.secret_formats")  # the tests' own generator

PIECE = 1000
SESSION = 200  # texts that are redacted in one scope
ENCODED = frozenset(  # fields with images and encrypted thoughts: no reader keeps them
    """
    base64 data encryptedContent encrypted_content image image_url images reasoningEncryptedContent reasoningOpaque
    signature thinkingSignature thoughtSignature url
    """.split()
)
LETTERS = string.ascii_letters + string.digits
SENTENCE = "The quick brown fox jumps over the lazy dog; def first(items): return items[0] + 1\n"


def measure_recall(seeds: int) -> tuple[dict[str, dict[str, float]], list[str], int]:
    redactor = Redactor()
    total: Counter[tuple[str, str]] = Counter()
    hidden: Counter[tuple[str, str]] = Counter()
    missed: Counter[str] = Counter()
    for seed in range(seeds):
        for secret in FORMATS.make_secrets(seed):
            for encoding, encode in FORMATS.ENCODINGS.items():
                text, parts = encode(secret)
                gone = not FORMATS.leaks(redactor.scope().text(text), parts)
                for kind in (secret.kind, "all"):
                    total[encoding, kind] += 1
                    hidden[encoding, kind] += gone
                if not gone:
                    missed[secret.name] += 1
    recall = {
        encoding: {kind: hidden[encoding, kind] / total[encoding, kind] for kind in ("vendor", "generic", "all")}
        for encoding in FORMATS.ENCODINGS
    }
    return recall, [name for name, _ in missed.most_common()], len(FORMATS.make_secrets(0))


def clean_texts() -> list[str]:
    files = sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md")])
    return [file.read_text(encoding="utf-8") for file in files]


def cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def corpus_texts(folder: Path) -> list[str]:
    """Return the distinct strings of 200 characters or more."""
    seen: set[str] = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".jsonl", ".json", ".traj"):
            text = path.read_text(encoding="utf-8", errors="replace")
            for document in text.splitlines() if path.suffix == ".jsonl" else [text]:
                try:
                    seen.update(strings(json.loads(document)))
                except ValueError:
                    continue
    return sorted(seen)


def strings(value: Any) -> Iterator[str]:
    work = [value]
    while work:
        node = work.pop()
        if isinstance(node, str) and len(node) >= 200:
            yield node
        elif isinstance(node, dict):
            for key, member in node.items():
                if key not in ENCODED:
                    work.append(member)
        elif isinstance(node, list):
            work.extend(node)


def measure_replaced(texts: list[str]) -> tuple[int, float, int, dict[str, int]]:
    """Return the number of characters, the share replaced, the number of spans, and the spans by kind."""
    redactor = Redactor()
    chars = replaced = 0
    kinds: Counter[str] = Counter()
    for text in texts:
        scope = redactor.scope()
        kept = scope.text(text)
        chars += len(text)
        kinds.update(scope.kinds)
        replaced += len(text) - len(kept) + placed(kept) - placed(text)
    return chars, replaced / max(chars, 1), sum(kinds.values()), dict(kinds.most_common())


def placed(text: str) -> int:
    """Return the number of characters in placeholders."""
    return sum(map(len, re.findall(r"\{\{SECRET:[a-z0-9-]+#[0-9]+\}\}", text)))


def measure_speed(texts: list[str]) -> dict[str, float]:
    sized = [piece for text in texts for piece in cut(text) if len(piece) >= 200]
    size = sum(len(text.encode("utf-8", "replace")) for text in sized) / 1e6
    documents = [json.dumps(text) for text in sized]
    fast = GATE.prepare()
    slow = Redactor(gate=SearchGate(fast=False))
    seconds_together(Redactor(), clean_texts())  # compiles the rules
    first = seconds_together(Redactor(), sized)
    whole = seconds_together(Redactor(), texts)
    whole_size = sum(len(text.encode("utf-8", "replace")) for text in texts) / 1e6
    again = min(seconds_together(Redactor(), sized) for _ in range(3))
    single = min(seconds(Redactor().scope().text, sized) for _ in range(2))
    seconds_together(slow, sized)
    by_re2 = min(seconds_together(slow, sized) for _ in range(2))
    draw = random.Random(1)
    dense = [
        "\n".join("gh" + "p_" + "".join(draw.choices(LETTERS, k=36)) for _ in range(6_100)) for _ in range(3)
    ]  # new tokens each time: judgements of tokens are remembered
    parsing = min(seconds(json.loads, documents) for _ in range(3))
    sentence = (SENTENCE * 7)[:500]
    each = min(seconds(Redactor().scope().text, [sentence] * 2000) for _ in range(3)) / 2000
    return {
        "mb_per_s": size / again,
        "re2_mb_per_s": size / by_re2,
        "single_mb_per_s": size / single,
        "dense_s": min(seconds(Redactor().scope().text, [text]) for text in dense),
        "fast": fast,
        "first_pass_mb_per_s": size / first,
        "whole_mb_per_s": whole_size / whole,
        "json_loads_mb_per_s": size / parsing,
        "ratio": parsing / again,
        "clean_500_us": each * 1e6,
    }


def seconds_together(redactor: Redactor, texts: list[str]) -> float:
    """Return the processor time to redact the texts of many sessions."""
    sessions = [texts[start : start + SESSION] for start in range(0, len(texts), SESSION)]
    start = time.process_time()
    for session in sessions:
        redactor.scope().texts(session)
    return time.process_time() - start


def seconds(call: Any, inputs: list[str]) -> float:
    """Return processor time, which other processes on the machine do not lengthen."""
    start = time.process_time()
    for item in inputs:
        call(item)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    clean = clean_texts()
    corpus = corpus_texts(options.dir) if options.dir else []
    speed = measure_speed(corpus or clean)
    recall, missed, formats = measure_recall(options.seeds)
    report: dict[str, Any] = {"recall": recall, "missed": missed, "formats": formats}
    for name, texts in (("clean", clean), ("corpus", corpus)):
        chars, share, spans, kinds = measure_replaced(texts)
        known = bool(texts)
        report |= (
            {f"{name}_chars": chars, f"{name}_replaced": share, f"{name}_spans": spans}
            if known
            else {f"{name}_{key}": None for key in ("chars", "replaced", "spans")}
        )
        if name == "corpus":
            report["corpus_kinds"] = kinds if known else None
    report |= speed
    print(json.dumps(report)) if options.json else show(report)


def show(report: dict[str, Any]) -> None:
    print(f"recall over {report['formats']} formats   vendor  generic      all")
    for encoding, shares in report["recall"].items():
        print(f"  {encoding:<22}" + "".join(f"{100 * shares[kind]:8.1f}%" for kind in ("vendor", "generic", "all")))
    if report["missed"]:
        print("  missed: " + ", ".join(report["missed"]))
    for name in ("clean", "corpus"):
        if report[f"{name}_chars"]:
            share, spans, chars = (report[f"{name}_{key}"] for key in ("replaced", "spans", "chars"))
            print(f"{name} text: {100 * share:.4f} % of {chars / 1e6:.1f} M characters replaced, {spans} spans")
    if report["corpus_kinds"]:
        print("  kinds: " + ", ".join(f"{kind} {count}" for kind, count in report["corpus_kinds"].items()))
    print(
        f"speed: {report['mb_per_s']:.1f} MB/s ({report['ratio']:.3f} of json.loads at"
        f" {report['json_loads_mb_per_s']:.0f} MB/s), first pass {report['first_pass_mb_per_s']:.1f} MB/s,"
        f" whole strings {report['whole_mb_per_s']:.1f} MB/s, one by one {report['single_mb_per_s']:.1f} MB/s,"
        f" a clean text of 500 characters {report['clean_500_us']:.1f} us"
    )
    print(
        f"{'with' if report['fast'] else 'without'} Hyperscan; by RE2 alone {report['re2_mb_per_s']:.1f} MB/s;"
        f" 250 KB of dense tokens {report['dense_s']:.2f} s"
    )


if __name__ == "__main__":
    main()
