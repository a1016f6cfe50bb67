"""The background review: after a turn or a session, is there something worth keeping?

`Reviews` reviews transcripts and decides about proposals; `spawn_review` does the same in the background of a host.
Nothing is written without a person's yes or a policy that the person has set.
"""

from __future__ import annotations

from warmstart.review.background import Background, ReviewRuntime, spawn_review
from warmstart.review.prompts import Focus
from warmstart.review.reviews import Reviewed, Reviews
from warmstart.review.schedule import Schedule

__all__ = ["Background", "Focus", "ReviewRuntime", "Reviewed", "Reviews", "Schedule", "spawn_review"]
