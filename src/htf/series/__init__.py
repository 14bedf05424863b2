"""Series: a map released again and again, period after period, with one plan for its budget."""
