"""What reports assert and no label names: phrases, clusters, a taxonomy draft."""
