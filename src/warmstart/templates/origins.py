"""Where a received template came from: the bundle, the file in it and the signer, written as one line of its provenance."""

from __future__ import annotations

from msgspec import Struct

_FILES, _SIGNED = " templates/", ", signed by "


class TemplateOrigin(Struct, frozen=True, kw_only=True):
    """The bundle, file and signer of a received template."""

    place: str
    file: str  # in the bundle
    signer: str  # the name that you gave the signer's key

    def write(self) -> str:
        """Return the line; see `read_origin`."""
        return f"{self.place} {self.file}{_SIGNED}{self.signer}"

    def is_same(self, other: TemplateOrigin | None) -> bool:
        """Return whether both are one signer's file: an address can be written in many ways, and a signer renamed."""
        if other is None or self.file != other.file:
            return False
        return self.signer == other.signer or self.place == other.place


def read_origin(source: str | None) -> TemplateOrigin | None:
    """Return the origin of a line; None if it does not name one."""
    head, signed, signer = (source or "").rpartition(_SIGNED)
    place, files, file = head.rpartition(_FILES)
    return TemplateOrigin(place=place, file=f"templates/{file}", signer=signer) if signed and files else None
