"""The rivals, one file each, as their papers describe them."""
