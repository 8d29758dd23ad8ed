"""Take a clinical prompt from first draft to frozen release, clinician in the loop."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ranloop")
except PackageNotFoundError:  # a source tree on the path without installation
    __version__ = "0+unknown"

__all__ = ["__version__"]
