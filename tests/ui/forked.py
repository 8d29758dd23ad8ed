"""``ranloop review`` in processes that are forked off one that has imported it.

Most of what it costs to start a workbench is importing Gradio, which browser tests
would pay fifty times over. The command is started as people start it in
`tests.cli.test_review`.
"""

import json
import multiprocessing
import os
import signal
import sys
from contextlib import closing, contextmanager

from loop.cli.main import run

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__, "loop.ui.serve"])


@contextmanager
def serving(workspace, *options):
    """Run ``ranloop review`` in a process of its own and yield its URL."""
    arguments = ["review", "--workspace", str(workspace.root), "--port", "0", "--json"]
    log = workspace.root.parent / f"{workspace.root.name}.log"
    reader, writer = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(
        target=_review, args=([*arguments, *options], writer, log)
    )
    with closing(reader):
        with closing(writer):
            process.start()
        try:
            yield _url(reader, log)
        finally:
            # The second signal is that of a second Ctrl-C: not to wait for open pages.
            for signal_number in (signal.SIGTERM, signal.SIGINT):
                if process.is_alive():
                    os.kill(process.pid, signal_number)
                process.join(0.3)
            process.join(15)
            if process.is_alive():
                process.kill()
                process.join()


def _url(reader, log):
    """Return the address that the command prints."""
    said = ""
    while not said.rstrip().endswith("}"):
        piece = os.read(reader.fileno(), 4096)
        if not piece:
            raise RuntimeError(f"no server: {log.read_text(encoding='utf-8')}")
        said += piece.decode()
    return json.loads(said)["url"].rstrip("/")


def _review(arguments, writer, log):
    """Be the command, with the pipe and the log as its output."""
    os.dup2(writer.fileno(), 1)
    with log.open("wb") as errors:
        os.dup2(errors.fileno(), 2)
    sys.argv = ["ranloop", *arguments]
    run()
