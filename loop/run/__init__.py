"""What was asked of which engine and what came back."""
