"""Proposals for the clinician: searched wordings, cases worth reading, new labels."""
