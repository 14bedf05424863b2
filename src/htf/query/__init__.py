"""What analysts ask a release: boxes, polygons, zones, with intervals. Public."""
