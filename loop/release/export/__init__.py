"""What production systems load: one prompt version in their form, its digest inside."""

from loop.release.export.export import Loaded, load_export

__all__ = ["Loaded", "load_export"]
