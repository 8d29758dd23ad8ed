"""The page Versions: where a prompt's versions came from, and what the ledger says."""
