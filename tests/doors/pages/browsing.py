"""Scripts and sizes for looking at a page in Chromium."""

from __future__ import annotations

import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split() + ["--host-resolver-rules=MAP *.example 127.0.0.1"]

WIDTHS, COLOURS = (1280, 400), ("light", "dark")

BOXES = """() => [...document.querySelectorAll("svg:not(svg svg)")].map(svg => {
    const box = svg.getBoundingClientRect();
    const shown = [...svg.querySelectorAll("rect, circle, polyline, polygon, line, text")]
        .filter(part => { const b = part.getBoundingClientRect(); return b.width > 0 || b.height > 0; });
    return {name: svg.getAttribute("aria-label") || svg.getAttribute("class"), left: box.left, right: box.right,
            width: box.width, height: box.height, parts: shown.length};
})"""

# The contrast of each text with the nearest opaque background, as WCAG computes it.
CONTRASTS = """() => {
    const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const background = element => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return parse(getComputedStyle(document.documentElement).backgroundColor);
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
        if (element.closest("title")) continue;
        const style = getComputedStyle(element);
        const colour = parse(element.closest("svg") ? style.fill : style.color);
        const [a, b] = [light(colour), light(background(element))].sort((x, y) => y - x);
        found.push({text: walker.currentNode.textContent.slice(0, 40), ratio: (a + 0.05) / (b + 0.05),
                    size: parseFloat(style.fontSize)});
    }
    return found;
}"""
