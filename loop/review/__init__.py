"""Clinicians' verdicts on failing cases, and the prompt versions made from them."""
