"""Why files are skipped that are not transcripts, or not worth reading; other reasons are those of the readers."""

from __future__ import annotations

from collections.abc import Callable

Skip = Callable[[str, str], None]  # gets a file's name and why it is skipped

OTHER_NAME = "its name is not that of a transcript"
NESTED = "an archive inside an archive"
LINK = "a link, device or sparse file"
SMALLER = "a smaller copy of a session that is read"
