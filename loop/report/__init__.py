"""Documents people read and keep."""
