"""A class name names one thing in the tree."""

from __future__ import annotations

import re
from collections import defaultdict

from places import ROOT

CLASS = re.compile(r"^[ \t]*class[ \t]+([A-Za-z]\w*)[ \t]*[(:\[]", re.M)


def test_public_class_names_are_unique():
    homes: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "src").rglob("*.py")):
        for name in CLASS.findall(file.read_text()):
            homes[name].append(str(file.relative_to(ROOT)))
    assert len(homes) > 300
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
