"""Runs llama.cpp's own server, from the ``xllamacpp`` wheel, until told to stop.

Run ``python -m tests.servers.llama_server MODEL.gguf``; it prints its URL.
"""

import argparse
import contextlib
import signal

import xllamacpp

SLOTS = 4
"""Requests worked on at a time; the context is divided among them."""


def parameters(options):
    """Return what the server is started with."""
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_ctx = options.context * SLOTS
    params.n_parallel = SLOTS
    # More threads than the tiny model has work for only wait for each other.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.enable_reasoning = 0
    params.endpoint_metrics = True
    return params


def main():
    """Serve with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--alias", default="tiny", help="name it is asked for by")
    parser.add_argument("--context", type=int, default=16_384, help="of one slot")
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = xllamacpp.Server(parameters(options))
    print(f"{server.listening_address}/v1", flush=True)
    # llama.cpp's own shutdown waits for idle connections; nothing is to be saved.
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


if __name__ == "__main__":
    main()
