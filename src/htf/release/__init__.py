"""What is published: the record, and the file that carries it. Public and immutable."""
