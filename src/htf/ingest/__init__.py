"""From files, tables and databases to exact counts of cells. Sensitive."""
