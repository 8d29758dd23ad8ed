"""What a value sample finds on the Open-i test cases, and how often its limits hold.

150 cases for ``extractor@v5``, with the model fitted on the development cases alone. By
the protocol that ships a hedged answer fails; leaving hedges out, as the rounds on
these reports were measured, far fewer cases do. For each: how many times as many
failing cases as at random a sample has (on average over the draws, and by its chances),
and how often the 95 % interval of the share that fails holds the true one.

Run: RANLOOP_DATA=FOLDER python -m tests.bench.bench_sample [DRAWS]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from loop.core.files import read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.evaluate.inputs import read_inputs
from loop.evaluate.sampled import failing_rows, judged_labels
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.optimize.sample import WeighedCohort, draw_weighed, weigh_cases
from loop.run.task import run_prompt
from loop.stats.weighted import design_share, effective_size
from tests.conftest import shipped_workspace

SIZE = 150


class Measured(NamedTuple):
    """What many draws of one weighed cohort show."""

    fails: float
    """Share of the cohort's cases that fail."""

    expected: float
    """Times as many failing cases as at random, by the chances."""

    lift: float
    """The same, mean over the draws."""

    lowest: float
    """Of 95 % of the draws it is at least this."""

    coverage: float
    bias: float
    """Mean of the estimates less the true share."""

    width: float
    random_width: float
    """Of random samples of the same size, by the same formula."""

    effective: float


def prepare(data: Path, target: Path) -> WorkspacePaths:
    """Make a workspace with both cohorts and the runs of both versions."""
    workspace = shipped_workspace(target)
    actor = Actor(name="bench", role="system")
    # Test report 1450 is a near-duplicate of development report 554.
    for name, role, excluded in (("dev", "dev", ()), ("test", "external", ("1450",))):
        options = ImportOptions(name=f"openi_{name}", role=role, exclude=excluded)
        source = data / "openi" / f"reports_{name}.csv"
        import_cohort(workspace, source, options, actor=actor)
        for version in ("v3", "v5"):
            run_prompt(workspace, f"extractor@{version}", f"openi_{name}")
    return workspace


def set_policy(workspace: WorkspacePaths, policy: str) -> None:
    """Let uncertain answers count as `policy` says."""
    lines = read_text(workspace.protocol).splitlines()
    changed = [
        f"uncertain_answers: {policy}" if one.startswith("uncertain_answers:") else one
        for one in lines
    ]
    write_atomic(workspace.protocol, "\n".join([*changed, ""]))


def weigh(workspace: WorkspacePaths) -> WeighedCohort:
    """Weigh the test cases by what is known of them without their reference."""
    return weigh_cases(
        workspace, "openi_test", size=SIZE, between=("extractor@v3", "extractor@v5")
    )


def find_failing(workspace: WorkspacePaths, run: str) -> np.ndarray:
    """Return which cases of the run fail, in the order of the cohort."""
    inputs = read_inputs(workspace, run)
    failing, _ = failing_rows(
        inputs.pairs.binary_reference,
        inputs.pairs.answers_as(inputs.protocol.policy),
        judged_labels(inputs),
    )
    return failing


def measure(weighed: WeighedCohort, failing: np.ndarray, draws: int) -> Measured:
    """Draw `draws` samples, with seeds from 1, and estimate the share that fails."""
    places = {case: row for row, case in enumerate(weighed.cohort.case_ids)}
    truth, n = float(failing.mean()), weighed.size
    lifts, estimates, sizes = [], [], []
    for seed in range(1, draws + 1):
        drawn = draw_weighed(weighed, seed=seed).drawn
        rows = np.array([places[one.case_id] for one in drawn])
        chances = np.array([one.chance for one in drawn])
        lifts.append(failing[rows].sum() / (n * truth))
        estimates.append(design_share(failing[rows], chances))
        sizes.append(effective_size(chances))
    rng = np.random.default_rng(0)
    random = [
        design_share(failing[rng.permutation(len(failing))[:n]], np.full(n, 0.5))
        for _ in range(200)
    ]
    return Measured(
        fails=truth,
        expected=float(weighed.chances[failing].sum() / (n * truth)),
        lift=float(np.mean(lifts)),
        lowest=float(np.quantile(lifts, 0.05)),
        coverage=float(np.mean([one.low <= truth <= one.high for one in estimates])),
        bias=float(np.mean([one.value for one in estimates]) - truth),
        width=float(np.mean([one.high - one.low for one in estimates])),
        random_width=float(np.mean([one.high - one.low for one in random])),
        effective=float(np.mean(sizes)),
    )


def main() -> None:
    """Print one block for each way to count uncertain answers."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with TemporaryDirectory() as folder:
        workspace = prepare(Path(os.environ["RANLOOP_DATA"]), Path(folder) / "ws")
        for policy in ("excluded", "wrong"):
            set_policy(workspace, policy)
            begun = time.process_time()
            weighed = weigh(workspace)
            took = time.process_time() - begun
            found = measure(weighed, find_failing(workspace, weighed.run), draws)
            print(f"uncertain answers {policy}, {draws} draws of {SIZE} cases")
            print(f"  fail in the cohort          {100 * found.fails:6.2f} %")
            print(f"  failing cases, of random    {found.lift:6.2f} times (wanted 1.7)")
            print(f"    by the chances            {found.expected:6.2f}")
            print(f"    in 95 % of draws at least {found.lowest:6.2f}")
            print(f"    predicted on dev          {weighed.lift:6.2f}")
            failing = find_failing(workspace, weighed.run)
            for name in ("findings", "versions"):
                top = np.argsort(-weighed.values[name], kind="stable")[:SIZE]
                times = failing[top].mean() / failing.mean()
                print(f"    {SIZE} with most {name:<9}   {times:5.2f}, chances unknown")
            print(f"  coverage of 95 % limits     {100 * found.coverage:6.1f} % (93)")
            print(f"  bias of the share           {100 * found.bias:+6.2f} points")
            print(
                f"  width of the limits         {found.width:6.3f}, "
                f"{found.width / found.random_width:.2f} of a random sample's"
            )
            print(f"  effective size (Kish)       {found.effective:6.1f} of {SIZE}")
            print(f"  weighing took               {took:6.2f} s of CPU")
        set_policy(workspace, "excluded")
        failing = find_failing(workspace, weighed.run)
        lift = weighed.chances[failing].sum() / (SIZE * failing.mean())
        print("chances where hedges are wrong, cases with another wrong answer")
        print(f"  of random                   {lift:6.2f} times (wanted 1.7)")


if __name__ == "__main__":
    main()
