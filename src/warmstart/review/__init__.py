"""The review: find what is worth keeping of a session, and propose it as notes, skills or templates.

`Reviews` reviews transcripts and takes decisions about proposals; `spawn_review` reviews in the background of a host.
Nothing is written without a person's approval or a policy that the person has set.
"""

from __future__ import annotations

from warmstart.review.background import Background, ReviewRuntime, spawn_review
from warmstart.review.prompts import Focus
from warmstart.review.reviews import Reviewed, Reviews
from warmstart.review.schedule import Schedule

__all__ = ["Background", "Focus", "ReviewRuntime", "Reviewed", "Reviews", "Schedule", "spawn_review"]
