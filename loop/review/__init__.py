"""Failing cases and the clinicians' verdicts on them."""
