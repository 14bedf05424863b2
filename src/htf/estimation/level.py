"""The confidence level of intervals, 95 %, defined only here. Light to import, for texts on the screen."""

LEVEL = 0.95  # the share of intervals that should contain the true count
LEVEL_TEXT = f"{LEVEL * 100:g} %"
OUTSIDE = round(1 - LEVEL, 12)  # the share that may miss it
# Standard deviations: half the width around a sum of much independent noise.
NORMAL_DEVIATIONS = 1.96
