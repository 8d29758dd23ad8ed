"""The review queue: failing cases and labels, those worth most first."""
