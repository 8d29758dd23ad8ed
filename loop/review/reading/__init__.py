"""Blinded reading, its publication as votes, and the adjudication of disputes.

A reader gets the text of a case and nothing else: no model output, no other reader, no
reference. Holdout cohorts may be read too, because their reference is made this way.
"""
