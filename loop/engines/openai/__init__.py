"""The engine for every server that speaks the OpenAI chat completions protocol.

Made for vLLM, llama.cpp, SGLang and hosted services. One thread holds an event loop
with all connections; the run's thread draws prompts and takes completions, many at a
time, so that neither the store nor the parser stands in the way of a request.
"""

from loop.engines.openai.client import Endpoint
from loop.engines.openai.engine import ChatEngine

__all__ = ["ChatEngine", "Endpoint"]
