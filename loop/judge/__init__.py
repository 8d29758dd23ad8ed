"""Judges of generated reports: what they find in pairs, and how far they are right."""
