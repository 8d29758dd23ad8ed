"""The page Revise: from open verdicts to a draft, its check, and the next version."""
