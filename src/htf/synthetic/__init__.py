"""Made-up data: a city, its visits, its trips and its districts. Nobody was ever there."""
