"""A GEPA search of 3,000 scored cases on one label, with `rules` and a stub reflector.

Run: ``python -m tests.bench.bench_gepa``. Cases are the synthetic demo cohort, the
prompt is the shipped extractor's first version; the stub proposes words of the reports
that were answered wrongly. It prints CPU time, that of bare runs of `rules` over as
many cases, each by a fresh engine, and their ratio: what the library, the reading of
proposals and the compiling of a new prompt for every candidate take.
"""

from __future__ import annotations

import random
import re
import resource
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import import_votes
from loop.optimize.gepa_search import search_gepa
from loop.optimize.objective import open_objective
from loop.optimize.proposals import ProposalReader, read_private_wording
from loop.optimize.splits import split_cases
from loop.prompts.guides import dump_guides, parse_guides
from tests.conftest import shipped_workspace
from tests.optimize.test_gepa_search import Asked

CALLS = 3_000
PROMPT, LABEL = "extractor@v1", "pleural_effusion"


def propose_words(question: str) -> str:
    """Return the guide of a question with two words of a report as one more term.

    The question alone decides which; the terms of `propose_term` are of made reports.
    """
    written = re.search(r"```yaml\n(.*?)```", question, re.DOTALL)
    if written is None:
        return ""
    (guide,) = parse_guides(written[1], "the question")
    chance = random.Random(zlib.crc32(question.encode()))
    reports = re.findall(r"## Report\n(.*?)\n\n## Answer", question, re.DOTALL)
    words = re.findall(r"[a-z]{4,}", " ".join(reports).casefold())
    start = chance.randrange(max(1, len(words) - 1))
    term = " ".join(words[start : start + 2])
    kept = chance.sample(guide.terms, min(len(guide.terms), 12))
    return dump_guides([replace(guide, terms=(*kept, term))])


def make_workspace(folder: Path) -> WorkspacePaths:
    """Return a workspace with the demo's cohort and its readers' reference."""
    actor = Actor(name="bench")
    workspace = shipped_workspace(folder / "ws")
    demo = bundled() / "labels" / "demo"
    options = ImportOptions(name="dev", role="dev", source="synthetic", licence="-")
    import_cohort(workspace, demo / "dev.jsonl", options, actor=actor)
    import_votes(
        workspace,
        read_cohort(workspace, "dev"),
        demo / "votes_dev.csv",
        read_taxonomy(workspace.labels),
        need=4,
        actor=actor,
    )
    return workspace


def bare_runs(workspace: WorkspacePaths) -> float:
    """Return the CPU seconds that runs of `rules` over as many cases take.

    Each is by a fresh engine: one that has read the cases before remembers their
    sentences.
    """
    spent, cases = 0.0, 0
    while cases < CALLS:
        with open_objective(workspace, PROMPT, "dev") as objective:
            ground = objective.ground
            began = time.process_time()
            objective.ask_items(ground.version, ground.items)
            spent += time.process_time() - began
            cases += len(ground.items)
    return spent * CALLS / cases


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        workspace = make_workspace(Path(name))
        with open_objective(workspace, PROMPT, "dev") as objective:
            ground = objective.ground
            reader = ProposalReader(
                ground.version, read_private_wording(workspace, ground.cohort)
            )
            split = split_cases(ground.truth, ground.clusters.units)[0]
            began, wall = time.process_time(), time.perf_counter()
            found = search_gepa(
                objective,
                reader,
                Asked(propose_words),  # type: ignore[arg-type]
                split.seen,
                labels=(LABEL,),
                budget=CALLS,
            )
            spent, wall = time.process_time() - began, time.perf_counter() - wall
        bare = bare_runs(workspace)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"scored cases    {found.calls:,}")
        print(f"proposals       {found.proposals:,}, kept {len(found.candidates):,}")
        print(f"CPU             {spent:.1f} s ({wall:.1f} s by the clock)")
        print(f"a scored case   {1000 * spent / found.calls:.2f} ms")
        print(
            f"bare runs       {bare:.1f} s for as many cases: {spent / bare:.1f} times"
        )
        print(f"peak memory     {peak:.0f} MiB")


if __name__ == "__main__":
    main()
