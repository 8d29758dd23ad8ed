"""Published tables of results, checked against the arithmetic that must bind them."""
