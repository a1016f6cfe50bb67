"""The families of tasks: what is asked, what lies there, what is right.

Tested are everyday chores with files and data, over all six tools. The families of `other_work` are held out.
"""

from __future__ import annotations

from warmstart.lab.families.database import DATABASE
from warmstart.lab.families.documents import DOCUMENTS
from warmstart.lab.families.family import Family
from warmstart.lab.families.other_work import OTHER_WORK
from warmstart.lab.families.programs import PROGRAMS
from warmstart.lab.families.shell import SHELL

__all__ = ["FAMILIES", "Family"]

FAMILIES: tuple[Family, ...] = (*SHELL, *DOCUMENTS, *PROGRAMS, *DATABASE, *OTHER_WORK)
