"""`htf mechanisms`: list the mechanisms to choose from."""

from __future__ import annotations

from htf.cli import declared
from htf.cli.options import JSON
from htf.cli.screen import console, remark, say_json, show_table


@declared.command()
def mechanisms(as_json: bool = JSON) -> None:
    """List the mechanisms, their parameters with defaults, and where they come from."""
    from htf.mechanisms import refused, registry

    for name, reason in refused().items():
        remark(f"{name} cannot be used: {reason}")
    described = [mechanism.describe() for mechanism in registry().values()]
    if as_json:
        say_json(described)
        return
    for mechanism in described:
        console().print(mechanism["name"], style="bold", end="  ")
        console().print(mechanism["summary"])
        console().print(f"  {mechanism['citation']}")
        rows = [(p["name"], p["default"], p["help"]) for p in mechanism["parameters"]]
        show_table(("parameter", ">default", "meaning"), rows)
