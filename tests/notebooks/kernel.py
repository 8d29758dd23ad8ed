"""A clean kernel of the interpreter that runs the tests, whatever else is installed."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient


class OwnKernel(AsyncKernelManager):
    """Starts ``sys.executable``; never a kernel that somebody registered by name."""

    @property
    def kernel_spec(self):
        """The command of the kernel."""
        launch = [sys.executable, "-m", "ipykernel_launcher"]
        return KernelSpec(
            argv=[*launch, "-f", "{connection_file}"],
            display_name="Python 3",
            language="python",
        )


def execute(path: Path) -> nbformat.NotebookNode:
    """Return the notebook at `path`, executed anew in an empty folder; or raise.

    A cell that takes a minute is stopped: a notebook as a whole takes seconds.
    """
    notebook = nbformat.read(path, as_version=4)
    # Sockets in a short path: ports would be races between tests side by side.
    with TemporaryDirectory(prefix="nb-") as folder:
        ip = str(Path(folder) / "kernel")
        kernel = OwnKernel(transport="ipc", ip=ip)
        empty = Path(folder) / "empty"
        empty.mkdir()
        # Coalesced: how a stream is cut into messages depends on the time.
        client = NotebookClient(
            notebook,
            km=kernel,
            timeout=60,
            record_timing=False,
            coalesce_streams=True,
        )
        return client.execute(cwd=str(empty), cleanup_kc=True)
