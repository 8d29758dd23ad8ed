"""The ledger held against everything it speaks of: what holds, and what does not."""
