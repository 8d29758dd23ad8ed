"""What fails in every draw, and what flips, as lists of their own."""

import json
import re

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.review.queue.build import build_queue
from loop.review.queue.records import Persistence, QueueFilter, Reasons
from loop.review.status import read_kept
from loop.review.verdict_files import read_verdicts, verdicts_file, verdicts_table
from loop.run.store import open_store
from loop.run.task import prepare_run, run_draws
from loop.ui.pages.review import moves
from loop.ui.pages.review.form import ReviewForm
from loop.ui.pages.review.place import Filters
from tests.review.revise.conftest import wavering as wavering
from tests.review.scenes import ANN
from tests.ui.reviewed import desk_of, make_reviewed, seat

WRONG = ReviewForm(judgement="guideline_ambiguous", action="term", phrase="fluid")


@pytest.fixture
def drawn(workspace, tmp_path, wavering, monkeypatch):
    """Ask three draws of a version, of which many answers flip."""
    monkeypatch.setattr(wavering, "errors", 100)
    make_reviewed(workspace, tmp_path)
    task = prepare_run(workspace, "tiny@v1", "dev", engine="wavering")
    list(run_draws(workspace, task, range(3)))
    return workspace


def pair(item):
    """Return case and label."""
    return item.case_id, item.label


def queue_of(workspace):
    """Return the queue of the first draw."""
    with open_store(workspace) as store:
        (first,) = [
            run.id
            for run in store.find_runs(finished=True)
            if run.spec.draw == 0 and run.spec.engine == "wavering"
        ]
        return build_queue(workspace, store, first)


@pytest.mark.parametrize(
    ("fails", "draws", "expected"),
    [
        (1, 1, None),
        (3, 3, Persistence.EVERY_DRAW),
        (2, 3, Persistence.FLIPS),
        (1, 3, Persistence.FLIPS),
    ],
)
def test_only_draws_say_whether_an_error_lasts(fails, draws, expected):
    """One draw says nothing of it."""
    assert Reasons(fails=fails, draws=draws).persistence is expected


def test_the_two_lists_are_the_failing_pairs_apart(drawn):
    """Each pair stands in one of them, by what its draws say."""
    queue = queue_of(drawn)
    every, flips = (
        queue.filtered(QueueFilter(draws=one))
        for one in (Persistence.EVERY_DRAW, Persistence.FLIPS)
    )
    assert every and flips
    assert {one.reasons.fails for one in every} == {3}
    assert {one.reasons.fails for one in flips} <= {1, 2}
    failing = {pair(one) for one in queue.failing}
    assert {pair(one) for one in (*every, *flips)} == failing
    assert not {pair(one) for one in every} & {pair(one) for one in flips}


def test_the_command_line_lists_them(drawn):
    """With the statuses; both at once leave nothing, and that is said."""
    run = queue_of(drawn).line.run_id

    def rows(*statuses):
        words = [word for one in statuses for word in ("--status", one)]
        result = CliRunner().invoke(
            app, ["failures", run, *words, "--json", "--workspace", str(drawn.root)]
        )
        return result, result.stdout and json.loads(result.stdout).get("rows")

    flips = {pair(one) for one in queue_of(drawn).filtered(QueueFilter(draws="flips"))}
    _, found = rows("flips")
    assert {(one["case_id"], one["label"]) for one in found} == flips
    _, lasting = rows("every draw")
    assert not flips & {(one["case_id"], one["label"]) for one in lasting}
    result, _ = rows("flips", "every draw")
    assert result.exit_code != 0


def test_a_verdict_on_a_pair_that_flips_says_so(drawn, tmp_path):
    """On the page, where it is kept, and in an export; one that lasts says nothing."""
    with desk_of(drawn) as desk:
        ann = seat(desk)
        place = ann.open()["place"]
        shown = ann.act(moves.narrow, place, Filters(status="flips"))
        place = shown["place"]
        assert place.case
        assert re.search(r'class="pair-why">[^<]*fails in [12] of 3', shown["queue"])
        assert "versions disagree" not in shown["queue"]
        ann.submit(place, WRONG)
        lasting = ann.act(moves.narrow, place, Filters(status="every draw"))["place"]
        ann.submit(lasting, WRONG)
        flipping, steady = sorted(
            read_kept(desk.store, drawn, "dev"),
            key=lambda one: not one.circumstances.flips,
        )
        assert re.fullmatch("[12] of 3", flipping.circumstances.flips)
        assert flipping.verdict.case_ids == (place.case,)
        assert steady.circumstances.flips == ""
        said = ann.act(
            moves.choose, place, act="open", case=place.case, label=place.label
        )["said"]
        assert f"failed in {flipping.circumstances.flips} draws" in said
    kept = [flipping, steady]
    assert flipping.circumstances.flips in verdicts_table(kept)
    for text, name in (
        (verdicts_table(kept), "v.csv"),
        (verdicts_file(kept), "v.yaml"),
    ):
        path = tmp_path / name
        path.write_text(text)
        back = read_verdicts(path, reviewer=ANN)
        assert len(back.verdicts) == 2
