"""A matrix of engines as a page, as text, as a table and as data."""
