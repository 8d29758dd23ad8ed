"""What production systems load: one prompt version in their form, its digest inside."""

from loop.release.export.load import Loaded, load_export

__all__ = ["Loaded", "load_export"]
