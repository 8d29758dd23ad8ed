"""Output contracts: from raw text to fields, or to a stated refusal."""
