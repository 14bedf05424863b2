"""HTF: publish location data with differential privacy.

    import htf

    domain = htf.Domain.square(34.05223, -118.24368, 70, cells=1024)
    matrix = htf.read_points("pings.parquet", domain, ["lon", "lat"])
    release = htf.publish(matrix, epsilon=0.5)
    release.save("release.parquet")
    release.count([-118.3, 34.0, -118.2, 34.1])

Names are loaded when they are first used, so that importing the package is fast. `__init__.pyi` lists them.
"""

from __future__ import annotations

from htf.base.lazy import loader

__all__, __getattr__, __dir__ = loader(__name__, distribution="htf-dp")
