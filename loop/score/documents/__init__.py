"""A Ran Score as a page, as text, as data, as figures and as files."""
