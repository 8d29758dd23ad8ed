"""Time the workbench as its users meet it, beside a Gradio server that does nothing.

Run ``python -m tests.bench.bench_review`` from the repository root; ``--json FILE``
keeps the numbers. It serves 3,000 synthetic cases with 21 labels, more than 5,000
failing pairs, half of the cases read by one reader, in a process of its own, signs
people in over HTTP and sends the events that a browser sends. Times are those of a
client on the same machine; "server" is the processor time that the server spent, which
does not depend on what else the machine does. Without Chromium the first page is left
out.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from html import unescape
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple

from loop.core.paths import WorkspacePaths
from loop.core.people.roster import add_user
from loop.core.people.users import UserRole
from loop.core.records import Value
from loop.labels.taxonomy import NO_FINDING
from loop.review.reading.answers import answer_many
from loop.review.reading.assignment import read_assignment, reading_order
from loop.review.status import read_kept
from loop.review.verdict import Context
from loop.run.store import open_store
from tests.bench.large_workspace import COHORT, make_large
from tests.bench.workbench_client import PASSWORD, Server, Session, Tab, serving

REVIEWERS = tuple(f"Reviewer {number}" for number in range(1, 9))
READER = "Reader"
VERDICTS = 200
"""By each reviewer, on pairs of their own."""

SHARED = 25
"""By each reviewer, all on the same pairs."""

WORDS = ("effusion", "pneumothorax", "no acute", "left lower lobe", "serial number 7")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one act costs; times in milliseconds."""

    what: str
    calls: int
    p50: float
    p95: float
    server: float
    """Processor time of the server for each call, 0 where it was not taken."""

    target: float = 0.0
    """What p95 should stay below; 0 for none."""

    def __str__(self) -> str:
        """Return the line of the table."""
        target = f"{self.target:9,.0f}" if self.target else " " * 9
        missed = "  MISSED" if 0 < self.target <= self.p95 else ""
        return (
            f"{self.what:44}{self.calls:7,}{self.p50:9,.1f}{self.p95:9,.1f}"
            f"{self.server:9,.1f}{target}{missed}"
        )


class Answer(NamedTuple):
    """Whose verdict on which case and label."""

    reviewer: str
    case: str
    label: str


class Reviewer(NamedTuple):
    """One person at one browser tab."""

    name: str
    tab: Tab
    answers: list[Answer]
    """What the page said it saved."""


def measure(server: Server, what: str, target: float, calls: Iterable[float]) -> Line:
    """Return the line for `calls`, each a time in seconds; going through makes them."""
    before = server.cpu_s
    times = [spent * 1e3 for spent in calls]
    spent = (server.cpu_s - before) * 1e3 / len(times)
    most = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    line = Line(
        what=what,
        calls=len(times),
        p50=median(times),
        p95=most,
        server=spent,
        target=target,
    )
    print(line, flush=True)
    return line


def prepare(root: Path, cases: int) -> WorkspacePaths:
    """Return the workspace with its users, and a reader who is half through."""
    workspace = make_large(root, cases)
    for name in REVIEWERS:
        add_user(workspace, name, (UserRole.REVIEWER,), PASSWORD)
    add_user(workspace, READER, (UserRole.READER,), PASSWORD)
    assignment = read_assignment(workspace, COHORT)
    half = reading_order(assignment.cohort, READER)[: cases // 2]
    given = dict.fromkeys(assignment.labels, Value.ABSENT)
    with open_store(workspace) as store:
        answer_many(store, assignment, READER, dict.fromkeys(half, given))
    return workspace


def open_tab(server: Server, name: str) -> Tab:
    """Return a tab in which `name` has signed in and opened the workbench."""
    session = Session(server.url)
    session.sign_in(name)
    tab = Tab(session, name)
    tab.do("open")
    return tab


def pairs_of(tab: Tab) -> list[tuple[str, str]]:
    """Return case and label of every pair that the list shows."""
    shown = re.findall(r'data-case="([^"]*)" data-label="([^"]*)"', tab["review-queue"])
    return [(unescape(case), unescape(label)) for case, label in shown]


def open_pair(tab: Tab) -> tuple[str, str]:
    """Return case and label of the pair that is open."""
    shown = re.search(
        r'data-case="([^"]*)" data-label="([^"]*)" aria-current', tab["review-queue"]
    )
    if shown is None:
        raise RuntimeError("no pair is open")
    return unescape(shown[1]), unescape(shown[2])


def judge(one: Reviewer) -> tuple[float, float]:
    """Fill in the form of the open pair and submit it; return the time of each."""
    tab = one.tab
    case, label = open_pair(tab)
    derived = label == NO_FINDING
    tab["review-judgement"] = "reference_wrong" if derived else "model_wrong"
    tab["review-value"] = "present"
    tab["review-cause"] = Context.SYNONYM_OR_ABBREVIATION.value
    tab["review-comment"] = "seen on the lateral view"
    kept = tab.do("review_keep")
    spent = tab.do("review_submit")
    if "Saved" not in tab["review-status"]:
        raise RuntimeError(f"{one.name}'s verdict on {case}, {label} was not saved")
    one.answers.append(Answer(one.name, case, label))
    return kept, spent


def filter_by(tab: Tab, people: Sequence[str]) -> Iterator[float]:
    """Apply each filter alone and take it off again; yield the times."""
    labels = sorted({label for _, label in pairs_of(tab)})
    wanted = {
        "review-label": labels,
        "review-kind": ["false_positive", "false_negative", "unparsed"],
        "review-section": ["findings", "impression", "other"],
        "review-progress": ["unreviewed", "reviewed", "addressed", "reserved"],
        "review-reviewer": people,
    }
    for elem_id, values in wanted.items():
        for value in (*values, ""):
            tab[elem_id] = value
            yield tab.do("review_narrow")


def search(tab: Tab) -> Iterator[float]:
    """Look for words in the texts; yield the times."""
    for word in (*WORDS, *WORDS, ""):
        tab["review-search"] = word
        yield tab.do("review_narrow")


def review_apart(one: Reviewer) -> Iterator[tuple[float, float]]:
    """Review on from a place of one's own in the queue; yield what `judge` does."""
    start = str(REVIEWERS.index(one.name) * 640)
    one.tab.do("review_choose", {"act": "page", "start": start})
    case, label = pairs_of(one.tab)[0]
    one.tab.do("review_choose", {"act": "open", "case": case, "label": label})
    for _ in range(VERDICTS):
        yield judge(one)


def review_same(
    one: Reviewer, pairs: list[tuple[str, str]]
) -> Iterator[tuple[float, float]]:
    """Review given pairs; yield what `judge` does."""
    for case, label in pairs:
        one.tab.do("review_choose", {"act": "open", "case": case, "label": label})
        yield judge(one)


def read_on(tab: Tab, cases: int) -> Iterator[tuple[float, float]]:
    """Label cases blind; yield the times of "mark the rest absent" and of "next"."""
    for _ in range(cases):
        shown = re.search(
            r'data-case="([^"]*)" data-cohort="([^"]*)"', tab["reading-sheet"]
        )
        if shown is None:
            raise RuntimeError("no case is open for the reader")
        where = {"case": unescape(shown[1]), "cohort": unescape(shown[2])}
        rest = tab.do("label_act", {"act": "rest", **where})
        yield rest, tab.do("label_act", {"act": "next", **where})


def try_meanwhile(
    tab: Tab, work: Callable[[], tuple[list[float], list[float]]]
) -> tuple[list[float], tuple[list[float], list[float]]]:
    """Try one wording after another while `work` goes on; return the times of both."""
    tab["review-judgement"], tab["review-value"] = "model_wrong", "present"
    tab["review-action"], times = "term", []
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(work)
        while not going.done():
            tab["review-phrase"] = f"serial number {len(times)}"
            times.append(tab.do("review_try", {}))
            if "Nothing of it is a run" not in tab["review-tried"]:
                raise RuntimeError(f"nothing was tried: {tab['review-tried']}")
    return times, going.result()


def together(
    people: Sequence[Reviewer],
    work: Callable[[Reviewer], Iterator[tuple[float, float]]],
) -> tuple[list[float], list[float]]:
    """Have all `people` work at once; return the times to keep and to submit."""
    with ThreadPoolExecutor(len(people)) as pool:
        done = pool.map(lambda one: list(work(one)), people)
        times = [pair for one in done for pair in one]
    return [kept for kept, _ in times], [spent for _, spent in times]


@contextmanager
def serving_workspace(workspace: WorkspacePaths) -> Iterator[Server]:
    """Run ``ranloop review`` on `workspace`."""
    root = str(workspace.root)
    with serving("loop", "review", "--workspace", root, "--port", "0", "--json") as one:
        yield one


def time_first_pages(workspace: WorkspacePaths) -> list[Line]:
    """Return how long a browser needs to the gate table, cold and warm."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver, serving_workspace(workspace) as server:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        session = Session(server.url)
        session.sign_in(REVIEWERS[0])
        name, _, value = session.cookie.partition("=")
        cookie: Any = {"name": name, "value": value, "url": server.url}

        def open_first(pages: int) -> Iterator[float]:
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_cookies([cookie])
            page = context.new_page()
            for _ in range(pages):
                start = perf_counter()
                page.goto(server.url, wait_until="commit")
                page.wait_for_selector("#overview table")
                yield perf_counter() - start
            context.close()

        said = "first page in Chromium,"
        lines = [
            measure(server, f"{said} server just started", 2000, open_first(1)),
            measure(server, f"{said} new visitor", 2000, open_first(1)),
            measure(server, f"{said} again", 2000, list(open_first(6))[1:]),
        ]
        browser.close()
    return lines


def time_nothing() -> Line:
    """Return what an event costs that does nothing."""
    with serving("tests.bench.bare_gradio") as server:
        tab = Tab(Session(server.url), "bare")
        tab["text"] = "x"
        for _ in range(20):
            tab.do("nothing")
        return measure(
            server, "an empty Gradio event", 0, (tab.do("nothing") for _ in range(200))
        )


def time_looking(server: Server, tab: Tab) -> list[Line]:
    """Return what moving through overview and queue costs one reviewer."""
    tables = (tab.do("see_overview") for _ in range(30))
    opened = (tab.do("see_review") for _ in range(1))
    return [
        measure(server, "gate table", 1000, tables),
        measure(server, "Review opened for the first time", 2000, opened),
        *time_moving(server, tab, ()),
    ]


def time_moving(
    server: Server, tab: Tab, people: Sequence[str], when: str = ""
) -> list[Line]:
    """Return what going on, filters and search cost; `people` have verdicts."""
    onward = (tab.do("review_turn", {"act": "next"}) for _ in range(200))
    return [
        measure(server, f"next case{when}", 150, onward),
        measure(server, f"each filter{when}", 300, filter_by(tab, people)),
        measure(server, f"text search{when}", 300, search(tab)),
    ]


def time_reading(server: Server) -> list[Line]:
    """Return what a blinded reader waits for."""
    tab = open_tab(server, READER)
    opened = (tab.do("see_readers") for _ in range(1))
    lines = [measure(server, "Readers opened for the first time", 2000, opened)]
    times = list(read_on(tab, 60))
    return [
        *lines,
        measure(
            server, "a reader's 'mark the rest absent'", 150, [one for one, _ in times]
        ),
        measure(server, "a reader's next case", 150, [one for _, one in times]),
    ]


def time_submitting(server: Server, people: Sequence[Reviewer]) -> list[Line]:
    """Return what submitting costs when all review at once."""
    for one in people:
        one.tab.do("see_review")
    before = server.cpu_s
    kept, spent = together(people, review_apart)
    each = (server.cpu_s - before) * 1e3 / len(spent)
    trying = open_tab(server, people[0].name)
    trying.do("see_review")
    case, label = next(one for one in pairs_of(trying) if one[1] != NO_FINDING)
    trying.do("review_choose", {"act": "open", "case": case, "label": label})
    first = people[0].tab
    first.do("review_choose", {"act": "page", "start": "5200"})
    pairs = pairs_of(first)[:SHARED]
    tried, (_, same) = try_meanwhile(
        trying, lambda: together(people, lambda one: review_same(one, pairs))
    )
    crowd = f"{len(people)} reviewers at once,"
    lines = [
        measure(server, f"{crowd} a field kept", 500, kept),
        measure(server, f"{crowd} submit and next", 500, spent),
        measure(server, f"{crowd} the same pairs", 500, same),
        measure(server, f"{crowd} a wording tried beside them", 300, tried),
    ]
    print(f"server time of a verdict, its field kept included: {each:.1f} ms")
    return lines


def count_kept(workspace: WorkspacePaths, people: Sequence[Reviewer]) -> dict[str, int]:
    """Return how many verdicts were submitted, are kept, lost, doubled and strange."""
    submitted = Counter(answer for one in people for answer in one.answers)
    with open_store(workspace) as store:
        kept = Counter(
            Answer(one.verdict.reviewer, case, one.verdict.label)
            for one in read_kept(store, workspace, COHORT)
            for case in one.verdict.case_ids
        )
    return {
        "submitted": submitted.total(),
        "kept": kept.total(),
        "lost": (submitted - kept).total(),
        "doubled": sum(number - 1 for number in kept.values() if number > 1),
        "strange": (kept - submitted).total(),
    }


def main() -> None:
    """Print the table and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parser.parse_args()
    print(f"{'':44}{'calls':>7}{'p50 ms':>9}{'p95 ms':>9}{'server':>9}{'target':>9}")
    with tempfile.TemporaryDirectory() as folder:
        workspace = prepare(Path(folder) / "ws", options.cases)
        empty = time_nothing()
        lines = [empty, *time_first_pages(workspace)]
        with serving_workspace(workspace) as server:
            people = [Reviewer(name, open_tab(server, name), []) for name in REVIEWERS]
            first = people[0].tab
            lines += time_looking(server, first)
            lines += time_reading(server)
            lines += time_submitting(server, people)
            first.do("see_review")
            given = sum(len(one.answers) for one in people)
            lines += time_moving(server, first, REVIEWERS, f", {given:,} verdicts")
            peak, start_s = server.peak_mib, server.start_s
        counts = count_kept(workspace, people)
    print(f"listening after {start_s:.1f} s; {peak:,.0f} MiB resident at most")
    print("verdicts: " + ", ".join(f"{n:,} {what}" for what, n in counts.items()))
    for line in (one for one in lines[1:] if one.server):
        print(f"{line.what}: {line.server / empty.server:.1f} empty Gradio events")
    if options.json:
        found = {"lines": [asdict(one) for one in lines], "counts": counts}
        found |= {"peak_mib": peak, "start_s": start_s}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
