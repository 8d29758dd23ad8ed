"""The documents of a release say all that is recorded, and nothing that is not."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import yaml
from pydantic import ValidationError

from loop.core.errors import DataError
from loop.release.consistency import check_table
from loop.release.documents.checklist import (
    CHECKLISTS,
    FILLED,
    ChecklistItem,
    read_checklist,
)
from loop.release.documents.documents import render_documents
from loop.release.documents.parts import AUTHOR
from loop.release.release_json import format_facts
from loop.release.statement import Approval
from tests.release.documents.example import (
    changed,
    cohort,
    digest,
    full_facts,
    minimal_facts,
    sparse_facts,
    spoiled,
)
from tests.release.small import typed

FILES = {
    *("card.md", "card.html", "evaluation.csv"),
    *("mi-clear-llm.md", "tripod-llm.md", "change-record.md"),
}
VOID = {"meta", "br"}
FORBIDDEN = ("complian", "validat", "certified by", "fda-approved", "guarantee")


class Outline(HTMLParser):
    """Collects tags and text, and checks that tags are balanced."""

    def __init__(self):
        """Start empty."""
        super().__init__()
        self.open, self.tags, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        """Note the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Note a tag that closes itself."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """Check that the innermost open tag is closed."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Collect visible text."""
        if not self.open or self.open[-1] not in ("style", "title"):
            self.words.append(data)


def documents(facts):
    """Return every document as text."""
    return {name: raw.decode() for name, raw in render_documents(typed(facts)).items()}


def outline(page):
    """Parse a page."""
    parsed = Outline()
    parsed.feed(page)
    assert parsed.open == []
    return parsed


def paths(value, before=()):
    """Yield the place of every value of JSON data; of a list only the first."""
    if before:
        yield before
    if isinstance(value, dict):
        for key, one in value.items():
            yield from paths(one, (*before, key))
    elif isinstance(value, list) and value:
        yield from paths(value[0], (*before, 0))


def at(facts, path):
    """Return what stands at a place."""
    for step in path:
        facts = facts[step]
    return facts


def test_examples_are_what_a_release_holds():
    """These tests say something only of facts that `verify` would read."""
    for facts in (full_facts(), minimal_facts()):
        assert json.loads(format_facts(typed(facts)))["format"] == "ranloop-release/1"


@pytest.mark.parametrize("make", [full_facts, minimal_facts])
def test_same_facts_give_the_same_bytes(make):
    """A release is signed over these bytes; they depend on nothing else."""
    first = render_documents(typed(make()))
    reordered = json.loads(json.dumps(make()))
    assert set(first) == FILES
    assert first == render_documents(typed(reordered))
    assert all(b"\r" not in raw for name, raw in first.items() if name[-3:] != "csv")


@pytest.mark.parametrize("make", [full_facts, minimal_facts])
def test_a_fact_that_is_not_known_is_never_printed_as_none(make):
    """Null is a word of files, not of documents."""
    for name, text in documents(make()).items():
        assert not re.search(r"\b(None|nan|null|True|False)\b", text.split("---")[-1])
        assert not re.search(r"(?m)^: |[^|]{2}\|\|[^|]", text), name


def allowed(facts, path, value):
    """Return the facts with `value` at `path`, or None where the form forbids it."""
    try:
        return json.loads(format_facts(typed(changed(facts, path, value))))
    except DataError:
        return None


@pytest.mark.slow
def test_no_null_and_no_empty_list_breaks_a_document():
    """What may be missing is the word of the form that `verify` reads."""
    whole = full_facts()
    empties = [
        (path, empty)
        for path in paths(whole)
        for empty in (None, [], {})
        if empty is None or type(empty) is type(at(whole, path))
    ]
    tried = 0
    for path, empty in empties:
        facts = allowed(whole, path, empty)
        if facts is not None:
            tried += 1
            for name, text in documents(facts).items():
                assert not re.search(r"\bNone\b|[^|]\|\|[^|]", text), (name, path)
    assert tried > 60


def test_empty_words_break_no_document():
    """A reason or a licence may be empty; all of them at once here."""
    facts = full_facts()
    for path in paths(facts):
        if isinstance(at(facts, path), str):
            facts = allowed(facts, path, "") or facts
    for name, text in documents(facts).items():
        assert not re.search(r"(?m)\bNone\b|: $|, ,|; ;", text), name


def test_override_stands_above_everything():
    """Who reads only the first line of a card must read the override."""
    card, page = (documents(full_facts())[name] for name in ("card.md", "card.html"))
    assert card.index("**OVERRIDE**") < card.index("Verdict of the claim")
    assert "FAIL, overridden" in card
    visible = " ".join(outline(page).words)
    assert visible.index("OVERRIDE") < visible.index("Release card")
    assert "atelectasis is not used by the registry" in visible


def test_no_override_no_banner():
    """A banner that always stands there is not read."""
    facts = changed(full_facts(), ("frozen", "override"), "")
    texts = documents(facts)
    assert "OVERRIDE" not in texts["card.md"]
    assert "verridden" not in texts["card.html"]


def test_development_data_only_is_said_with_the_corrected_estimate():
    """Without a holdout the number a reader takes away is the corrected one."""
    facts = changed(full_facts(), ("development_only",), True)
    card, page = (documents(facts)[name] for name in ("card.md", "card.html"))
    assert "> **DEVELOPMENT DATA ONLY**" in card
    assert "corrected for the choice among 12 versions tried: 0.897" in card
    assert "<strong>DEVELOPMENT DATA ONLY</strong>" in page
    assert "DEVELOPMENT DATA ONLY" in documents(facts)["mi-clear-llm.md"]


def test_development_data_only_without_an_estimate_says_so():
    """No estimate is better than none said."""
    card = documents(minimal_facts())["card.md"]
    assert "No estimate corrected for the choice of a version is known." in card


def test_synthetic_cohorts_are_said_on_top():
    """Numbers of made-up texts must not be taken for others."""
    facts = full_facts()
    facts["cohorts"] = [cohort("demo", "dev", "b") | {"synthetic": True}]
    assert "> **SYNTHETIC COHORT**" in documents(facts)["card.md"]


def test_what_got_worse_is_the_first_section():
    """What a reader needs most is not hidden behind what went well."""
    texts = documents(full_facts())
    titles = re.findall(r"(?m)^## (.*)$", texts["card.md"])
    assert titles[0] == "What got worse"
    row = next(line for line in texts["card.md"].splitlines() if "0.871" in line)
    assert row == "| Atelectasis | 0.871 | 0.845 | 9 | 2 | \\[−0.043, −0.002\\] |"
    assert row in texts["change-record.md"]
    assert 'class="alarm" aria-labelledby="worse"' in texts["card.html"]


@pytest.mark.parametrize(
    ("harm", "worse", "alarm", "said"),
    [
        (None, True, True, ""),
        (None, False, False, ""),
        ([], True, False, "no evidence that any label got worse"),
        ([], False, False, "no evidence that any label got worse"),
        (["edema", "mass"], True, True, "evidence of harm: edema; mass"),
        (["edema"], False, True, "evidence of harm: edema"),
    ],
)
def test_what_several_draws_show_decides_whether_to_be_alarmed(
    harm, worse, alarm, said
):
    """With several draws only evidence of harm does; with one, any loss does."""
    facts = full_facts()
    facts["change"] |= {"harm": harm} | ({} if worse else {"worse": []})
    texts = documents(facts)
    assert ('class="alarm" aria-labelledby="worse"' in texts["card.html"]) is alarm
    shown = re.findall(r"Over all draws there is (.*?)\.", texts["card.md"])
    assert shown == ([said] if said else [])


def test_a_label_that_nobody_can_judge_is_shown_and_not_claimed():
    """With each reason; every other label is claimed."""
    facts = full_facts()
    gate = facts["evaluations"][1]["labels"][4]["gate"]
    gate |= {"verdict": "NOT COMPARABLE", "reasons": ["too rare", "read otherwise"]}
    for kind, of in (
        ("all", "every label that the reference can judge"),
        ("subset", "each label it is shown for"),
    ):
        facts["claim"]["kind"] = kind
        card = documents(facts)["card.md"]
        assert f"Claim: on holdout, {of} reaches accuracy 0.95" in card
        line = "Fracture: shown, not part of the claim: too rare; read otherwise."
        assert f"\n{line}\n" in card
    facts["evaluations"] = facts["evaluations"][:1]
    facts["claim"] |= {"kind": "all", "cohort": "dev"}
    card = documents(facts)["card.md"]
    assert "Claim: on dev, every label reaches accuracy 0.95" in card
    assert "not part of the claim" not in card


def test_nothing_worse_is_told_from_nothing_compared():
    """An empty list of losses is no proof that nothing was lost."""
    facts = changed(full_facts(), ("change", "worse"), [])
    assert (
        "No label lost more right answers than it gained" in documents(facts)["card.md"]
    )
    for name in ("improved", "unchanged"):
        facts = changed(facts, ("change", name), [])
    card = documents(facts)["card.md"]
    assert "what got worse is not known" in card
    assert "this release follows no other" in documents(minimal_facts())["card.md"]


def test_the_cohort_of_the_claim_comes_first():
    """The holdout's table is the evidence; the development table is beside it."""
    card = documents(full_facts())["card.md"]
    assert card.index("## Results on holdout") < card.index("## Results on dev")


@pytest.mark.parametrize(
    "expected",
    [
        "| Pneumothorax | PASS | 0.994 \\[0.977, 0.999\\] | 0.976 \\[0.871, 0.999\\]",
        "| Fracture | INSUFFICIENT | 1.000 \\[0.988, 1.000\\] | – | 1.000",
        "| Pneumothorax | 314 | 40 | 1 | 1 | 272 | 0.976 | 2 | 3 | 1 | 4 |",
        "| Pneumothorax | PASS | &lt; 0.001 | 0.001 | yes |",
        "- Macro-F1, corrected for the choice: 0.897, interval 0.851 to 0.933",
        "| Atelectasis | 0.960 | 0.930 | −0.030 \\[−0.060, 0.000\\] |",
        "| 2 of 3 | 2026-03-15T11:59:00Z | Dr C. Approver | extractor@v7 |",
        "The holdout was opened 2 times.",
        "| parameter | temperature | 0 |",
        "| parameter | repeat | not set |",
        "| Dr C. Approver | approver | approval | 2026-03-15T12:00:00Z |",
        f"- Digest of the engine: `{digest('d')}`",
        f"- holdout: reference digest: `{digest('e')}`",
        f"- Head of the ledger: `{digest('5')}`",
        "ranloop verify extractor-v7 --key KEY.json",
    ],
)
def test_card_holds(expected):
    """Each of these is asked for by somebody who has to decide on the release."""
    assert expected in documents(full_facts())["card.md"]


def test_every_note_of_an_evaluation_is_in_the_card():
    """It says what the numbers beside it do not count."""
    notes = ["One reader saw no images.", "The texts of 3 cases are empty."]
    facts = changed(full_facts(), ("evaluations", 1, "notes"), notes)
    before, after = (documents(one)["card.md"] for one in (full_facts(), facts))
    assert [before.count(note) for note in notes] == [0, 0]
    assert [after.count(note) for note in notes] == [1, 1]


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (["dev"], "There is no holdout."),
        (["dev", "holdout"], "The holdout was not opened."),
        ([], "There is no holdout."),
    ],
)
def test_a_holdout_that_was_not_opened_is_told_from_none(roles, said):
    """One can still be opened, and the other never was there."""
    facts = changed(full_facts(), ("openings",), [])
    facts["cohorts"] = [cohort(role, role, "b") for role in roles]
    card = documents(facts)["card.md"]
    assert card.split("## Openings of the holdout\n\n")[1].startswith(said)


def test_a_claim_on_some_labels_names_them_beside_the_verdict():
    """A claim on some labels may hold while most labels lack evidence."""
    said = "It is shown for 1 of 3 labels: Pneumothorax."
    card, page = (documents(full_facts())[name] for name in ("card.md", "card.html"))
    assert card.index(said) < card.index("## What got worse")
    assert page.index(said) < page.index('class="figures"')
    assert "It is shown for" not in documents(minimal_facts())["card.md"]


def test_page_and_text_say_the_same():
    """The page is for reading and the text for comparing: one content."""
    texts = documents(full_facts())
    visible = " ".join(" ".join(outline(texts["card.html"]).words).split())
    for title in re.findall(r"(?m)^## (.*)$", texts["card.md"]):
        assert title in visible
    for number in ("0.994", "[0.977, 0.999]", "272", "0.897", digest("e")):
        assert number in visible


def test_yaml_header_is_data():
    """A registry of models reads the head of a card."""
    facts = spoiled(typed(full_facts()), "a: '\"\n---\x85\u2028# ")
    header = documents(facts)["card.md"].split("\n---\n")[0]
    read = yaml.safe_load(header)
    assert read["release"] == facts.release.name
    assert read["override"] == facts.frozen.override
    assert read["development_data_only"] is False


@pytest.mark.parametrize(("name", "items"), [("mi-clear-llm", 6), ("tripod-llm", 49)])
@pytest.mark.parametrize("make", [full_facts, minimal_facts])
def test_a_checklist_fills_each_item_or_leaves_it_to_the_author(name, items, make):
    """Nothing is invented: an item without a source is the author's."""
    text = documents(make())[f"{name}.md"]
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) == items
    for _, _, filled, source, author in rows:
        assert (filled == "–") == (source == "–")
        assert filled != "–" or AUTHOR in author


def test_each_source_of_a_checklist_is_named_by_an_item():
    """What no item names any more is dead, and a name that is unknown is refused."""
    items = [
        item
        for name in CHECKLISTS
        for area in read_checklist(name).items.values()
        for item in area
    ]
    named = {one for item in items for one in item.filled if isinstance(one, str)}
    assert named == FILLED.keys()
    with pytest.raises(ValidationError, match="use one of"):
        ChecklistItem(number="1", title="the model", filled=["modell"])


def test_tripod_items_are_numbered_as_published():
    """19 main items in order, and their letters without a gap."""
    text = documents(full_facts())["tripod-llm.md"]
    numbers = re.findall(r"(?m)^\| (\d+)([a-z]?) ", text)
    mains = list(dict.fromkeys(int(main) for main, _ in numbers))
    assert mains == list(range(1, 20))
    for (main, letter), (following, after) in pairwise(numbers):
        if main == following:
            assert ord(after) == ord(letter) + 1
        else:
            assert after in ("", "a")
    assert ("19", "g") in numbers


def test_the_embedded_engine_is_called_no_language_model():
    """A checklist for language models must not pass rules off as one."""
    texts = documents(minimal_facts())
    for name in ("card.md", "mi-clear-llm.md", "tripod-llm.md"):
        assert "no language model" in texts[name]
        assert "no language model" not in documents(full_facts())[name]


def test_the_change_record_has_the_parts_of_a_change_control_plan():
    """Its reader looks for these parts in this order, and for the way back."""
    text = documents(full_facts())["change-record.md"]
    wanted = (
        *("Identity", "Description of modifications", "Modification protocol"),
        *("Evidence", "Impact assessment", "What got worse", "Rollback", "Signatures"),
    )
    assert tuple(re.findall(r"(?m)^## (.*)$", text)) == wanted
    assert "R1 (terms and synonyms), R2 (clarification of vague wording)" in text
    assert "| term: bibasal collapse; exclusion: post-operative |" in text
    assert "- Target: extractor-v6" in text


@pytest.mark.parametrize("make", [full_facts, minimal_facts])
def test_no_document_promises_what_a_tool_cannot(make):
    """The tool supports and helps prepare; only a site can do more.

    What a publication asks for is its own words, and no promise.
    """
    published = [
        one.title
        for name in CHECKLISTS
        for items in read_checklist(name).items.values()
        for one in items
    ]
    for name, text in documents(make()).items():
        for words in published:
            text = text.replace(words, "")
        for word in FORBIDDEN:
            assert word not in text.lower(), name


def test_the_table_says_what_release_json_says():
    """`verify` recomputes it cell by cell."""
    facts = full_facts()
    raw = render_documents(typed(facts))["evaluation.csv"]
    found = check_table(raw, typed(facts))
    assert found.holds, found.detail
    rows = list(csv.DictReader(io.StringIO(raw.decode(), newline="")))
    assert [row["cohort"] for row in rows] == ["dev"] * 5 + ["holdout"] * 5
    assert float(rows[0]["accuracy"]) == 312 / 314
    assert rows[4]["sensitivity"] == rows[4]["f1"] == ""
    assert rows[5]["p_holm"] == "0.001" and rows[0]["p_holm"] == ""


def test_a_changed_count_is_seen_in_the_table():
    """The check above would be worth nothing if it held for other facts too."""
    raw = render_documents(typed(full_facts()))["evaluation.csv"]
    path = ("evaluations", 1, "labels", 2, "tp")
    assert not check_table(raw, typed(changed(full_facts(), path, 61))).holds


def test_a_release_without_evaluations_has_a_table_with_a_header_only():
    """A missing table would look like a lost file."""
    raw = render_documents(typed(minimal_facts()))["evaluation.csv"]
    assert raw.count(b"\r\n") == 1
    assert check_table(raw, typed(minimal_facts())).holds


def test_answers_that_nobody_compared_are_not_counted_as_unchanged():
    """None improved and none got worse would be a finding; nobody looked."""
    facts = full_facts()
    facts["change"] |= {"improved": [], "unchanged": [], "worse": []}
    texts = documents(facts)
    record = texts["change-record.md"]
    assert "Labels improved, unchanged or worse: not compared" in record
    assert "Labels worse: none" not in record
    assert f"compared with {facts['change']['from_ref']}" not in texts["tripod-llm.md"]
    assert "0 labels improved" not in texts["tripod-llm.md"]


def test_everyone_who_signs_is_named_with_what_it_means():
    """A signature shows name, role, meaning and time, on paper too."""
    facts = full_facts()
    when = facts["frozen"]["time"]
    approvals = (
        Approval(digest("1"), "A. Approver", "approver", "approval", when),
        Approval(digest("2"), "R. Reviewer", "reviewer", "review", when),
    )
    rendered = render_documents(typed(facts), approvals)
    for name in ("card.md", "change-record.md"):
        text = rendered[name].decode()
        assert f"| A. Approver | approver | approval | {when} |" in text
        assert f"| R. Reviewer | reviewer | review | {when} |" in text


def test_verdicts_are_not_said_to_be_of_clinicians():
    """The ledger has who gave them, and not what they are."""
    text = documents(full_facts())["mi-clear-llm.md"]
    assert " verdicts" in text
    assert "of clinicians" not in text


def test_outcomes_are_in_one_order_however_they_were_kept():
    """The kept result of a holdout has its keys sorted."""
    facts = full_facts()
    facts["evaluations"][0]["statuses"] = {
        "answered": 1340,
        "engine_failed": 0,
        "unparsed": 7,
    }
    card = documents(facts)["card.md"]
    assert "1,340 answered, 7 unparsed, 0 engine failed" in card


def test_an_estimate_without_limits_has_no_dash_for_them():
    """A lone dash reads like a minus."""
    facts = changed(full_facts(), ("development_only",), True)
    facts["selection"] |= {"low": None, "high": None}
    assert "12 versions tried: 0.897 (apparent" in documents(facts)["card.md"]


def test_small_p_values_beside_a_claim_that_does_not_hold_are_explained():
    """By the rule point nothing is shown, and a column of small p says otherwise."""
    facts = full_facts()
    facts["protocol"]["content"] |= {"rule": "point"}
    card = documents(facts)["card.md"]
    assert "against an accuracy of at most 0.95" in card
    assert "By the rule point the claim holds for no label" in card


def test_every_name_of_a_section_is_there_once():
    """What a section is labelled by is found, also with results on two cohorts."""
    tags = outline(documents(full_facts())["card.html"]).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    used = [attrs["aria-labelledby"] for _, attrs in tags if "aria-labelledby" in attrs]
    assert len(ids) == len(set(ids))
    assert used and set(used) <= set(ids)


def item(text, number):
    """Return the row of an item of a checklist."""
    return next(x for x in text.splitlines() if x.startswith(f"| {number} |"))


def test_the_checklists_say_what_stood_against_a_release():
    """A holdout that was measured on before is no independent test data."""
    facts = full_facts()
    seen = "the cases of far are no longer unseen: versions were measured on them"
    facts["frozen"] |= {"objections": [seen], "override": "a worked example"}
    texts = documents(facts)
    rows = [item(texts["mi-clear-llm.md"], 6)]
    rows += [item(texts["tripod-llm.md"], one) for one in ("17", "19b")]
    for row in rows:
        assert f"against it stood: {seen}" in row
        assert "a worked example" in row
    facts["frozen"] |= {"objections": [], "override": ""}
    assert "against it stood" not in documents(facts)["mi-clear-llm.md"]


def test_the_checklists_say_that_a_history_was_replayed():
    """Nobody judges a dozen cases and commits a version within half a minute."""
    facts = full_facts()
    said = "a history was replayed or written by a program"
    assert said not in documents(facts)["mi-clear-llm.md"]
    first, second = (one["time"] for one in facts["history"][:2])
    facts["history"][1]["time"] = first[:-3] + "59Z"
    texts = documents(facts)
    ref = facts["history"][1]["ref"]
    for row in (item(texts["mi-clear-llm.md"], 5), item(texts["tripod-llm.md"], "9a")):
        assert f"{ref}: committed at most 59 seconds after the version before" in row
        assert said in row
    facts["history"][1]["time"] = second[:8] + "99T00:00:00Z"
    assert said not in documents(facts)["mi-clear-llm.md"]


@pytest.mark.parametrize(
    ("minute", "longest"),
    [("08:00:00", "0 seconds"), ("08:00:59", "59 seconds"), ("08:01:00", None),
     ("07:59:59", None)],
)  # fmt: skip
def test_a_minute_between_two_versions_may_be_one_of_work(minute, longest):
    """A second less is not; a clock that was set back says nothing."""
    facts = full_facts()
    day = facts["history"][0]["time"][:11]
    facts["history"][0]["time"] = f"{day}08:00:00Z"
    facts["history"][1]["time"] = f"{day}{minute}Z"
    text = documents(facts)["mi-clear-llm.md"]
    assert ("a history was replayed" in text) is (longest is not None)
    assert longest is None or f"committed at most {longest} after" in text


def test_a_kept_draft_is_no_version_and_its_verdicts_count_once():
    """A draft that was edited before its commit stands in the history beside it."""
    facts = full_facts()
    last = facts["history"][-1]
    whole = item(documents(facts)["mi-clear-llm.md"], 5)
    draft = last | {"ref": "x@draft:d1", "status": "draft", "time": last["time"]}
    facts["history"].insert(-1, draft)
    texts = documents(facts)
    for row in (item(texts["mi-clear-llm.md"], 5), item(texts["tripod-llm.md"], "9a")):
        assert "; 1 draft beside them, not committed" in row
        assert "replayed" not in row
    found = item(texts["mi-clear-llm.md"], 5)
    assert found.replace("; 1 draft beside them, not committed", "") == whole


def test_the_change_record_says_whether_the_engine_changed_too():
    """The answers of a release are those of a prompt and of an engine."""
    facts = full_facts()
    name, engine = facts["supersedes"]["name"], facts["engine"]
    said = documents(facts)["change-record.md"]
    assert f"- Engine: {engine['name']}; that of {name} is not known here\n" in said
    facts["supersedes"]["engine"] = engine
    said = documents(facts)["change-record.md"]
    assert f"- Engine: as in {name}: {engine['name']}\n" in said
    older = {
        "name": engine["name"],
        "parameters": engine["parameters"] | {"temperature": 0.5},
        "identity": engine["identity"] | {"gone": "yes"},
        "digest": "0" * 64,
    }
    facts["supersedes"]["engine"] = older
    said = documents(facts)["change-record.md"]
    changes = "temperature 0 (was 0.5); gone not set (was yes)"
    assert f"- Engine: not as in {name}: {changes}\n" in said


def test_the_checklists_do_not_pass_verdicts_off_as_those_of_clinicians():
    """The release does not record who gave them; the author must say it."""
    texts = documents(full_facts())
    for row in (item(texts["mi-clear-llm.md"], 5), item(texts["tripod-llm.md"], "9a")):
        assert "who gave them, in which role, is not in release.json" in row
        assert f"{AUTHOR}: " in row and "who gave the verdicts" in row


def test_roles_that_were_recorded_are_told_with_what_they_are():
    """A role in the workbench is no profession, and the rest is not recorded."""
    facts = full_facts()
    assert "Given by" not in documents(facts)["card.md"]
    facts["history"][5]["verdict_roles"] = {"reviewer and editor": 6}
    facts["history"][6]["verdict_roles"] = {"editor": 2, "reviewer": 4}
    texts = documents(facts)
    said = (
        "28 verdicts, by role of those who gave them: editor 2, reviewer 4, reviewer "
        "and editor 6, not recorded 16 (roles in the workbench, as recorded at the "
        "commit, not professions)"
    )
    for row in (item(texts["mi-clear-llm.md"], 5), item(texts["tripod-llm.md"], "9a")):
        assert said in row and "is not in release.json" not in row
        assert f"{AUTHOR}: " in row and "who gave the verdicts" in row
    rows = [x for x in texts["card.md"].splitlines() if x.startswith("| extractor@v")]
    history = [row for row in rows if "| Dr B. Writer | step " in row]
    assert "| 7 | editor 2, reviewer 4, not recorded 1 |" in history[6]
    assert "| 5 | not recorded 5 |" in history[4]
    assert "roles in the workbench, as recorded at the commit" in texts["card.md"]
    facts["history"][4]["verdict_roles"] = {"editor": 6}
    texts = documents(facts)
    assert "| 5 | editor 6 |" in texts["card.md"]
    more = "editor 8, reviewer 4, reviewer and editor 6, not recorded 11 (roles"
    assert more in item(texts["mi-clear-llm.md"], 5)


def test_a_pass_of_a_gate_stands_beside_the_claim_and_is_told_apart():
    """PASS on one page and "Claim holds: no" on the other looked like an error."""
    texts = documents(full_facts())
    assert (
        "| Label | Gate | p of accuracy (exact) | p (Holm) | Claim holds |"
        in (texts["card.md"])
    )
    apart = "a label may pass while the claim does not hold for it"
    assert apart in texts["card.md"]
    assert apart in item(texts["tripod-llm.md"], "17")


def test_what_got_worse_says_on_which_cases():
    """A reader of the holdout's numbers must not take them for these."""
    facts = full_facts()
    (name,) = (one["name"] for one in facts["cohorts"] if one["role"] == "dev")
    where = f"on the development cohort {name}, not on the holdout"
    for file in ("card.md", "change-record.md"):
        assert where in documents(facts)[file]
    assert where in item(documents(facts)["tripod-llm.md"], "18")
    facts["change"]["worse"] = []
    assert where in documents(facts)["card.md"]


def test_items_of_mi_clear_llm_are_called_as_published():
    """An editor looks for the names that the checklist has."""
    text = documents(full_facts())["mi-clear-llm.md"]
    assert "| 2 | Stochasticity handling: how randomness" in text
    assert "An item is called as in the publication" in text


def test_items_of_tripod_llm_are_worded_as_published():
    """An editor compares number and wording; what an item is for belongs to it."""
    text = documents(full_facts())["tripod-llm.md"]
    assert "Items have the numbers and the words of the publication." in text
    for number, words in (
        ("6a", "Report the LLM name, version, and last date of training. |"),
        ("14e", "Provide details of the availability of the study data. |"),
    ):
        assert item(text, number).startswith(f"| {number} | {words}")
    scoped = " and thresholds identified. \\[C OF\\] |"
    assert scoped in item(text, "6e")


def test_what_an_item_is_filled_with_is_no_more_than_what_is_recorded():
    """Each part of a paper's checklist where little is known of a release."""
    facts = typed(sparse_facts())
    site = "Radiology department, general hospital"
    only, dev = "DEVELOPMENT DATA ONLY", f"dev (dev), {site}, 1 case, en, synthetic"
    tax = f"tax (taxonomy), {site}, 320 cases, en"
    macro = "macro-F1 0.912 [0.871, 0.944], labels:"
    assert {name: fill(facts).text for name, fill in FILLED.items()} == {
        "against": "against it stood: one thing; against it stood: another",
        "ceiling": "compared with readers on 1 label",
        "choice": "1 version tried",
        "claim": "claim on gone: FAIL",
        "comparison": "compared with extractor@v6",
        "compute": "1 token, Linux x86_64",
        "dates": "runs begun: dev 2026-03-14T10:10:00Z",
        "development": f"{dev}; {tax}",
        "excluded": "case-label pairs not scored: dev: 1,200 failed, 2 uncertain "
        "reference, 1 unparsed; far: none",
        "flow": "dev: 1 case, over 3 draws: 1,340 answered, 1 engine failed, 1 case of "
        "the cohort not run; far: 320 cases, 318 answered, 2 unparsed, 0 engine failed",
        "labels": "values of 1 label from clinical texts",
        "licences": "dev: not recorded; far: CC0; tax: not for redistribution",
        "limits": f"{only}; 1 label without a pass on dev",
        "lineage": "2 versions with reasons, by Dr A; 0 verdicts",
        "model": "openai:Qwen/Qwen3-14B; model Qwen/Qwen3-14B; server vllm 0.32; "
        f"digest {digest('d')}",
        "openings": "the holdout was opened 1 time: for extractor@v6 at "
        "2026-02-01T09:00:00Z",
        "performance": f"dev: {macro} 0 PASS, 1 FAIL, 0 INSUFFICIENT; far: {macro} "
        "1 PASS, 0 FAIL, 0 INSUFFICIENT",
        "positives": "positives on far: Mass 0 of 5",
        "protocol": "",
        "readers": "1 reader",
        "registration": "registered 2026-01-05T09:00:00Z, after a run it judges, "
        f"digest {digest('c')}",
        "separation": f"{only}: no holdout was opened; One; Two",
        "settings": "temperature 0; top_p 1; seed 7; repeat not set",
        "sources": f"{dev}; far (external), source not recorded, 320 cases, language "
        f"not recorded; {tax}",
        "structure": "one call per case and label; every call is a conversation of its "
        "own, with no earlier messages",
        "tool": "ranloop 0.1.0",
        "updating": "against extractor@v6: 2 labels improved, 0 unchanged, 1 worse, on "
        "the development cohort dev, not on the holdout",
        "wording": "as sent in rendered/, as templates in prompt/; digest "
        f"{digest('a')}",
    }
