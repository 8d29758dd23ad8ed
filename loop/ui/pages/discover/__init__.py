"""The page Discover: clusters of what reports assert, and labels made of them."""
