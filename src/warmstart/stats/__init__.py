"""Pure statistics: always-valid comparisons, paired comparisons, power, rates and survival."""
