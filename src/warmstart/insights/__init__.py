"""Insights from history, without an experiment: repeated errors, rates, costs, advice. Enter by `gather_insights`."""

from __future__ import annotations

from warmstart.insights.gather import gather_insights
from warmstart.insights.types import Insights

__all__ = ["Insights", "gather_insights"]
