"""What every room stands on: errors, records, files, digests, the ledger, people."""
