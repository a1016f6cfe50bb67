"""Folders that tests read from, wherever the clone lies."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SRC = ROOT / "src"
DATA = TESTS / "data"
AUTHORITY = TESTS / "authority.pem"  # has signed nothing; each HTTP client reads it instead of 117 others in 40 ms
DOCS = ROOT / "docs"
HOWTO = DOCS / "howto"
SAMPLES = SRC / "warmstart" / "samples"
AGENTS = ROOT / ".agent-programs"  # real agents; `make agents` installs them
CORPUS = ROOT.parent / "shared" / "corpus"  # real transcripts, beside the clone and not part of it

NO_AGENTS = "the real agents are not installed"
NO_CORPUS = "the shared corpus is not here"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
