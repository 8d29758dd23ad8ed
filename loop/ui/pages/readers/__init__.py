"""The page Readers: blinded labelling, adjudication, agreement of readers."""

from loop.ui.pages.readers.page import build as build
