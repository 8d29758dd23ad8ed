"""Shots chosen from a pool, shown to a judge, and kept apart from what it judges."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError, OverlapError
from loop.core.paths import WorkspacePaths, bundled
from loop.judge import judge_pairs, shots
from loop.judge.document import judge_data, notes
from loop.judge.injection.chance import Chance
from loop.judge.judge import Judge, find_judge
from loop.judge.shots import (
    ShotRequest,
    add_shots,
    find_shared_pairs,
    request_shots,
    sample_cases,
    shot_notes,
    shots_data,
)
from loop.labels.cohort import read_cohort
from loop.labels.pseudonyms import open_pseudonyms
from loop.labels.shot_pool import (
    SYNTHETIC,
    MarkedCounts,
    PoolPair,
    ShotPool,
    read_pool,
)
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_version
from loop.prompts.shot_records import ShotKind, ShotScore
from loop.score.joining import join_pairs, join_texts
from tests.judge.scenes import CANDIDATES, REFERENCES, as_pool, call, rate, table
from tests.servers.answers import models, plain_answer

SHIPPED = WorkspacePaths(bundled())
GREEN = read_version(SHIPPED, "green@v1")
LABELS = read_taxonomy(SHIPPED.labels)


def composed(words, version=GREEN, **how):
    """Return the judge with shots of the pool that ships."""
    return add_shots(None, version, request_shots(words, **how))


def ids(version):
    """Return the ids of what a version shows, in order."""
    return [pin.id for pin in version.shots.pins]


def test_random_shots_have_an_overall_score_and_no_counts():
    """As published: reference, candidate, score."""
    made = composed("random:5")
    pool = {pair.id: pair for pair in read_pool(None, SYNTHETIC).pairs}
    assert len(set(ids(made))) == 5
    for name, shot in zip(ids(made), made.shown, strict=True):
        assert shot.candidate == pool[name].candidate
        assert shot.reference == pool[name].reference
        assert shot.score == pool[name].rating
        assert shot.significant is None and shot.explanation == ""
    assert made.shots.score is ShotScore.RATING
    assert ids(composed("random:3")) == ids(made)[:3]
    assert ids(composed("random:5", seed=1)) != ids(made)


@pytest.mark.parametrize("version", ["green@v1", "one_pass@v1", "green_text@v1"])
def test_every_judge_can_have_shots(version):
    """Whatever the form of its answer: what is asked for stays as it is."""
    judge = read_version(SHIPPED, version)
    made = composed("per_error", judge)
    assert len(made.shown) == len(judge.labels) == 6
    for label, shot in zip(judge.labels, made.shown, strict=True):
        assert [(one.category, one.number) for one in shot.significant] == [(label, 1)]
        assert (shot.insignificant, shot.score) == ((), 0.85)
    assert (made.system, made.user) == (judge.system, judge.user)


def test_a_judge_of_fewer_categories_has_fewer_shots():
    """And errors that it does not ask for do not count."""
    some = [g for g in GREEN.guides if g.label in ("omission", "location")]
    judge = replace(GREEN, guides=tuple(some))
    made = composed("per_error", judge)
    assert len(made.shown) == 2
    everything = composed("assessed:13", judge, score=ShotScore.LINEAR)
    by_id = dict(zip(ids(everything), everything.shown, strict=True))
    both = by_id["synthetic-15"]
    assert [tuple(one) for one in both.significant] == [("omission", 1)]
    assert both.score == 0.85


def test_injected_shots_are_what_the_injector_made():
    """False findings and omissions in turn, each in another reference."""
    made = composed("injected:4")
    pool = {pair.id: pair for pair in read_pool(None, SYNTHETIC).pairs}
    kinds = [name.rpartition("-")[2] for name in ids(made)]
    assert kinds == ["a1", "b1", "a1", "b1"]
    assert len({name.rpartition("-")[0] for name in ids(made)}) == 4
    for name, shot in zip(ids(made), made.shown, strict=True):
        assert shot.reference == pool[name.rpartition("-")[0]].reference
        assert shot.candidate != shot.reference and shot.score == 0.85
        added = len(shot.candidate) > len(shot.reference)
        assert added == name.endswith("a1")
        assert shot.explanation.startswith("The candidate")
    inverse = composed("injected:2", score=ShotScore.INVERSE)
    assert [one.score for one in inverse.shown] == [0.5, 0.5]


def test_assessed_shots_are_one_of_each_category_and_more():
    """No pair twice, each with counts, score and words."""
    made = composed("assessed:9")
    assert len(ids(made)) == len(set(ids(made))) == 15
    assert made.shots.n == 9
    assert ids(made)[:6] == ids(composed("per_error"))
    assert all(one.explanation and one.significant is not None for one in made.shown)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("random", "need a number: write random:5"),
        ("random:16", "gives 15 such pairs of different references, and 16 are asked"),
        ("assessed:10", "beside the 6 of the categories, and 10 are asked for"),
        ("per_error:3", "one for each category that the judge asks for, 6 in all"),
        ("injected:60", "injected shots, and 60 are asked for"),
        ("some:3", "names no shots"),
    ],
)
def test_what_a_pool_cannot_give(words, why):
    """Says how many there are."""
    with pytest.raises(DataError, match=why):
        composed(words)


def test_injected_shots_are_not_rated():
    """Nobody saw them."""
    with pytest.raises(DataError, match="nobody rated the injected errors"):
        composed("injected:2", score=ShotScore.RATING)
    with pytest.raises(DataError, match="does not ask for omission"):
        composed("injected:2", replace(GREEN, guides=GREEN.guides[:1]))


@pytest.mark.parametrize("name", ["rubric@v1", "crimson@v1"])
def test_judges_without_categories_show_scores_of_all_errors(name):
    """Their guides are no categories: that none has an error is no perfect score."""
    version = read_version(WorkspacePaths(bundled()), name)
    made = composed("random:9", version, score=ShotScore.LINEAR)
    counted = composed("random:9", score=ShotScore.LINEAR)
    assert [one.score for one in made.shown] == [one.score for one in counted.shown]
    assert min(one.score for one in made.shown) < 1
    for words in ("per_error", "assessed:2"):
        with pytest.raises(DataError, match="the judge asks for no category of errors"):
            composed(words, version)


def test_only_judges_have_shots():
    """An extractor reads one text."""
    with pytest.raises(DataError, match="judges no pairs"):
        composed("random:2", read_version(SHIPPED, "extractor@v11"))


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 101}, {"seed": -1}])
def test_an_impossible_request(wrong):
    """Also from Python."""
    with pytest.raises(ValueError, match="must be"):
        ShotRequest(kind=ShotKind.RANDOM, **wrong)


def test_the_same_shots_in_every_process():
    """By digest of seed and id: no hash seed, no order of a set."""
    code = (
        "from loop.core.paths import WorkspacePaths, bundled\n"
        "from loop.judge.shots import add_shots, request_shots\n"
        "from loop.prompts.catalog import read_version\n"
        "green = read_version(WorkspacePaths(bundled()), 'green@v1')\n"
        "for one in ('random:5', 'per_error', 'injected:4', 'assessed:5'):\n"
        "    print(add_shots(None, green, request_shots(one)).digest)"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("0", "1")
    }
    words = ("random:5", "per_error", "injected:4", "assessed:5")
    (said,) = told
    assert said.split() == [composed(one).digest for one in words]


def test_rules_answers_as_without_shots_and_says_so():
    """It reads no examples; the signature still tells the two apart."""
    plain = judge_pairs(REFERENCES, CANDIDATES)
    shown = judge_pairs(REFERENCES, CANDIDATES, shots="random:3")
    for one, other in zip(plain.document.systems, shown.document.systems, strict=True):
        np.testing.assert_array_equal(
            one.answers.counts.triples, other.answers.counts.triples
        )
        assert other.answered == one.answered == len(REFERENCES)
    assert all("patient" not in one for one in notes(shown.document))
    assert "shots:" not in plain.signature and "pairs:" not in plain.signature
    digest = composed("random:3").shots.digest[:8]
    assert f"|shots:synthetic:random:3:seed0:rating:{digest}|pairs:" in shown.signature
    fewer = {name: REFERENCES[name] for name in "ab"}
    other = judge_pairs(fewer, {n: CANDIDATES[n] for n in "ab"}, shots="random:3")

    def pairs(said):
        return next(one for one in said.split("|") if one.startswith("pairs:"))

    assert pairs(other.signature) != pairs(shown.signature)
    data = judge_data(shown.document)["judge"]
    assert data["prompt"] == "green@v1+random:3"
    assert [len(one["digest"]) for one in data["shots"]["examples"]] == [64] * 3


def joined_with(texts, patients=None):
    """Return pairs with these references; every candidate says the same."""
    candidates = dict.fromkeys(texts, "Nothing.")
    return join_texts(texts, candidates, LABELS, patients=patients)


def test_what_was_shown_is_not_judged():
    """Not by any way to a judge: the check is where systems are judged."""
    made = composed("random:15")
    texts = {"x1": made.shown[0].reference.upper(), "x2": "An own text."}
    with pytest.raises(OverlapError, match="1 of the pairs to judge shares") as said:
        judge_pairs(texts, dict.fromkeys(texts, "Nothing."), made)
    assert "--sample N" in str(said.value) and "x1" not in str(said.value)
    with Judge.open(None, made) as judge:
        assert judge.judge(["An own text."], ["Nothing."], ["en"]).asked == 1


def test_patients_of_a_file_are_compared_by_the_key_of_the_workspace(
    workspace, tmp_path
):
    """The file has their names, the pool their pseudonyms."""
    assert as_pool(workspace, tmp_path).exit_code == 0
    pool = read_cohort(workspace, "pool")
    assert pool.cases[0].patient == open_pseudonyms(workspace).of("x1")
    version = add_shots(workspace, GREEN, request_shots("random:2", "pool"))
    joined = joined_with({"a": "One text.", "b": "Other."}, {"a": "x2", "b": "x9"})
    found = find_shared_pairs(workspace, version, joined)
    assert (found.patients, found.references) == ({"a"}, frozenset())
    assert found.patients_compared
    path = table(
        tmp_path / "partly.csv",
        ("id", "reference", "candidate", "patient"),
        [("a", "One text.", "None.", "x2"), ("b", "Other.", "None.", "")],
    )
    partly = join_pairs(path, LABELS)
    assert partly.patients is None
    found = find_shared_pairs(workspace, version, partly)
    assert (found.patients, found.patients_compared) == ({"a"}, False)


def test_a_sample_is_drawn_after_the_shots_are_taken_out():
    """Of what is left, the same for every order of rows and every system."""
    made = composed("random:3")
    texts = {f"s{n}": shot.reference for n, shot in enumerate(made.shown)}
    texts |= {f"o{n}": f"Report number {n} of another kind." for n in range(20)}
    joined = joined_with(texts)
    shared = find_shared_pairs(None, made, joined)
    assert shared.ids == {"s0", "s1", "s2"}
    drawn = sample_cases(joined, 12, 5, shared)
    assert drawn.taken_out == 3
    assert len(drawn.joined.case_ids) == 12
    assert not shared.ids & set(drawn.joined.case_ids)
    assert drawn.joined.coverage[0].paired == 12
    assert drawn.joined.reference.texts == tuple(
        texts[name] for name in drawn.joined.case_ids
    )
    (note,) = drawn.joined.notes
    assert note == (
        "12 of 23 cases, drawn with seed 5 after 3 were taken out that share something "
        "with the shots (3 by the reference)."
    )
    again = joined_with(dict(reversed(texts.items())))
    assert sample_cases(again, 12, 5, shared).joined.case_ids == drawn.joined.case_ids
    others = sample_cases(joined, 12, 6, shared).joined.case_ids
    assert others != drawn.joined.case_ids
    assert len(sample_cases(joined, 20, 0, shared).joined.case_ids) == 20
    with pytest.raises(DataError, match="there are 20 to draw from; 3 share something"):
        sample_cases(joined, 21, 0, shared)


class Recorder(BaseHTTPRequestHandler):
    """Answers as a good server does, and keeps what it was asked."""

    asked: ClassVar[list[dict]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Name the model."""
        self.wfile.write(models("tiny"))

    def do_POST(self):
        """Answer one prompt."""
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        self.asked.append(request)
        body = json.dumps(plain_answer(request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    """Serve a model for one test; give its engine name and what it was asked."""
    asked = []
    handler = type("Recording", (Recorder,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"openai:tiny@http://127.0.0.1:{running.server_port}/v1", asked
        running.shutdown()
        thread.join()


def users_of(asked, words):
    """Return the user messages that hold these words."""
    messages = [one["messages"][-1]["content"] for one in asked]
    return [text for text in messages if words in text]


def test_a_model_sees_the_shots_before_each_pair(workspace, tmp_path, server):
    """From the command line to the server, with the texts of a private pool."""
    engine, asked = server
    rate(workspace, tmp_path)
    assert as_pool(workspace, tmp_path).exit_code == 0
    pairs = table(
        tmp_path / "judged.csv",
        ("id", "reference", "candidate"),
        [("k1", "Quiet lungs.", "Quiet lungs."), ("k2", "Wide heart.", "Slim heart.")],
    )
    out = tmp_path / "judged"
    done = call(
        workspace,
        *("judge", "mine", "--pairs", pairs, "-e", engine, "--out", out),
        *("--shots", "random:2", "--pool", "pool"),
    )
    assert done.exit_code == 0, done.output
    seen = users_of(asked, "<example>")
    assert len(seen) == 2
    version = read_version(workspace, "mine@v1")
    made = add_shots(workspace, version, request_shots("random:2", "pool"))
    for text in seen:
        positions = [text.index(shot.reference) for shot in made.shown]
        judged = max(text.find("Quiet lungs."), text.find("Wide heart."))
        assert max(positions) < judged
    assert (
        f"2 of pool pool (random:2, seed 0, score rating, {made.shots.digest[:12]})"
        in (done.output)
    )
    assert "`rules` does not read shots" not in done.output
    told = " ".join(done.output.split())
    assert "Whether these pairs share a patient with the shots is not known" in told
    written = done.output + "".join(path.read_text("utf-8") for path in out.iterdir())
    assert "ebra" not in written
    assert "mine@v1+random:2" in (out / "judge.json").read_text()
    again = call(
        workspace,
        *("judge", "mine", "--pairs", pairs, "-e", engine, "--shots", "random:2"),
        *("--pool", "pool"),
    )
    assert again.exit_code == 0, again.output
    assert len(users_of(asked, "<example>")) == 2


def test_the_command_line_draws_apart_from_the_shots(tmp_path):
    """What shares with the shots is refused, and left out of a sample."""
    made = composed("random:3")
    rows = [(f"s{n}", s.reference, "Nothing.") for n, s in enumerate(made.shown)]
    rows += [(f"o{n}", f"Report {n} of another kind.", "Nothing.") for n in range(9)]
    pairs = table(tmp_path / "p.csv", ("id", "reference", "candidate"), rows)
    command = ["judge", "green", "--pairs", str(pairs), "--shots", "random:3"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, OverlapError)
    assert "3 of the pairs to judge share something" in str(refused.exception)
    done = CliRunner().invoke(app, [*command, "--sample", "8", "--json"])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["systems"][0]["pairs"] == 8
    assert data["systems"][0]["answered"] == 8
    plain = CliRunner().invoke(app, [*command[:4], "--sample", "5", "--json"])
    assert json.loads(plain.stdout)["systems"][0]["pairs"] == 5
    for more in (["--pool", "x"], ["--shots-seed", "1"], ["--shots-score", "linear"]):
        assert CliRunner().invoke(app, [*command[:4], *more]).exit_code == 2


def test_a_judge_of_phrases_takes_no_shots():
    """It reads no whole report, and the examples are whole reports."""
    radfact = find_judge(None, "radfact")
    with pytest.raises(DataError, match="shots are whole reports"):
        add_shots(None, radfact, request_shots("random:3"))


ASKED = ("omission", "location")
"""Categories that the judges below ask for."""


def pooled(name, reference, marked=None, *, rating=None, single=None, alone=None):
    """Return a pair: errors by weight and category, and a rater's own."""

    def counts(given):
        serious, slight = given
        blank = dict.fromkeys((*ASKED, "severity"), 0)
        return MarkedCounts({**blank, **serious}, {**blank, **slight})

    return PoolPair(
        id=name,
        reference=f"Reference {reference}.",
        candidate=f"Candidate {name}.",
        reference_id=reference,
        counts=None if marked is None else counts(marked),
        rating=rating,
        assessed=None if single is None else counts(single),
        assessed_rating=alone,
        explanation=f"Why {name}.",
    )


def pool_of(*pairs):
    """Return a pool of these pairs."""
    return ShotPool(name="mine", digest="d", pairs=pairs)


def chosen(pool, words, categories=ASKED, **how):
    """Return which pairs of a pool are chosen, and how they are scored."""
    found = shots._choose(pool, request_shots(words, **how), categories)
    return [one.id for one in found.shots], found.score


def test_of_each_category_the_pair_with_the_fewest_other_errors_is_shown():
    """A significant error goes before; a reference is shown once; ties are drawn."""
    pool = pool_of(
        pooled("slight", "r1", ({}, {"omission": 1})),
        pooled("busy", "r2", ({"omission": 1, "location": 1}, {"severity": 1})),
        pooled("clean", "r3", ({"omission": 2}, {})),
        pooled("same", "r3", ({"location": 1}, {})),
        pooled("other", "r4", ({"location": 1}, {"severity": 3})),
        pooled("none", "r5"),
    )
    assert chosen(pool, "per_error") == (["clean", "busy"], ShotScore.LINEAR)
    # Without the pair that has both, the one with more errors of others is left.
    fewer = pool_of(*(one for one in pool.pairs if one.id != "busy"))
    assert chosen(fewer, "per_error")[0] == ["clean", "other"]
    assert chosen(fewer, "per_error", ASKED[:1])[0] == ["clean"]
    light = pool_of(*(one for one in pool.pairs if one.id in ("slight", "other")))
    assert chosen(light, "per_error")[0] == ["slight", "other"]
    with pytest.raises(DataError) as refused:
        chosen(pool_of(*pool.pairs[2:4]), "per_error")
    assert str(refused.value) == (
        "the pool mine has no pair with an error of the category location beside those "
        "of the categories before it, each of another reference. Ask for random shots, "
        "or take a pool that has one."
    )
    with pytest.raises(DataError, match="error of the category omission, each of"):
        chosen(pool_of(pool.pairs[3]), "per_error")
    alike = [pooled(f"a{n}", f"r{n}", ({"omission": 1}, {})) for n in range(9)]
    ranked = sorted(
        (one.id for one in alike),
        key=lambda name: Chance("shots", "4").rank(f"omission|{name}"),
    )
    assert chosen(pool_of(*alike), "per_error", ASKED[:1], seed=4)[0] == ranked[:1]


def test_random_shots_are_drawn_once_of_each_reference():
    """By seed and id alone; without ratings by their errors, and else not at all."""
    rated = [
        pooled(f"a{n}", f"r{n // 2}", rating=n / 10 if n != 3 else None)
        for n in range(10)
    ]
    chance = Chance("shots", "5")
    order = sorted(
        (one for one in rated if one.rating is not None),
        key=lambda one: chance.rank(f"any|{one.id}"),
    )
    first = {}
    for one in order:
        first.setdefault(one.reference_id, one.id)
    wanted = list(first.values())
    assert len(wanted) == 5
    for number in (5, 2):
        assert chosen(pool_of(*rated), f"random:{number}", seed=5) == (
            wanted[:number], ShotScore.RATING,
        )  # fmt: skip
    counted = pool_of(pooled("b", "r", ({"omission": 1}, {})), pooled("c", "s"))
    assert chosen(counted, "random:1") == (["b"], ShotScore.LINEAR)
    for pool, score, what in (
        (pool_of(*rated), ShotScore.INVERSE, "error counts"),
        (counted, ShotScore.RATING, "ratings"),
    ):
        with pytest.raises(DataError) as refused:
            chosen(pool, "random:1", score=score)
        assert str(refused.value) == (
            f"the pool mine has no {what}, which shots random with score {score} need. "
            "Add them with `ranloop cohort ratings mine ...`, or ask for another kind "
            "or score."
        )


def test_assessed_shots_are_of_what_one_rater_found():
    """First one of each category, then others, each of another reference."""
    pairs = [
        # All raters say something else than the one.
        pooled("a", "r1", ({}, {}), single=({"omission": 1}, {}), alone=0.5),
        pooled("b", "r2", ({"omission": 9}, {}), single=({"location": 1}, {})),
        pooled("c", "r3", ({"omission": 1}, {}), single=({"location": 1}, {}),
               alone=0.25),
        pooled("d", "r4", single=({}, {}), alone=1.0),
        pooled("e", "r4", single=({}, {}), alone=1.0),
        pooled("f", "r5", ({"location": 1}, {}), rating=0.1),
    ]  # fmt: skip
    pool = pool_of(*pairs)
    names, score = chosen(pool, "assessed:1")
    assert (names[:2], score) == (["a", "c"], ShotScore.RATING)
    assert names[2] in ("d", "e") and len(names) == 3
    linear, _ = chosen(pool, "assessed:1", score=ShotScore.LINEAR)
    assert linear[0] == "a" and linear[1] in ("b", "c") and len(linear) == 3
    with pytest.raises(DataError) as refused:
        chosen(pool, "assessed:2")
    assert str(refused.value) == (
        "the pool mine gives 1 such pairs of different references beside the 2 of the "
        "categories, and 2 are asked for. Ask for fewer, or import a larger pool."
    )
    bare = pool_of(pairs[5])
    with pytest.raises(DataError, match="has no error counts, which shots assessed"):
        chosen(bare, "assessed:1")
    with pytest.raises(DataError, match="has no error counts with ratings, which"):
        chosen(bare, "assessed:1", score=ShotScore.RATING)


def test_what_was_shown_is_in_the_data_and_notes():
    """By id and digest; of `rules` it is said that it reads none."""
    made = composed("random:2", seed=3).shots
    assert shots_data(made) == {
        "pool": "synthetic",
        "kind": "random",
        "n": 2,
        "seed": 3,
        "score": "rating",
        "digest": made.digest,
        "examples": [{"id": one.id, "digest": one.digest} for one in made.pins],
    }
    said = f"Examples in the prompt: {made.words}."
    assert shot_notes(made, "told") == [said]
    assert shot_notes(made, "rules") == [
        said,
        "`rules` does not read shots: its answers are the same as without.",
    ]
