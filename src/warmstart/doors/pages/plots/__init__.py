"""SVG plots for pages: shared scales and pieces, the insights' error rates, the lab's arms."""
