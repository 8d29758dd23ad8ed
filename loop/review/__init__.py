"""Clinicians' verdicts on failing cases: what they say, their files, their record."""
