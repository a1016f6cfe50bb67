"""All families of tasks: everyday chores with files and data over all six tools; those of `other_work` are held out."""

from __future__ import annotations

from warmstart.lab.chores.database import DATABASE
from warmstart.lab.chores.documents import DOCUMENTS
from warmstart.lab.chores.family import Family
from warmstart.lab.chores.other_work import OTHER_WORK
from warmstart.lab.chores.programs import PROGRAMS
from warmstart.lab.chores.several import SEVERAL
from warmstart.lab.chores.shell import SHELL

__all__ = ["FAMILIES", "Family"]

FAMILIES: tuple[Family, ...] = (*SHELL, *DOCUMENTS, *PROGRAMS, *DATABASE, *OTHER_WORK, *SEVERAL)
