"""The public map: axes, cells, regions, reference systems. Nothing here depends on data."""
