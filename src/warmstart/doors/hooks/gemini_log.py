"""The log that Gemini CLI keeps of a conversation: whether the model is still given a text that it was given before.

After a compaction or a rewind Gemini CLI calls no hook that says so, but its log does: `{"$set": {"messages": [...]}}`
holds all messages anew, and `{"$rewindTo": ID}` removes those from a message on.
"""

from __future__ import annotations

import json
from pathlib import Path

_ANEW = b'{"$set":{"messages":'
_REWOUND = b'{"$rewindTo":'


def still_shows(log: Path, text: str) -> bool:
    """Return whether the conversation has the text's first line. A log that cannot be read is given the benefit."""
    shown = text.partition("\n")[0].replace("<", "&lt;").replace(">", "&gt;")  # as Gemini CLI writes it
    mark = json.dumps(shown, ensure_ascii=False)[1:-1].encode()
    holder = b""
    try:
        with log.open("rb") as lines:
            for line in lines:
                if line.startswith(_ANEW):
                    holder = line if mark in line else b""
                elif line.startswith(_REWOUND):
                    holder = b"" if holder.startswith(b'{"id":' + line[len(_REWOUND) :].strip()[:-1]) else holder
                elif mark in line:
                    holder = line
    except OSError:
        return True
    return bool(holder)
