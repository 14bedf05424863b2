"""Counters in the text format of Prometheus. Routes are named by their pattern, never by the query."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)  # seconds


class Metrics:
    """Counters that only the event loop writes, so that they need no lock."""

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.boxes = 0
        self.polygons = 0
        self.cached_tiles = 0
        self.running = 0

    def add(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.buckets[route][bisect_left(BUCKETS, seconds)] += 1
        self.seconds[route] += seconds

    def text(self) -> str:
        lines = [
            "# HELP htf_requests_total Requests answered.",
            "# TYPE htf_requests_total counter",
        ]
        lines += [
            f'htf_requests_total{{route="{route}",status="{status}"}} {number}'
            for (route, status), number in sorted(self.requests.items())
        ]
        name = "htf_request_seconds"
        lines += [f"# HELP {name} Time to answer a request.", f"# TYPE {name} histogram"]
        for route, buckets in sorted(self.buckets.items()):
            total = 0
            for bound, number in zip((*BUCKETS, "+Inf"), buckets, strict=True):
                total += number
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        for name, kind, told, value in (
            ("htf_boxes_counted_total", "counter", "Boxes counted.", self.boxes),
            ("htf_polygons_counted_total", "counter", "Polygons counted.", self.polygons),
            ("htf_cached_tiles_total", "counter", "Tiles from the cache.", self.cached_tiles),
            ("htf_running_requests", "gauge", "Requests being answered.", self.running),
        ):
            lines += [f"# HELP {name} {told}", f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join(lines) + "\n"
