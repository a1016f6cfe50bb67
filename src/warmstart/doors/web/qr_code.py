"""QR codes of login links, for phones."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from warmstart.errors import Refused

if TYPE_CHECKING:
    import segno


def draw_qr(text: str) -> list[str]:
    """Return the code as rows of 0 and 1, without a border."""
    return ["".join("1" if module else "0" for module in row) for row in _make(text).matrix]


def print_qr(text: str) -> str:
    """Return the code as lines for a terminal."""
    lines = io.StringIO()
    _make(text).terminal(lines, compact=True, border=2)
    return lines.getvalue()


def _make(text: str) -> segno.QRCode:
    try:
        import segno
    except ImportError as error:
        raise Refused("QR codes need segno; install it with: pip install 'warmstart[confirm]'") from error
    return segno.make(text, error="m", micro=False)
