"""What one's own history tells, before any experiment. `gather_insights` is the way in."""

from __future__ import annotations

from warmstart.insights.gather import gather_insights
from warmstart.insights.types import Insights

__all__ = ["Insights", "gather_insights"]
