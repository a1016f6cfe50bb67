"""Draw which sessions enter a comparison: `python docs/images/comparison.py` writes comparison.svg beside itself."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 860, 470
TITLE = "Which sessions enter a comparison"
DESCRIPTION = (
    "From top to bottom: an arm is drawn for every session that is provisioned. Sessions that are cold by choice, that "
    "inherit an arm or that began earlier are left out and counted. Sessions without a transcript are missing: they bound "
    "the interval. The measured sessions are compared. Three checks can refuse a verdict: the split, the missing "
    "transcripts, and whether anybody got a seed. Bounds and guardrails can withhold it."
)
BOXES = (  # x, y, width, fill, lines
    (20, 20, 380, "#e8f0fe", ("Provisioned: an arm is drawn", "by the session's id; the draw is kept for ever")),
    (480, 20, 360, "#f3f3f3", ("Left out, and counted by reason", "cold by choice · inherited arm · began earlier")),
    (20, 120, 380, "#e8f0fe", ("Drawn: counted in the arm of the draw", "whatever was chosen later")),
    (480, 120, 360, "#fff4e0", ("Missing: no transcript", "bounds: as if at the worst, or the best, end")),
    (20, 220, 380, "#e8f0fe", ("Measured: calls made after the draw", "not those copied from a parent session")),
    (480, 220, 360, "#fdecea", ("Checks: refuse every verdict", "split · project, agent, work · losses · no seeds")),
    (20, 320, 380, "#e8f0fe", ("Interval of the difference", "valid however often you look")),
    (480, 320, 360, "#fff4e0", ('Withhold "better" or "worse"', "bounds cross zero · a guardrail falls")),
    (20, 405, 820, "#e6f4ea", ("Verdict: better, worse, inconclusive or too few",)),
)
ARROWS = (  # from x, y to x, y
    (210, 70, 210, 118),
    (210, 170, 210, 218),
    (210, 270, 210, 318),
    (210, 370, 210, 403),
    (400, 45, 478, 45),
    (400, 145, 478, 145),
    (478, 245, 402, 245),
    (478, 345, 402, 345),
)


def draw() -> str:
    """Return the picture as SVG, with a title and a description for readers who cannot see it."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(TITLE)}</title>',
        f'<desc id="d">{escape(DESCRIPTION)}</desc>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#333"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        '<g font-family="system-ui, sans-serif" font-size="15" fill="#111" text-anchor="middle">',
        *(draw_box(*box) for box in BOXES),
        "</g>",
        '<g stroke="#333" stroke-width="1.5">',
        *(f'<path d="M{x} {y}L{to_x} {to_y}" marker-end="url(#tip)"/>' for x, y, to_x, to_y in ARROWS),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def draw_box(x: int, y: int, width: int, fill: str, lines: tuple[str, ...]) -> str:
    """Return a box with its first line in bold."""
    first, *rest = (escape(line) for line in lines)
    middle = x + width // 2
    texts = [f'<text x="{middle}" y="{y + 21}" font-weight="600">{first}</text>']
    texts += [f'<text x="{middle}" y="{y + 41}" font-size="13">{line}</text>' for line in rest]
    height = 50 if rest else 34
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="#555"/>'
    return shape + "".join(texts)


if __name__ == "__main__":
    (HERE / "comparison.svg").write_text(draw(), encoding="utf-8")
