"""Warmstart homes: make one, read all of one."""

from __future__ import annotations

from pathlib import Path


def read_everything(home: Path) -> bytes:
    """Return the bytes of every file under a home."""
    return b"".join(p.read_bytes() for p in sorted(home.rglob("*")) if p.is_file())


def make_roomy(home: Path) -> Path:
    """Make a home whose store keeps many active templates of a kind."""
    home.mkdir()
    (home / "config.toml").write_text("max_active = 100\n")
    return home
