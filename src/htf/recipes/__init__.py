"""What a release is made of, what it costs, and how it is made."""
