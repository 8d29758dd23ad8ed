"""Judges that answer as they are told, and pairs for them."""

import json

from loop.core.records import Completion
from loop.engines import base

REFERENCES = {
    "a": "Small left pleural effusion. No pneumothorax.",
    "b": "Cardiomegaly with mild pulmonary edema.",
    "c": "The lungs are clear. Normal heart.",
    "d": "Right upper lobe mass.",
}
CANDIDATES = {
    "a": "Small right pleural effusion. No pneumothorax.",
    "b": "Cardiomegaly.",
    "c": "The lungs are clear. Normal heart.",
    "d": "",
}


def errors(*said, matched=1, **more):
    """Return an answer of the contract ``error_list``; what is said is a category."""
    listed = [
        {
            "category": name,
            "significant": significant,
            "reference": "",
            "candidate": "",
            "why": f"error {number}",
        }
        for number, (name, significant) in enumerate(said)
    ]
    return json.dumps({"errors": listed, "matched_findings": matched, **more})


class ToldJudge:
    """Answers by the candidate's text; remembers what it was asked."""

    def __init__(self, answers, asked, model=""):
        self.answers, self.asked, self.model = answers, asked, model

    def identity(self):
        """Return the model: two with one name are the same engine."""
        return {"engine": "told", "model": self.model}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            candidate = prompt.item.variables["candidate"]
            self.asked.append(candidate)
            answer = self.answers.get(candidate, errors())
            known = isinstance(answer, Completion)
            yield index, answer if known else Completion(answer)


def tell(monkeypatch, answers):
    """Register the engine ``told`` for one test, and return what it is asked."""
    asked = []
    monkeypatch.setitem(
        base._FACTORIES, "told", lambda model, _: ToldJudge(answers, asked, model)
    )
    return asked
