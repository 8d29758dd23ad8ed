"""The page Readers: blinded labelling, adjudication, agreement of readers."""
