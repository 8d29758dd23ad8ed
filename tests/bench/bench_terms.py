"""What `optimize --with terms` finds from extractor@v1, measured on held-out reports.

Run: ``RANLOOP_DATA=FOLDER python -m tests.bench.bench_terms [SEEDS]``. It searches on
the Open-i development reports and measures on the test reports, which no search reads
(two variants were dropped by their scores there, see the page Results): macro-F1 over
the labels with ten positives in their reference, with uncertain answers left out, as
the versions by hand were measured, and with uncertain answers wrong. It also mines
terms from Chinese reports, which are made of the sentences of the tests.
"""

from __future__ import annotations

import csv
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from loop.core.files import read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.sentence import Stance
from loop.evaluate.align import count_uncertain, decided_reference, read_answers
from loop.evaluate.protocol import read_protocol
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import read_reference
from loop.labels.taxonomy import NO_FINDING, read_taxonomy
from loop.optimize.objective import open_objective
from loop.optimize.search import search_prompt
from loop.optimize.search_report import SearchRequest
from loop.optimize.terms import (
    LEVELS,
    ProposalKind,
    TermMiner,
    TermProposal,
    apply_proposals,
)
from loop.prompts.catalog import read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import with_guides
from loop.run.runner import PromptRunner
from loop.run.task import run_prompt
from loop.stats.confusion import count_confusions
from tests.conftest import shipped_workspace

ACTOR = Actor(name="bench", role="system")
START, BY_HAND = "extractor@v1", "extractor@v7"
SENTENCES = Path(__file__).parents[1] / "engines" / "rules_sentences.csv"


def make_workspace(folder: Path, *, wrong: bool) -> WorkspacePaths:
    """Return a workspace with both cohorts.

    Parameters
    ----------
    wrong
        Whether an uncertain answer is wrong, as the shipped protocol says, or left out.
    """
    workspace = shipped_workspace(folder)
    if not wrong:
        said = read_text(workspace.protocol).splitlines(keepends=True)
        gone = ("uncertain_", "max_uncertain")
        kept = [one for one in said if not one.startswith(gone)]
        write_atomic(workspace.protocol, "".join(kept))
    source = Path(os.environ["RANLOOP_DATA"]) / "openi"
    # Test report 1450 is a near-duplicate of development report 554.
    for name, role, left_out in (("dev", "dev", ()), ("test", "external", ("1450",))):
        options = ImportOptions(name=f"openi_{name}", role=role, exclude=left_out)
        import_cohort(workspace, source / f"reports_{name}.csv", options, actor=ACTOR)
    return workspace


class HeldOut:
    """The test reports and their reference."""

    def __init__(self, workspace: WorkspacePaths) -> None:
        cohort = read_cohort(workspace, "openi_test")
        self.workspace = workspace
        self.items = list(iter_items(workspace, cohort))
        self.taxonomy = read_taxonomy(workspace.labels)
        self.policy = read_protocol(workspace).policy
        ids = [item.id for item in self.items]
        standard = read_reference(workspace, cohort.name)
        self.truth = decided_reference(standard, ids, self.taxonomy)
        positives = (self.truth == 1).sum(axis=0)
        self.frequent = [
            place
            for place, label in enumerate(self.taxonomy.ids)
            if positives[place] >= 10 and label != NO_FINDING
        ]

    def f1(self, version: PromptVersion) -> dict[str, float]:
        """Return label to its F1."""
        with PromptRunner.open(self.workspace, version) as runner:
            told = read_answers(runner.ask_block(self.items, keep=False), self.taxonomy)
        codes = np.array([told[item.id] for item in self.items], dtype=np.int8)
        answers = count_uncertain(codes, self.truth, self.policy)
        tp, fp, fn, _ = count_confusions(self.truth, answers).T
        scores = 2 * tp / np.maximum(2 * tp + fp + fn, 1)
        return dict(zip(self.taxonomy.ids, scores.tolist(), strict=True))

    def score(self, version: PromptVersion, labels: Sequence[str] = ()) -> float:
        """Return the macro-F1 over `labels`, or those with ten positives there."""
        found = self.f1(version)
        names = labels or [self.taxonomy.ids[place] for place in self.frequent]
        return float(np.mean([found[name] for name in names]))


def agreed(
    workspace: WorkspacePaths, by_hand: PromptVersion, proposals: Sequence[TermProposal]
) -> list[TermProposal]:
    """Return the proposals that whoever wrote `by_hand` would have accepted.

    Those are the terms whose mentions on the development reports it finds, for the most
    part, by a wording of the same label that overlaps them.
    """
    cues = read_cues(workspace.labels)
    labels = [guide.label for guide in by_hand.guides]
    hand = ReportReader(by_hand.guides, labels, cues)
    terms = [one for one in proposals if one.kind is ProposalKind.TERM]
    guides = [
        Guide(label=f"t{number}", name="", definition="", terms=(one.wording,))
        for number, one in enumerate(terms)
    ]
    reader = ReportReader(guides, [guide.label for guide in guides], cues)
    said, shared = Counter[int](), Counter[int]()
    for item in iter_items(workspace, read_cohort(workspace, "openi_dev")):
        for one in hand.split(item.variables["text"]):
            found = [m for m in hand.judge(one.sentence) if m.stance is not None]
            for mention in reader.judge(one.sentence):
                if mention.stance is not Stance.PRESENT:
                    continue
                place, number = mention.place, mention.wording.target
                said[number] += 1
                shared[number] += any(
                    labels[other.wording.target] == terms[number].label
                    and other.place.start < place.end
                    and place.start < other.place.end
                    for other in found
                )
    return [
        one
        for number, one in enumerate(terms)
        if said[number] and 2 * shared[number] > said[number]
    ]


def measure(folder: Path, seeds: int, *, wrong: bool) -> None:
    """Print what a policy for uncertain answers gives."""
    workspace = make_workspace(folder, wrong=wrong)
    held = HeldOut(workspace)
    start, by_hand = (read_version(workspace, ref) for ref in (START, BY_HAND))
    low, high = held.score(start), held.score(by_hand)
    print(f"\nuncertain answers: {held.policy}; {len(held.frequent)} labels")
    print(f"{START} {low:.3f}, {BY_HAND} {high:.3f} on test")

    def of(proposals: Sequence[TermProposal]) -> PromptVersion:
        return with_guides(start, apply_proposals(start, proposals))

    covered = 0
    print("seed accepted  search  estimate               test(same)  test  gain  s")
    for seed in range(seeds):
        began = time.process_time()
        request = SearchRequest(prompt=START, cohort="openi_dev", study=True, seed=seed)
        report = search_prompt(workspace, request, ACTOR)
        spent = time.process_time() - began
        estimate = report.findings.estimate
        same = [one.label for one in estimate.labels if one.estimable]
        found = report.found[0]
        on_same, on_test = held.score(found, same), held.score(found)
        inside = estimate.found.low <= on_same <= estimate.found.high
        covered += inside
        print(
            f"{seed:4} {len(report.findings.proposals):8} "
            f"{estimate.mean('search').found:7.3f} {estimate.found.estimate:9.3f} "
            f"[{estimate.found.low:.3f}, {estimate.found.high:.3f}] "
            f"{on_same:9.3f}{' ' if inside else '*'} {on_test:6.3f} "
            f"{(on_test - low) / (high - low):5.1%} {spent:4.1f}"
        )
        if not seed:
            first = report.findings.proposals
            limits = estimate.parent.low, estimate.parent.high
            unchanged = held.score(start, same)
    print(f"the estimate's interval holds the test score in {covered} of {seeds} seeds")
    print(
        f"{START}, which nothing was chosen for: [{limits[0]:.3f}, {limits[1]:.3f}] on "
        f"development reports, {unchanged:.3f} on test"
    )
    whole = held.score(of(first))
    harmful = [
        f"{one.label}: {one.wording}"
        for one in first
        if held.score(of([other for other in first if other is not one])) > whole
    ]
    print(f"test F1 rises without {len(harmful)} of {len(first)}: {'; '.join(harmful)}")
    print(f"with fewer than three cases: {sum(one.rare for one in first)}")
    chosen = agreed(workspace, by_hand, first)
    for name, proposals in (("all", first), ("as by hand", chosen)):
        steps = np.unique(np.linspace(0, len(proposals), 9).round().astype(int))
        curve = [f"{n}: {held.score(of(proposals[:n])):.3f}" for n in steps.tolist()]
        print(f"test score by proposals accepted, {name}: {', '.join(curve)}")


def make_chinese(folder: Path, seed: int, cases: int = 200) -> WorkspacePaths:
    """Return a workspace with reports made of the Chinese sentences of the tests."""
    said: dict[str, dict[str, str]] = {}
    with SENTENCES.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["category"] == "chinese":
                # Either of two values is allowed there: the first.
                value = row["expected"].split(" or ")[0]
                said.setdefault(row["text"], {})[row["label"]] = value
    labels = sorted({label for one in said.values() for label in one})
    marks = {"present": "1", "absent": "0", "uncertain": ""}
    chance, texts = random.Random(seed), [*said]
    workspace = shipped_workspace(folder)
    path = folder.parent / f"{folder.name}.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text", *labels])
        for number in range(cases):
            chance.shuffle(texts)
            told: dict[str, str] = {}
            chosen: list[str] = []
            for text in texts:
                if len(chosen) < 3 and not told.keys() & said[text].keys():
                    chosen.append(text)
                    told |= said[text]
            values = [marks[told.get(label, "absent")] for label in labels]
            writer.writerow([f"c{number}", "".join(chosen), *values])
    options = ImportOptions(name="zh", role="dev", source="tests", licence="-")
    import_cohort(workspace, path, options, actor=ACTOR)
    return workspace


def measure_chinese(folder: Path, seeds: int) -> None:
    """Print how many of the terms mined from Chinese reports name their finding.

    That is, are or hold a wording of the newest version, or are part of one.
    """
    named, exact, mined = 0, 0, 0
    for seed in range(seeds):
        workspace = make_chinese(folder / f"zh{seed}", seed)
        known = {
            guide.label: [
                term
                for part in guide.parts
                for term in part.terms
                if not term.isascii()
            ]
            for guide in read_version(workspace, "extractor").guides
        }
        with open_objective(workspace, START, "zh") as objective:
            ground = objective.ground
            miner = TermMiner(workspace, ground, objective.answers(ground.version))
            rows = np.arange(len(ground.items))
            found = miner.mine(rows, ground.labels, least_gain=LEVELS[-1]).proposals
        mined += len(found)
        for one in found:
            words = known.get(one.label, [])
            exact += one.wording in words
            named += any(one.wording in it or it in one.wording for it in words)
    print(f"\nChinese: {mined} proposals, {named} name the finding, {exact} as by hand")


def time_candidate(folder: Path) -> None:
    """Print what a candidate costs beside a run, in CPU time of this process."""
    workspace = make_workspace(folder, wrong=True)
    version = read_version(workspace, "extractor")
    run_prompt(workspace, "extractor@v5", "openi_dev")
    began = time.process_time()
    run_prompt(workspace, version.ref, "openi_dev")
    run = time.process_time() - began
    with open_objective(workspace, version, "openi_dev") as objective:
        objective.answers(version, np.arange(1))
        guide = version.guides[0]
        times = []
        for number in range(5):
            longer = replace(guide, terms=(*guide.terms, f"word {number}"))
            changed = {guide.label: longer}
            began = time.process_time()
            objective.answers(objective.candidate(changed))
            times.append(time.process_time() - began)
    print(f"\na candidate on 300 cases: {float(np.median(times)) / run:.2f} of a run")


def main() -> None:
    """Print the tables."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as place:
        measure(Path(place) / "excluded", seeds, wrong=False)
        measure(Path(place) / "wrong", seeds, wrong=True)
        time_candidate(Path(place) / "time")
        measure_chinese(Path(place), seeds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
