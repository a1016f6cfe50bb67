"""Pure arithmetic of comparisons: intervals that hold at every look, power, rates, survival."""
