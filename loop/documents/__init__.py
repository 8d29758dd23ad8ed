"""What every document is made of; it knows no subject."""
