"""From verdicts to the next version: draft, check against the parent, commit."""
