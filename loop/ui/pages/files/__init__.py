"""The page Files: what can be exported; cohorts, votes and verdicts to import."""
