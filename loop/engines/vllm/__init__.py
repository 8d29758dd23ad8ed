"""The engine for vLLM, which runs in an environment and processes of its own.

Its pins do not live beside a user interface's, so nothing of it is imported: a server
is started and supervised and asked over HTTP, or its batch runner is given a file.
"""

from loop.engines.vllm.engine import VllmEngine

__all__ = ["VllmEngine"]
