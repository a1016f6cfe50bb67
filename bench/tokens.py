"""Compare the token estimate with OpenAI's tokenizers, on rendered examples of real transcripts.

    pip install bpe-openai && python bench/tokens.py [DIR] [--json]

DIR defaults to the shared corpus beside the project. Up to six calls of each session are rendered as chat messages and as
text.

JSON keys: `texts`, `characters`, `encodings` {name: {below, lowest, p1, median, p99}} (estimate / exact count; `below` is
the number of texts estimated too low), `microseconds_per_kb`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import warmstart
from warmstart.dialects.compose import render
from warmstart.dialects.providers import refuse
from warmstart.dialects.tokens import estimate
from warmstart.formats import find_files
from warmstart.formats.source import Source
from warmstart.model import Example

CORPUS = ROOT.parent / "shared" / "corpus"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        from bpe_openai._bindings import tokenizer_for_encoding
    except ImportError:
        sys.exit("the exact tokenizer is not installed; run: pip install bpe-openai (41 MB)")
    if not options.dir.exists():
        sys.exit(f"{options.dir}: no such folder; give one with transcripts")
    texts = render_examples(options.dir)
    started = time.perf_counter()
    estimates = [estimate(text) for text in texts]
    spent = time.perf_counter() - started
    report: dict[str, Any] = {"texts": len(texts), "characters": sum(map(len, texts)), "encodings": {}}
    for name in ("o200k_base", "cl100k_base"):
        exact = tokenizer_for_encoding(name)
        ratios = sorted(guess / max(1, exact.count(text)) for guess, text in zip(estimates, texts, strict=True))
        report["encodings"][name] = {
            "below": sum(ratio < 1 for ratio in ratios),
            "lowest": round(ratios[0], 3),
            "p1": round(ratios[len(ratios) // 100], 3),
            "median": round(ratios[len(ratios) // 2], 3),
            "p99": round(ratios[-1 - len(ratios) // 100], 3),
        }
    report["microseconds_per_kb"] = round(spent * 1e9 / report["characters"], 1)
    print(json.dumps(report)) if options.json else show(report)


def render_examples(folder: Path) -> list[str]:
    texts: list[str] = []
    for file in find_files(folder):
        for scored in warmstart.scan(Source(file)):
            answered = [(call, answer) for call, answer in scored.session.calls() if answer is not None]
            for call, answer in answered[:6]:
                intent = (scored.session.task or "")[:200]
                example = Example(tool=call.tool, arguments=call.arguments, result=answer.text, intent=intent)
                if refuse(example, "openai") is None:
                    texts.append(json.dumps(render(example, "openai"), ensure_ascii=False, separators=(",", ":")))
                    texts.append(str(render(example, "text")))
    return texts


def show(report: dict[str, Any]) -> None:
    print(
        f"{report['texts']} texts, {report['characters'] / 1e6:.1f} M characters, {report['microseconds_per_kb']} us/KB"
    )
    for name, row in report["encodings"].items():
        spread = ", ".join(f"{key} {row[key]}" for key in ("lowest", "median", "p99"))
        print(f"{name}: {row['below']} estimated too low; estimate / exact: {spread}")


if __name__ == "__main__":
    main()
