"""The lab: the same tasks with a real model, cold against warm, on one's own machine."""
