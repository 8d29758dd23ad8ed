"""GEPA asks through an adapter that leaves failures out and tells what it must."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import EngineError
from loop.core.records import (
    Clarification,
    Completion,
    ErrorWeight,
    PromptTask,
    Value,
    ValueCode,
)
from loop.engines import base
from loop.engines.rules.engine import RulesEngine
from loop.optimize import gepa_search
from loop.optimize.gepa_search import (
    SaidByClinicians,
    gather_verdicts,
    question_templates,
    search_gepa,
)
from loop.optimize.objective import open_objective
from loop.optimize.proposals import INSTRUCTIONS, Objection, ProposalReader
from loop.optimize.reflect import Reflector
from loop.optimize.splits import split_cases
from loop.review.status import KeptVerdict, VerdictState, read_kept
from loop.review.submit import save_verdicts
from loop.review.verdict import Context, Edits, ErrorVerdict, Judgement
from loop.run.asking import hold_engine
from loop.run.store import open_store
from tests.optimize.made_task import Notes, propose_term
from tests.review.scenes import MADE_ON, WHEN, verdict

EFFUSION = "pleural_effusion"


class Asked:
    """A reflector that keeps the questions."""

    def __init__(self, answer=propose_term):
        """Answer with `answer`."""
        self.questions = []
        self._answer = answer

    def ask(self, question):
        """Answer a question."""
        self.questions.append(question)
        return self._answer(question)


def search(objective, reflector, *, labels=(EFFUSION,), budget=120, said=None, seed=0):
    """Search with GEPA on the first split."""
    ground = objective.ground
    split = split_cases(ground.truth, ground.clusters.units)[0]
    return search_gepa(
        objective,
        ProposalReader(ground.version),
        reflector,
        split.seen,
        labels=labels,
        budget=budget,
        said=said,
        seed=seed,
    )


@pytest.fixture
def objective(improvable):
    """Open the objective of the made task."""
    with open_objective(improvable, "tiny", "dev") as made:
        yield made


def test_the_same_seed_proposes_the_same(objective):
    """And another seed asks other questions."""
    first, again, other = Asked(), Asked(), Asked()
    one = search(objective, first)
    assert search(objective, again) == one
    assert again.questions == first.questions
    search(objective, other, seed=5)
    assert other.questions != first.questions


def test_the_budget_holds(objective):
    """A proposal that is never better is tried until the budget is used up."""

    def useless(question):
        return propose_term(question.replace("right is present", "right is x"))

    found = search(objective, Asked(useless), budget=100)
    assert 100 <= found.calls <= 100 + gepa_search.MINIBATCH + 30


def test_only_failing_cases_are_reflected_on(objective):
    """Each question shows errors, what is right, and how many there were."""
    asked = Asked()
    search(objective, asked)
    for question in asked.questions:
        assert "right is present" in question or "right is absent" in question
        assert "of 6 reports" in question
        assert "Never copy a sentence of a report" in question
        assert "niche and domain specific" not in question


def test_a_perfect_prompt_asks_nothing(objective):
    """Nothing is wrong with the heart: nothing is spent."""
    asked = Asked()
    found = search(objective, asked, labels=("cardiomegaly",))
    assert (found.candidates, found.calls, asked.questions) == ((), 0, [])


def test_nothing_is_printed_or_written(objective, tmp_path, monkeypatch, capfd):
    """GEPA's own log has candidates and tracebacks in it."""
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    search(objective, Asked())
    assert capfd.readouterr() == ("", "")
    new = {path for path in set(tmp_path.rglob("*")) - before if "ws" not in path.parts}
    assert not new


def test_refused_proposals_are_counted_and_cost_nothing(objective):
    """No case is scored with what is no guide."""
    found = search(objective, Asked(lambda question: "{{ text }}"), budget=90)
    assert set(found.refused) == {Objection.NOT_A_GUIDE}
    assert found.refused[Objection.NOT_A_GUIDE] == found.proposals > 0
    assert objective.candidates == 1


class Faulty(RulesEngine):
    """Fails on the cases of one film number, whatever it is asked."""

    failing = ("film 7.",)

    def complete(self, prompts):
        """Answer as `rules`, but for some cases."""
        prompts = list(prompts)
        for number, completion in super().complete(prompts):
            text = prompts[number].item.variables["text"]
            if any(one in text for one in self.failing):
                completion = Completion("", "error", "lost")
            yield number, completion


@pytest.fixture
def faulty(monkeypatch):
    """Register the engine ``faulty``, which reads as `rules` does where it works."""
    rules = base._FACTORIES["rules"]

    def make(rest, settings):
        engine = rules("", settings)
        engine.__class__ = Faulty
        return engine

    monkeypatch.setitem(base._FACTORIES, "faulty", make)
    monkeypatch.setattr(Faulty, "failing", ("film 7.",))
    return Faulty


def test_what_the_engine_fails_on_is_no_score(improvable, faulty, objective):
    """The search without failures proposes the same as one with a lost case."""
    sound = search(objective, Asked())
    with open_objective(improvable, "tiny", "dev", engine="faulty:x") as made:
        lost = search(made, Asked())
    assert lost.candidates
    assert {one.digest for one in lost.candidates} & {
        one.digest for one in sound.candidates
    }


def test_too_many_failures_stop_the_search(improvable, faulty):
    """A score over what is left would compare other cases each time."""
    faulty.failing = tuple(f"film {number}." for number in range(20))
    opened = open_objective(improvable, "tiny", "dev", engine="faulty:x")
    with opened as made, pytest.raises(EngineError, match="too often to compare"):
        search(made, Asked())


def test_the_reflector_counts_draws_and_failures(improvable, stub):
    """The same question again is another draw, remembered by itself."""
    notes = Notes()
    with hold_engine(improvable, "stub:x") as engine:
        reflector = Reflector(engine, notes)
        stub.said = "one"
        assert reflector.ask("why?") == "one"
        stub.said = "two"
        assert reflector.ask("why?") == "two"
        again = Reflector(engine, notes)
        assert [again.ask("why?"), again.ask("why?")] == ["one", "two"]
    assert (reflector.use.asked, reflector.answered) == (2, 2)
    assert (again.use[1:3], again.answered) == ((0, 2), 2)


def test_each_component_has_its_own_question():
    """A guide is asked for as YAML, instructions as text; both hold the marks."""
    made = question_templates(["edema", INSTRUCTIONS])
    for text in made.values():
        assert "<curr_param>" in text
        assert "<side_info>" in text
    assert "as YAML" in made["edema"]
    assert "YAML" not in made[INSTRUCTIONS]
    judging = question_templates(["omission", INSTRUCTIONS], PromptTask.JUDGE)
    assert "no_error" in judging["omission"]
    assert "terms" not in judging["omission"]
    assert "a candidate\nradiology report" in judging[INSTRUCTIONS]
    for before, now in zip(made.values(), judging.values(), strict=True):
        assert max(map(len, now.splitlines())) <= 90
        assert before != now


def kept_verdicts(workspace):
    """Keep what two clinicians say, and return it."""
    rows = [
        verdict(
            "c1",
            label=EFFUSION,
            context=Context.SYNONYM_OR_ABBREVIATION,
            edits=Edits(
                terms=("hydrothorax",),
                clarifications=(
                    Clarification(
                        phrase="meniscus", value=Value.PRESENT, note="says fluid"
                    ),
                ),
            ),
            comment="told by the ward",
        ),
        verdict(
            "c2",
            label=EFFUSION,
            judgement=Judgement.REFERENCE_WRONG,
            correct_value=Value.PRESENT,
        ),
    ]
    with open_store(workspace) as store:
        save_verdicts(store, rows, MADE_ON, WHEN)
        return read_kept(store, workspace, "dev")


def test_what_clinicians_said_is_told(improvable):
    """Judgement, context and rule; the comment only where it stays here."""
    kept = kept_verdicts(improvable)
    said = gather_verdicts(kept)
    told = said.by_pair["c1", EFFUSION]
    for words in (
        "model wrong",
        "hard because of synonym or abbreviation",
        "term: hydrothorax",
        "rule: meniscus -> present (says fluid)",
    ):
        assert words in told
    assert "told by the ward" not in told
    assert said.rules[EFFUSION][0] == "term: hydrothorax"
    assert said.disputed == {("c2", EFFUSION)}
    full = gather_verdicts(kept, comments=True)
    assert "comment: told by the ward" in full.by_pair["c1", EFFUSION]


def standing(name, given, state=VerdictState.OPEN):
    """Return a kept verdict on one pair."""
    pairs = tuple((case, given.label) for case in given.case_ids)
    return KeptVerdict(
        id=name,
        verdict=given,
        circumstances=MADE_ON,
        created="",
        state=state,
        pairs=pairs,
    )


def test_the_counts_that_a_clinician_gives_are_told():
    """A verdict on a judge says what is right as counts."""
    kinds = (ErrorWeight.SIGNIFICANT, ErrorWeight.NO_ERROR, ErrorWeight.SIGNIFICANT)
    errors = tuple(
        ErrorVerdict(words="x", said=ErrorWeight.SIGNIFICANT, right=one)
        for one in kinds
    )
    kept = standing("v", verdict("p1", label="omission", errors=errors))
    told = gather_verdicts([kept]).by_pair["p1", "omission"]
    assert told == "model wrong; right is 2 significant, 0 insignificant"


def test_what_several_say_of_a_pair_is_told_line_by_line():
    """Each wording once a label; what was taken back or superseded is not told."""
    edits = Edits(
        terms=("hydrothorax",),
        exclusions=("effusion bag",),
        general_rules=("Read it all.",),
    )
    again = Edits(terms=("hydrothorax", "wet lung"))
    defect = Judgement.SOURCE_TEXT_DEFECT
    kept = [
        standing("a", verdict("c1", label=EFFUSION, edits=edits, comment=" ")),
        standing("b", verdict("c1", label=EFFUSION, edits=again, comment="so ")),
        standing("c", verdict("c2", label=EFFUSION), VerdictState.WITHDRAWN),
        standing("d", verdict("c2", label=EFFUSION), VerdictState.SUPERSEDED),
        standing("e", verdict("c3", label="cardiomegaly", judgement=defect)),
    ]
    wordings = (
        "term: hydrothorax",
        "exclusion: effusion bag",
        "general rule: Read it all.",
        "term: wet lung",
    )
    first = f"model wrong; {'; '.join(wordings[:3])}"
    second = "term: hydrothorax; term: wet lung"
    assert gather_verdicts(kept) == SaidByClinicians(
        by_pair={
            ("c1", EFFUSION): f"{first}\nmodel wrong; {second}",
            ("c3", "cardiomegaly"): "source text defect",
        },
        rules={EFFUSION: wordings},
        disputed=frozenset({("c3", "cardiomegaly")}),
    )
    told = gather_verdicts(kept, comments=True).by_pair["c1", EFFUSION]
    assert told == f"{first}\nmodel wrong; comment: so; {second}"


LABELS = (EFFUSION, "cardiomegaly")


def adapted(objective, said=None):
    """Return what GEPA asks about the made task."""
    reader = ProposalReader(objective.ground.version)
    return gepa_search._Adapter(objective, reader, LABELS, said or SaidByClinicians())


def rows_of(objective, *wanted):
    """Return the first case for each finding and whether the heart is large."""
    texts = [one.variables["text"] for one in objective.ground.items]
    return [
        next(
            row
            for row, text in enumerate(texts)
            if finding in text and ("Cardiomegaly" in text) is heart
        )
        for finding, heart in wanted
    ]


def test_a_case_is_worth_the_mean_over_labels_and_told_where_it_is_wrong(objective):
    """One of two labels is missed; a disputed one is neither right nor wrong."""
    ground = objective.ground
    missed, heart, right = rows_of(
        objective, ("hydrothorax", False), ("meniscus", True), ("pleural", False)
    )
    ids, batch = ground.case_ids, [missed, heart, right]
    text = {row: ground.items[row].variables["text"] for row in batch}
    said = SaidByClinicians(
        by_pair={
            (ids[missed], EFFUSION): "model wrong",
            (ids[missed], LABELS[1]): "never mind",
        },
        rules={EFFUSION: ("term: hydrothorax",), "edema": ("term: wet",)},
    )
    adapter = adapted(objective, said)
    adapter.begin(np.array([right, heart]))
    assert list(adapter.wrong) == [heart]
    texts = dict(adapter._reader.components)
    found = adapter.evaluate(batch, texts, capture_traces=True)
    assert found.scores == [0.5, 0.5, 1.0]
    assert found.objective_scores == [
        {EFFUSION: 0.0, LABELS[1]: 1.0},
        {EFFUSION: 0.0, LABELS[1]: 1.0},
        dict.fromkeys(LABELS, 1.0),
    ]
    # The case that was not searched is not drawn to be reflected on.
    assert list(adapter.wrong) == [heart]
    answer = f"Answer about {EFFUSION}"
    told = {
        "Counts": "2 answered absent; right is present; of 3 reports",
    }
    asked = {"Asked for by clinicians": "term: hydrothorax"}
    cases = [
        {
            "Report": text[missed],
            answer: "absent; right is present",
            "Said by clinicians": "model wrong",
        },
        {"Report": text[heart], answer: "absent; right is present"},
    ]
    made = adapter.make_reflective_dataset(texts, found, [*LABELS, INSTRUCTIONS])
    assert made == {
        EFFUSION: [told, asked, *cases],
        LABELS[1]: [{"Counts": "none wrong; of 3 reports"}],
        INSTRUCTIONS: [told, asked, *cases],
    }
    disputed = replace(said, disputed=frozenset({(ids[missed], EFFUSION)}))
    adapter = adapted(objective, disputed)
    other = adapter.evaluate(batch, texts)
    assert other.scores == [1.0, 0.5, 1.0]
    assert other.objective_scores[0] == {LABELS[1]: 1.0}
    assert other.trajectories is None
    found = adapter.evaluate(batch, texts, capture_traces=True)
    (counts, *_) = adapter.make_reflective_dataset(texts, found, [EFFUSION])[EFFUSION]
    assert counts["Counts"] == (
        "1 answered absent; right is present; 1 neither right nor wrong; of 3 reports"
    )


def test_what_the_engine_failed_on_is_worth_what_the_parents_answer_was(
    objective, monkeypatch
):
    """Where nobody has an answer, every wording gets the best score: none gains by it.

    Refused texts get 0.
    """
    missed, right = rows_of(objective, ("hydrothorax", False), ("pleural", False))
    (unknown,) = rows_of(objective, ("meniscus", False))
    adapter = adapted(objective)
    rows = np.array([missed, right, unknown])
    first = objective.answers(objective.ground.version, rows).copy()
    first[2] = ValueCode.FAILED
    with monkeypatch.context() as patch:
        patch.setattr(objective, "answers", lambda *_: first)
        adapter.begin(rows)
    texts = dict(adapter._reader.components)
    refused = adapter.evaluate([missed, right], {**texts, EFFUSION: "no guide"})
    assert (refused.scores, refused.trajectories) == ([0.0, 0.0], [])
    assert refused.num_metric_calls == 0
    lost = np.full((3, 2), ValueCode.FAILED, dtype=np.int8)
    monkeypatch.setattr(objective, "answers", lambda *_: lost)
    found = adapter.evaluate([missed, right, unknown], texts)
    assert found.scores == [0.5, 1.0, 1.0]
    assert found.objective_scores == [{}, {}, {}]


@pytest.mark.parametrize(
    ("wrong", "drawn"), [(0, 0), (1, 1), (2, 2), (3, 3), (7, 3), (20, 3)]
)
def test_half_of_a_minibatch_was_wrong_when_last_asked(wrong, drawn):
    """As far as there are any, and others; the same of the same seed and call."""
    rows = np.arange(100, 120)
    known = dict.fromkeys(rows[:wrong].tolist())
    one, other = (gepa_search._Minibatches(rows, known, seed=3) for _ in range(2))
    first = one.next_minibatch_ids(None, None)
    assert first == other.next_minibatch_ids(None, None)
    again = one.next_minibatch_ids(None, None)
    assert wrong == 20 or first != again
    for places in (first, again):
        assert sum(place < wrong for place in places) == drawn
        assert len(set(places)) == len(places) == (3 if wrong == 20 else 6)
        assert set(places) <= set(range(20))


def test_questions_carry_what_clinicians_said(improvable, objective):
    """The rules they asked for stand in every question about the label."""
    asked = Asked()
    search(objective, asked, said=gather_verdicts(kept_verdicts(improvable)))
    assert all("term: hydrothorax" in question for question in asked.questions)


def test_a_disputed_reference_teaches_nothing(improvable, objective):
    """A case whose reference a clinician calls wrong is in no question."""
    ground = objective.ground
    ids = {(case, EFFUSION) for case in ground.case_ids}
    said = replace(gather_verdicts(()), disputed=frozenset(ids))
    asked = Asked()
    assert search(objective, asked, said=said).calls == 0
    assert asked.questions == []


def test_labels_that_fail_come_first():
    """Then those that were revised least."""
    choose = gepa_search._ByNeed(("a", "b"), words=True)

    def case(*right):
        points = np.array(right, dtype=float)
        return gepa_search._ScoredCase(0, np.zeros(2), points, points < 1)

    both, second = [case(False, False)], [case(True, False)]
    assert choose(None, both, [], 0, {}) == ["a"]
    assert choose(None, both, [], 0, {}) == ["b"]
    assert choose(None, both, [], 0, {}) == [INSTRUCTIONS]
    assert choose(None, second, [], 0, {}) == ["b"]
    assert choose(None, both, [], 0, {}) == ["a"]


def test_a_label_that_nobody_scores_is_a_mistake(objective):
    """It is refused before anything is asked."""
    with pytest.raises(ValueError, match="not scored: edema"):
        search(objective, Asked(), labels=("edema",))


def test_loggers_stay_as_they_were(objective):
    """A library's logger is not ours to change for good."""
    level = logging.getLogger("dspy").level
    search(objective, Asked())
    assert logging.getLogger("dspy").level == level
