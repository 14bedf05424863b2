"""Pictures of releases, still and in a browser. Public."""
