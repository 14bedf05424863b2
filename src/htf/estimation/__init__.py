"""From noisy counts to best guesses. Everything here is computed from public numbers."""
