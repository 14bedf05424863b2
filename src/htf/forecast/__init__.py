"""Mechanisms compared on exact data, and forecasts. For researchers, never for publication."""
