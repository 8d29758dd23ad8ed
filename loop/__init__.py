"""Take a clinical prompt from first draft to frozen release, clinician in the loop."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loop.release.label import label
    from loop.score.api import ran_score
    from loop.workspace import Workspace

try:
    __version__ = version("ranloop")
except PackageNotFoundError:  # a source tree on the path without installation
    __version__ = "0+unknown"

__all__ = ["Workspace", "__version__", "label", "ran_score"]

_FROM = {
    "Workspace": "loop.workspace",
    "label": "loop.release.label",
    "ran_score": "loop.score.api",
}
"""Where the public names are: each is imported when it is asked for, and the command
line stays light."""


def __getattr__(name: str) -> Any:
    """Return a public name, imported when it is asked for."""
    if name in _FROM:
        return getattr(import_module(_FROM[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
