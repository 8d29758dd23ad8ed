"""Take a clinical prompt from first draft to frozen release, clinician in the loop."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loop.release.label import label

try:
    __version__ = version("ranloop")
except PackageNotFoundError:  # a source tree on the path without installation
    __version__ = "0+unknown"

__all__ = ["__version__", "label"]


def __getattr__(name: str) -> Any:
    """Return `label`, imported when it is asked for: the command line stays light."""
    if name == "label":
        from loop.release.label import label

        return label
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
