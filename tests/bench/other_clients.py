"""The same work through other frameworks, each in its own environment.

``bench_engines.py`` starts ``PYTHON other_clients.py NAME TASK.json URL`` and reads the
seconds and the number of answers from the last line. Nothing of ranloop is imported
here: these environments do not have it.
"""

import json
import logging
import os
import sys
import tempfile
import time

CONNECTIONS = 64


def run_dspy(task, url):
    """Return seconds and answers of ``dspy.Evaluate`` with 64 threads and no cache."""
    os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp()
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import dspy
    from dspy.lm15 import (
        AccessPolicy,
        EndpointSupport,
        ModelSupport,
        OpenAIChatCompat,
        ProviderDefinition,
        register_provider,
    )

    logging.disable(logging.WARNING)
    provider = ProviderDefinition.chat(
        AccessPolicy(
            provider="loopback",
            supports=EndpointSupport(complete=True, stream=True, models=True),
            auth_modes=("bearer",),
            base_url=url,
        ),
        compat=OpenAIChatCompat(
            instruction_role="system", max_tokens_field="max_tokens"
        ),
        placeholder_key="EMPTY",
    )
    register_provider(provider, supports=ModelSupport(response_schema=True))
    lm = dspy.LM("loopback/tiny", temperature=0, max_tokens=2048, seed=0, cache=False)
    dspy.configure(lm=lm, adapter=dspy.JSONAdapter())
    from typing import Literal

    values = Literal["present", "absent", "uncertain"]
    fields = {"case": (str, dspy.InputField())}
    fields |= {label: (values, dspy.OutputField()) for label in task["labels"]}
    signature = dspy.Signature(fields, task["system"])
    program = dspy.Predict(signature)
    cases = [dspy.Example(case=text).with_inputs("case") for text in task["texts"]]
    first = task["labels"][0]
    evaluate = dspy.Evaluate(
        devset=cases,
        metric=lambda gold, pred, trace=None: float(pred[first] == "absent"),
        num_threads=CONNECTIONS,
        display_progress=False,
    )
    start = time.perf_counter()
    result = evaluate(program)
    seconds = time.perf_counter() - start
    return seconds, sum(score for *_, score in result.results)


def run_inspect(task, url):
    """Return seconds and answers of an inspect_ai evaluation with 64 connections."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate, system_message

    model = get_model(
        "openai/tiny",
        base_url=url,
        api_key="EMPTY",
        responses_api=False,
        config=GenerateConfig(
            max_connections=CONNECTIONS, temperature=0, max_tokens=2048, seed=0
        ),
    )
    # Braces in the text would be taken for variables.
    system = task["system"].replace("{", "(").replace("}", ")")
    work = Task(
        dataset=MemoryDataset([Sample(input=text) for text in task["texts"]]),
        solver=[system_message(system), generate()],
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        (log,) = eval(
            work,
            model=model,
            log_dir=folder,
            display="none",
            max_samples=CONNECTIONS,
            log_level="error",
        )
        seconds = time.perf_counter() - start
        return seconds, log.results.completed_samples if log.results else 0


def main():
    """Run one of them."""
    name, path, url = sys.argv[1:]
    with open(path, encoding="utf-8") as stream:
        task = json.load(stream)
    seconds, answers = {"dspy": run_dspy, "inspect": run_inspect}[name](task, url)
    print(json.dumps([seconds, answers]), flush=True)


if __name__ == "__main__":
    main()
