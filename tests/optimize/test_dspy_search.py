"""DSPy is given ids and guides, never a text of a case, and is silent."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import EngineError
from loop.core.records import Exemplar, UncertainAnswers, Value
from loop.optimize import dspy_search
from loop.optimize.dspy_search import search_mipro
from loop.optimize.objective import open_objective
from loop.optimize.proposals import Objection, ProposalReader, RefusedProposal
from loop.optimize.splits import split_cases
from loop.prompts.guides import dump_guides
from tests.optimize.made_task import (
    SYNONYMS,
    TINY,
    improvable_cases,
    make_task,
    propose_term,
)

EFFUSION = "pleural_effusion"
SECRET = "zyzzogeton"


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


@pytest.fixture
def secretive(workspace, tmp_path):
    """Return a workspace whose every case holds a word of its own."""
    rows = [
        (name, f"{text} {SECRET}.", one, two)
        for name, text, one, two in improvable_cases(100)
    ]
    return make_task(workspace, tmp_path, rows)


def search(workspace, reflector, approved=None, *, budget=100, seed=0):
    """Search with MIPROv2 on the first split."""
    with open_objective(workspace, "tiny", "dev") as objective:
        ground = objective.ground
        split = split_cases(ground.truth, ground.clusters.units)[0]
        return search_mipro(
            objective,
            ProposalReader(ground.version),
            reflector,
            approved or {},
            cases=split.seen,
            labels=(EFFUSION,),
            budget=budget,
            seed=seed,
        )


def test_no_case_text_reaches_dspy_or_what_proposes(secretive, monkeypatch, caplog):
    """Not in its requests, its questions, its logs or what it remembers."""
    requests = []
    complete = dspy_search._Answering.complete

    def spy(self, request):
        requests.append(repr(request))
        return complete(self, request)

    monkeypatch.setattr(dspy_search._Answering, "complete", spy)
    asked = Asked()
    with caplog.at_level(logging.DEBUG):
        found = search(secretive, asked)
    assert found.candidates
    assert requests
    assert asked.questions
    said = "\n".join((*requests, *asked.questions, caplog.text))
    assert SECRET not in said
    import dspy

    assert SECRET not in repr(dspy.clients.base_lm.GLOBAL_HISTORY)


def test_nothing_is_printed(secretive, capfd):
    """Neither progress bars nor what it bootstrapped."""
    search(secretive, Asked())
    assert capfd.readouterr() == ("", "")


def test_the_same_seed_tries_the_same(secretive):
    """Optuna's chance is seeded, too."""
    assert search(secretive, Asked()) == search(secretive, Asked())


def test_approved_exemplars_are_tried_with_the_guides(secretive):
    """They are written as exemplars, by their ids alone."""
    rows = tuple(
        Exemplar(text=f"A {one} is seen.", value=Value.PRESENT, evidence=one)
        for one in (*SYNONYMS, "pleural effusion")
    )
    found = search(secretive, Asked(), {EFFUSION: rows}, budget=200)
    used = {one for each in found.candidates for one in each.guide(EFFUSION).exemplars}
    assert used
    assert used <= set(rows)


def test_a_proposal_that_is_no_guide_is_counted_and_scores_nothing(secretive):
    """The guide as it was remains among what is tried."""
    found = search(secretive, Asked(lambda question: "Read it {{ well }}."))
    assert found.candidates == ()
    assert found.refused == {Objection.NOT_A_GUIDE: 1}


def test_a_failure_of_the_answering_engine_is_no_score(secretive, monkeypatch):
    """DSPy would count it as 0 and go on."""

    def fail(self, version, rows=None):
        if version.digest != self.ground.version.digest:
            raise EngineError("out of order")
        return answers(self, version, rows)

    from loop.optimize.objective import Objective

    answers = Objective.answers
    monkeypatch.setattr(Objective, "answers", fail)
    with pytest.raises(EngineError, match="out of order"):
        search(secretive, Asked())


def test_each_candidate_is_asked_once_about_the_cases(secretive, monkeypatch):
    """A case that the engine failed on would be asked again at every look."""
    from loop.optimize.objective import Objective

    answers, asked = Objective.answers, []

    def spy(self, version, rows=None):
        asked.append(version.digest)
        return answers(self, version, rows)

    monkeypatch.setattr(Objective, "answers", spy)
    assert search(secretive, Asked(), budget=200).candidates
    assert len(asked) == len(set(asked)) > 1


def test_refused_combinations_are_counted_one_by_one(secretive):
    """None of their texts is refused by itself."""
    with open_objective(secretive, "tiny", "dev") as objective:
        reader = ProposalReader(objective.ground.version)
        rows = np.array([], dtype=np.intp)
        with dspy_search._program(objective, reader, (EFFUSION,), {}, rows) as made:
            for text in ("a", "b", "b"):
                refusal = RefusedProposal("together", Objection.COSTLY)
                made.program.note({EFFUSION: text}, refusal)
            assert list(made.program.refused.values()) == [Objection.COSTLY] * 2


def test_indentation_survives_dspy():
    """A signature takes away what all lines but the first have in common."""
    import dspy

    text = "label:\n  name: A\n  terms:\n  - b\n"
    kept = dspy.Signature("case -> label", dspy_search._HEAD + text).instructions
    assert kept.removeprefix(dspy_search._HEAD) == text.strip()
    bare = dspy.Signature("case -> label", text).instructions
    assert bare != text.strip()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (" a: b\n", "a: b"),
        ("I see.\n```yaml\na: b\nc: d\n```\nDone: yes", "a: b\nc: d"),
        ("```\na: b\n```", "a: b"),
        ("```a: b\nc: d```", "a: b\nc: d"),
        ("```yaml\na: b\n```\n```yaml\nc: d\n```", "a: b"),
        ("```yaml\na: b", "a: b"),
    ],
)
def test_of_an_answer_the_first_fenced_block_is_the_guide(answer, text):
    """A word after the fence names a language and is no part of it."""
    assert dspy_search._unfenced(answer) == text


def test_exemplars_are_added_to_a_text_that_is_one_guide():
    """Once each, whatever their case; any other text stays as it is."""
    first = Exemplar(text="Fluid is seen.", value=Value.PRESENT, evidence="Fluid")
    other = replace(first, text="Some fluid.", evidence="fluid")
    effusion, heart = TINY.guides
    guide = replace(effusion, exemplars=(first,))
    text = dump_guides([guide])
    again = replace(first, text="FLUID is  seen.")
    assert dspy_search._with_exemplars(EFFUSION, text, [again, other]) == dump_guides(
        [replace(guide, exemplars=(first, other))]
    )
    assert dspy_search._with_exemplars(EFFUSION, f"{text}\n", []) == f"{text}\n"
    for none in ("no: [guide", "Say present.", dump_guides([guide, heart])):
        assert dspy_search._with_exemplars(EFFUSION, none, [other]) == none
    parent = replace(TINY, guides=(guide, heart))
    approved = {EFFUSION: [again, other], "cardiomegaly": [first], "edema": [other]}
    labels = (EFFUSION, "cardiomegaly", "fracture")
    assert dspy_search._new_exemplars(parent, approved, labels) == {
        EFFUSION: (other,),
        "cardiomegaly": (first,),
        "fracture": (),
    }


def test_dspy_is_told_what_an_answer_is_worth(workspace, tmp_path):
    """A hedge that the protocol leaves out is not right; what is not decided, open."""
    rows = [
        (f"c{number}", f"{text} Film {number}.", 1, 1)
        for number, text in enumerate(
            ["Pleural effusion."] * 3 + ["Possible pleural effusion."] * 3
        )
    ]
    make_task(workspace, tmp_path, rows)
    with open_objective(workspace, "tiny", "dev") as objective:
        ground = objective.ground
        protocol = ground.protocol.model_copy(
            update={"uncertain_answers": UncertainAnswers.EXCLUDED}
        )
        truth = ground.truth.copy()
        truth[:, ground.labels.index(EFFUSION)] = [1, 0, -1] * 2
        objective.ground = replace(ground, truth=truth, protocol=protocol)
        reader, places = ProposalReader(ground.version), np.arange(6)
        with dspy_search._program(objective, reader, (EFFUSION,), {}, places) as made:
            asked = [made.program.example("case", "", row) for row in range(6)]
            told = [made.program.module(case=one.case) for one in asked]
            right = list(map(made.program.is_right, asked, told))
    assert [one[EFFUSION] for one in told] == [
        *("1.0", "0.0", "open"),
        *("0.0", "0.0", "open"),
    ]
    assert right == [1, 0, 1, 0, 0, 1]


def test_what_dspy_asks_about_is_an_id_and_worth_points_or_a_value(improvable):
    """Of an exemplar the value decides; of a case the mean over what is decided."""
    one = Exemplar(text="Fluid is seen.", value=Value.ABSENT, evidence="Fluid")
    labels = (EFFUSION, "cardiomegaly")
    pool = {EFFUSION: (replace(one, value=Value.PRESENT), one)}
    with open_objective(improvable, "tiny", "dev") as objective:
        reader, places = ProposalReader(objective.ground.version), np.arange(4)
        with dspy_search._program(objective, reader, labels, pool, places) as made:
            program = made.program
            shown = program.example("exemplar", EFFUSION, 1)
            case = program.example("case", "", 3)
            assert (shown.case, case.case) == (f"exemplar 1 of {EFFUSION}", "case 3")
            assert program.labels_of(shown.case) == (EFFUSION,)
            assert program.labels_of(case.case) == labels
            right = [
                program.is_right(shown, {EFFUSION: said})
                for said in ("ABSENT", "PRESENT", "refused")
            ]
            assert right == [True, False, False]
            worth = [
                program.is_right(case, dict(zip(labels, said, strict=True)))
                for said in (
                    ("1.0", "0.0"),
                    ("1.0", "open"),
                    ("refused", "1.0"),
                    ("open", "open"),
                )
            ]
            assert worth == [0.5, 1.0, 0.5, 1.0]
            assert program.calls == 7
            full = dict.fromkeys(labels, "1.0")
            half = {**full, EFFUSION: "0.0"}
            assert program.is_right(case, half, trace=[]) is False
            assert program.is_right(case, full, trace=[]) is True
            assert program.calls == 7
