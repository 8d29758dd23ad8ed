"""What is known of cases without a reference, counted case by case."""

import json
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.records import Completion, ValueCode
from loop.engines import base
from loop.evaluate.align import in_order, read_codes
from loop.evaluate.inputs import read_inputs
from loop.evaluate.plan import positives_wanted
from loop.evaluate.sampled import judged_labels
from loop.labels.cohort import read_cohort
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.unread import choose_runs, label_weights, measure_parts
from loop.review.queue.value import measure_nearness
from loop.run.store import open_store
from loop.stats.confusion import Confusion
from tests.optimize.sampling import WORDS, run
from tests.review.revise.conftest import wavering as wavering
from tests.review.revise.stepping import Wavering

BETWEEN = ("tiny@v1", "tiny@v2")


def texts_of(workspace, name="pool"):
    """Return case id to text."""
    path = workspace.private / "cases" / f"{name}.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return {row["case_id"]: row["text"] for row in rows}


def chosen(workspace, **options):
    """Return the runs beside each other on ``pool``, and those on ``dev``."""
    with open_store(workspace) as store:
        cohort = read_cohort(workspace, "pool")
        return choose_runs(workspace, store, cohort, **options)


def named(runs):
    """Return what tells runs apart."""
    return [(one.spec.engine, one.spec.draw) for one in runs]


def test_parts_of_a_case_are_what_its_text_and_answers_say(pool):
    """Counted by words: the first version calls an edema by another name."""
    here, dev = chosen(pool, between=BETWEEN)
    assert [one.cohort.name for one in (here, dev)] == ["pool", "dev"]
    assert here.subject.spec.prompt == dev.subject.spec.prompt == "tiny@v2"
    assert [one.spec.prompt for one in here.versions] == ["tiny@v1"]
    assert named(here.models) == named(here.rules) == named(here.repeats) == []
    taxonomy = read_taxonomy(pool.labels)
    judged = np.isin(taxonomy.ids, list(WORDS))
    worth = np.arange(1.0, 5.0)
    ids = here.cohort.case_ids
    with open_store(pool) as store:
        found = measure_parts(
            pool, store, here, ids, taxonomy, judged, {"lacking": worth}
        )
    texts = texts_of(pool)
    labels = [one for one in taxonomy.ids if one in WORDS]
    said = np.array([[WORDS[one] in texts[case] for one in labels] for case in ids])
    edema = said[:, labels.index("edema")]
    assert list(found) == [
        "findings",
        "hedged",
        "unanswered",
        "length",
        "versions",
        "lacking",
    ]
    assert found["findings"].tolist() == said.sum(axis=1).tolist()
    assert set(found["findings"]) == {0, 1, 2, 3, 4}
    assert not found["hedged"].any() and not found["unanswered"].any()
    assert found["length"].tolist() == [len(texts[case].split()) for case in ids]
    assert found["versions"].tolist() == edema.tolist()
    assert found["lacking"].tolist() == (said @ worth).tolist()


def test_what_a_model_hedges_or_does_not_answer_is_counted(pool, wavering):
    """Of its own codes; where one of two has no answer they do not differ."""
    for draw in (0, 1, 2):
        for cohort in ("dev", "pool"):
            run(pool, "tiny@v2", cohort, engine="wavering", draw=draw)
    here, _ = chosen(pool)
    assert named(here.rules) == [("rules", 0)]
    assert named(here.repeats) == [("wavering", 1), ("wavering", 2)]
    taxonomy = read_taxonomy(pool.labels)
    judged = np.isin(taxonomy.ids, list(WORDS))
    ids = here.cohort.case_ids
    weights = {"near": np.ones(4)}
    with open_store(pool) as store:
        found = measure_parts(pool, store, here, ids, taxonomy, judged, weights)
        own, rules, *others = (
            in_order(read_codes(store, one, taxonomy), ids)[:, judged]
            for one in (here.subject, *here.rules, *here.repeats)
        )
    present, unclear = (own == code for code in (ValueCode.PRESENT, -1))
    assert found["findings"].tolist() == present.sum(axis=1).tolist()
    assert found["hedged"].tolist() == unclear.sum(axis=1).tolist()
    assert found["unanswered"].tolist() == (own < -1).all(axis=1).tolist()
    assert found["near"].tolist() == (present | unclear).sum(axis=1).tolist()
    for name, runs in (("rules", [rules]), ("repeats", others)):
        differ = np.zeros(own.shape, dtype=bool)
        for one in runs:
            differ |= (one != own) & (one >= -1) & (own >= -1)
        assert found[name].tolist() == differ.sum(axis=1).tolist()
        assert found[name].any()
    assert "engines" not in found and "versions" not in found


class Hedging(Wavering):
    """A model that hedges on every fifth case, and answers no seventh one."""

    def redraw(self, draw):
        """Return itself: it says the same whenever it is asked."""
        return self

    def complete(self, prompts):
        """Yield an answer to each prompt."""
        for index, prompt in enumerate(prompts):
            number = int(prompt.item.id.rpartition("-")[2])
            text = prompt.item.variables["text"]
            said = "uncertain" if number % 5 == 0 else "present"
            answer = {
                guide.label: said if guide.terms[0] in text else "absent"
                for guide in prompt.frame.guides
            }
            words = json.dumps(answer) if number % 7 else "I cannot say."
            yield index, Completion(words, "stop")


def test_doubt_and_silence_are_parts_and_no_findings(pool, monkeypatch):
    """Every fifth case hedges what it names; every seventh says nothing at all."""
    monkeypatch.setitem(base._FACTORIES, "hedging", Hedging)
    for cohort in ("dev", "pool"):
        run(pool, "tiny@v2", cohort, engine="hedging")
    here, _ = chosen(pool)
    taxonomy = read_taxonomy(pool.labels)
    judged = np.isin(taxonomy.ids, list(WORDS))
    ids = here.cohort.case_ids
    with open_store(pool) as store:
        found = measure_parts(
            pool, store, here, ids, taxonomy, judged, {"near": np.ones(4)}
        )
    texts = texts_of(pool)
    number = np.array([int(case.rpartition("-")[2]) for case in ids])
    said = np.array(
        [sum(word in texts[case] for word in WORDS.values()) for case in ids]
    )
    silent, hedged = number % 7 == 0, number % 5 == 0
    assert found["unanswered"].tolist() == silent.tolist()
    assert found["hedged"].tolist() == (said * (hedged & ~silent)).tolist()
    assert found["findings"].tolist() == (said * ~(hedged | silent)).tolist()
    assert found["near"].tolist() == (said * ~silent).tolist()
    # Rules say present where it hedges, and nothing differs where it is silent.
    assert found["rules"].tolist() == (said * (hedged & ~silent)).tolist()


def test_engines_and_draws_of_one_cohort_alone_are_left_out(
    pool, wavering, monkeypatch
):
    """What was asked on both can be learned on one and used on the other."""
    monkeypatch.setitem(base._FACTORIES, "other", base._FACTORIES["wavering"])
    monkeypatch.setitem(base._FACTORIES, "third", base._FACTORIES["wavering"])
    for cohort, draws in (("dev", (0, 2, 1)), ("pool", (0, 1, 3))):
        run(pool, "tiny@v2", cohort, engine="other")
        for draw in draws:
            run(pool, "tiny@v2", cohort, engine="wavering", draw=draw)
    run(pool, "tiny@v2", "dev", engine="third")
    run(pool, "tiny@v2", "pool", engine="wavering")
    here, dev = chosen(pool)
    for one in (here, dev):
        assert named([one.subject]) == [("wavering", 0)]
        assert named(one.models) == [("other", 0)]
        assert named(one.rules) == [("rules", 0)]
        assert named(one.repeats) == [("wavering", 1)]
        assert {r.spec.cohort for r in (*one.models, *one.rules, *one.repeats)} == {
            one.cohort.name
        }


def test_of_several_runs_alike_the_newest_is_taken(pool):
    """Of the version in question, and of each version beside it."""
    ids = {
        (ref, cohort): run(pool, ref, cohort)
        for ref in BETWEEN
        for cohort in ("dev", "pool")
    }
    here, dev = chosen(pool, between=BETWEEN)
    for one in (here, dev):
        assert one.subject.id == ids["tiny@v2", one.cohort.name]
        assert [r.id for r in one.versions] == [ids["tiny@v1", one.cohort.name]]
    turned, _ = chosen(pool, between=BETWEEN[::-1])
    assert turned.subject.id == ids["tiny@v1", "pool"]
    assert [r.id for r in turned.versions] == [ids["tiny@v2", "pool"]]
    newest, _ = chosen(pool)
    assert newest.subject.id == ids["tiny@v2", "pool"] and newest.versions == ()


def test_versions_must_be_of_the_engine_in_question(pool, wavering):
    """Another version by another engine differs for more than one reason."""
    for cohort in ("dev", "pool"):
        run(pool, "tiny@v2", cohort, engine="wavering")
    with pytest.raises(
        DataError, match=r"no finished run by wavering of tiny@v1 on all cases of coh"
    ):
        chosen(pool, between=BETWEEN)
    here, _ = chosen(pool, between=("tiny@v2",))
    assert named([here.subject]) == [("wavering", 0)] and here.versions == ()


def test_labels_weigh_what_they_lack_and_how_near_their_gate_they_are(pool):
    """By the development cohort: missing positives, and answers that decide."""
    _, dev = chosen(pool, between=BETWEEN)
    inputs = read_inputs(pool, dev.subject.id)
    judged = judged_labels(inputs)
    weights = label_weights(inputs, judged)
    truth = inputs.pairs.binary_reference[:, judged]
    told = inputs.pairs.answers_as(inputs.protocol.policy)[:, judged]
    wanted = positives_wanted(inputs.protocol, int(judged.sum()))
    positives = (truth == 1).sum(axis=0)
    expected = [max(wanted - each, 0) / wanted for each in positives.tolist()]
    assert weights["lacking"].tolist() == expected
    assert {0.0, 1.0} <= set(expected)
    near = []
    for reference, answer in zip(truth.T, told.T, strict=True):
        pairs = [*zip(reference.tolist(), answer.tolist(), strict=True)]
        counts = Confusion(
            *(pairs.count(one) for one in ((1, 1), (0, 1), (1, 0), (0, 0)))
        )
        gate = measure_nearness(counts, inputs.protocol)
        near.append(0.0 if gate is None else 1 / gate.answers)
    assert weights["near"].tolist() == near
    assert set(weights) == {"lacking", "near"}
    least = int(positives.max()) + 10
    stricter = inputs.protocol.model_copy(update={"min_positives": least})
    more = label_weights(replace(inputs, protocol=stricter), judged)
    assert more["lacking"].tolist() == [(least - one) / least for one in positives]
