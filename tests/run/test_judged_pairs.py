"""A run of a prompt that judges pairs: asked with both texts, stored with errors."""

import json

import pytest

from loop.core.records import Completion, Guide, Item, Status
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.version import PromptVersion
from loop.run.execute import Work, execute
from loop.run.store import read_outcomes, read_values

CATEGORIES = ("false_finding", "omission")
GOOD = {
    "explanation": "One is missed.",
    "significant_errors": {"false_finding": [], "omission": ["left effusion"]},
    "insignificant_errors": {"false_finding": [], "omission": []},
    "matched_findings": ["normal heart"],
}
ANSWERS = {
    "json": json.dumps(GOOD),
    "sections": "[Explanation]: One is missed.\n[Clinically Significant Errors]:\n"
    "(b) Omitted: 1. left effusion\n[Clinically Insignificant Errors]: None\n"
    "[Matched Findings]: 1. normal heart",
    "cut": json.dumps(GOOD)[:-20],
    "long": Completion(json.dumps(GOOD), "length"),
}


class Judge:
    """Answers by the id of the pair; remembers what it was asked."""

    def __init__(self):
        self.asked = {}

    def identity(self):
        """Return the name."""
        return {"engine": "judge"}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            self.asked[prompt.item.id] = prompt
            answer = ANSWERS[prompt.item.id]
            yield (
                index,
                answer if isinstance(answer, Completion) else Completion(answer),
            )


@pytest.fixture
def judged(store, kit):
    """Return the record of a run over one pair for each answer, and its judge."""
    version = PromptVersion(
        name="judge",
        number=1,
        system="You compare reports.\n",
        user="{% for guide in guides %}{{ guide.label }}: {{ guide.definition }}\n"
        "{% endfor %}\nReference:\n{{ reference }}\nCandidate:\n{{ candidate }}\n",
        guides=tuple(
            Guide(label=one, name=one, definition="What it is.") for one in CATEGORIES
        ),
        contract="green_sections",
        inputs=("reference", "candidate"),
    )
    contract = get_contract(version.contract)
    items = [
        Item(
            id=name,
            variables={
                "reference": f"Small left effusion, {name}.",
                "candidate": f"{name}: normal heart.",
            },
        )
        for name in ANSWERS
    ]
    work = Work(
        items=items, plan=plan_prompts(version, contract.schema), contract=contract
    )
    judge = Judge()
    run = execute(kit.make_spec(), work, judge, store).run_id
    return store.find_runs(ids=[run])[0], judge


def test_both_texts_are_asked_about_in_their_order(judged):
    """As they stand, after everything that is the same for each pair."""
    prompt = judged[1].asked["json"]
    assert prompt.tail == (
        "Small left effusion, json.\nCandidate:\njson: normal heart.\n"
    )
    required = prompt.frame.schema["properties"]["significant_errors"]["required"]
    assert required == list(CATEGORIES)


def test_an_answer_in_either_form_is_stored_with_what_it_lists(store, judged):
    """And comes back from the store as it was read."""
    by_id = {one.item_id: one for one in read_outcomes(store, judged[0].id)}
    for name in ("json", "sections"):
        outcome = by_id[name]
        assert outcome.status is Status.ANSWERED
        (missed,) = outcome.fields["significant.omission"].entries
        assert missed.words == "left effusion"
        assert [span.data for span in missed.spans] == [[6, 19, "reference"]]
        assert outcome.fields["matched"].value == 1
    assert by_id["json"].repairs == ()
    values = {one.item_id: one.values for one in read_values(store, judged[0])}
    assert values["json"] == values["sections"]
    assert values["json"]["significant.omission"] == 1


def test_what_was_cut_off_is_unparsed_and_has_no_score(store, judged):
    """Whatever its first words say, and without a word of the reports."""
    by_id = {one.item_id: one for one in read_outcomes(store, judged[0].id)}
    for name in ("cut", "long"):
        assert by_id[name].status is Status.UNPARSED
        assert by_id[name].fields == {}
        assert "effusion" not in by_id[name].problem
