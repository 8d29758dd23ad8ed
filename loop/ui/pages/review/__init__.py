"""The page Review: one failing case and label after the other, and what is wrong."""
