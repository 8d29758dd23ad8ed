"""Pasted words that are kept: part of a draft, or a row that an import reads."""

import csv
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from loop.core.errors import ConflictError, DataError, OverlapError
from loop.core.records import Exemplar, Mark, Value
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import read_reference
from loop.prompts.catalog import read_version
from loop.review.revise import pasted
from loop.review.revise.check_record import recall_check
from loop.review.revise.draft_files import read_line
from loop.review.revise.edit import edit_draft
from loop.review.revise.pasted import find_synthetic, keep_case, keep_exemplar
from tests.review.revise.stepping import FLUID, begin, check

TEXT = "Blunting of the  left\nangle, no layering."


@pytest.fixture
def draft(setting, store):
    """Begin a draft that fixes four cases."""
    return begin(setting, store, FLUID).draft


def exemplar(setting, draft, text=TEXT, label="pleural_effusion", **more):
    """Keep an exemplar of a draft."""
    example = Exemplar(text=text, value=Value.PRESENT, **{"evidence": "", **more})
    return keep_exemplar(setting.workspace, draft.ref, label, example, setting.editor)


def case(setting, text=TEXT, label="pleural_effusion", value=Value.PRESENT, **how):
    """Keep a synthetic case of the prompt."""
    return keep_case(setting.workspace, "tiny", label, text, value, **how)


def rows(setting):
    """Return the table of synthetic cases."""
    path = find_synthetic(setting.workspace, "tiny")
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_words_become_an_exemplar_of_one_guide(setting, store, draft):
    """On one line, with what decides; a check made before is stale."""
    check(setting, store, draft)
    made = exemplar(setting, draft, evidence="left\nangle", why="seen on call")
    one_line = "Blunting of the left angle, no layering."
    assert made.draft.guide("pleural_effusion").exemplars == (
        Exemplar(
            text=one_line,
            value=Value.PRESENT,
            evidence="left angle",
            why="seen on call",
        ),
    )
    assert made.draft.guide("cardiomegaly") == draft.guide("cardiomegaly")
    assert read_version(setting.workspace, draft.ref).digest == made.draft.digest
    assert recall_check(setting.workspace, store, draft.ref).stale
    again = exemplar(setting, draft, "Small layer on the right.")
    found = again.draft.guide("pleural_effusion").exemplars
    assert [one.evidence for one in found] == [
        "left angle",
        "Small layer on the right.",
    ]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"text": " \n"}, "the text is empty"),
        ({"text": "x" * 1_000_001}, "the pasted text: a text of 1,000,001 characters"),
        ({"label": "edema"}, "does not ask about 'edema'"),
        ({"evidence": "right angle"}, "the evidence is not in the text"),
    ],
)
def test_an_exemplar_that_is_none_is_refused(setting, draft, how, said):
    """The draft stays as it was."""
    with pytest.raises(DataError, match=said):
        exemplar(setting, draft, **how)
    assert read_version(setting.workspace, draft.ref).digest == draft.digest


def test_an_exemplar_is_kept_once_and_only_in_a_draft(setting, draft):
    """Whatever its case and its spaces."""
    exemplar(setting, draft)
    with pytest.raises(DataError, match="is an exemplar of pleural_effusion in"):
        exemplar(setting, draft, TEXT.upper())
    with pytest.raises(DataError, match="is a committed version and stays as it is"):
        exemplar(setting, setting.tiny)


def test_words_of_a_holdout_are_kept_nowhere(setting, draft):
    """Neither whole nor in part in a prompt; whole nowhere."""
    words = "An unusual band of fluid tracks along the major fissure today."
    setting.add_cohort("hold", "holdout", [("h0", words, 1, 0)])
    for keep in (lambda: exemplar(setting, draft, words), lambda: case(setting, words)):
        with pytest.raises(DataError, match="case of holdout hold"):
            keep()
    with pytest.raises(OverlapError):
        exemplar(setting, draft, words.removesuffix(" today.") + " again.")
    assert not find_synthetic(setting.workspace, "tiny").exists()
    assert read_version(setting.workspace, draft.ref).digest == draft.digest


def test_who_edits_at_the_same_time_is_told(setting, draft, monkeypatch):
    """The guide is written over by nobody who has not seen it."""

    def meanwhile(*given, **how):
        monkeypatch.setattr(pasted, "edit_draft", edit_draft)
        exemplar(setting, draft, "Small layer on the right.")
        return edit_draft(*given, **how)

    monkeypatch.setattr(pasted, "edit_draft", meanwhile)
    with pytest.raises(ConflictError, match="edited the guide of pleural_effusion"):
        exemplar(setting, draft)
    now = read_line(setting.workspace, draft.ref).draft
    assert len(now.guide("pleural_effusion").exemplars) == 1


def test_a_synthetic_case_is_imported_with_what_is_right_about_it(setting):
    """The table is private, and one text is one row whatever is kept about it."""
    first = case(setting)
    assert (first.case_id, first.added) == ("synthetic-1", True)
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(first.path.parent.stat().st_mode) == 0o700
    chinese = case(setting, "左侧胸腔积液")
    assert chinese.case_id == "synthetic-2"
    other = case(setting, f" {TEXT} ", "cardiomegaly", Value.ABSENT)
    assert (other.case_id, other.added) == ("synthetic-1", False)
    case(setting, value=Value.UNCERTAIN)
    assert rows(setting) == [
        {
            "case_id": "synthetic-1",
            "language": "en",
            "text": TEXT,
            "pleural_effusion": "uncertain",
            "cardiomegaly": "absent",
        },
        {
            "case_id": "synthetic-2",
            "language": "zh",
            "text": "左侧胸腔积液",
            "pleural_effusion": "present",
            "cardiomegaly": "",
        },
    ]
    options = ImportOptions(name="made", role="dev", source="synthetic", licence="-")
    import_cohort(setting.workspace, first.path, options, actor=setting.editor)
    cohort = read_cohort(setting.workspace, "made")
    items = {one.id: one for one in iter_items(setting.workspace, cohort)}
    assert items["synthetic-2"].language == "zh"
    assert items["synthetic-1"].variables["text"] == TEXT
    reference = read_reference(setting.workspace, "made")
    assert reference.mark("synthetic-1", "pleural_effusion") is Mark.UNCERTAIN
    assert reference.mark("synthetic-2", "cardiomegaly") is Mark.MISSING


def test_a_language_that_is_named_is_kept_as_it_is(setting):
    """Of few words it can only be guessed."""
    case(setting, "Ergus.", language="de")
    assert rows(setting)[0]["language"] == "de"


def test_cases_kept_at_once_are_all_there(setting):
    """Two people keep words of one prompt: no row is lost, no id is given twice."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: case(setting, f"Layer number {n}."), range(24)))
    found = rows(setting)
    assert {one["text"] for one in found} == {f"Layer number {n}." for n in range(24)}
    assert len({one["case_id"] for one in found}) == 24


def test_a_table_that_is_something_else_is_not_written_over(setting):
    """Nor is anything kept under a label that nobody can ask for."""
    with pytest.raises(DataError, match="no label 'gout' that can be asked for"):
        case(setting, label="gout")
    path = find_synthetic(setting.workspace, "tiny")
    path.parent.mkdir()
    for text in ("a,b\n1,2\n", "case_id,language,text\n1,en\n"):
        path.write_text(text, "utf-8")
        with pytest.raises(DataError, match="begins with the columns case_id"):
            case(setting)
        assert path.read_text("utf-8") == text


def test_what_somebody_added_to_the_table_stays(setting):
    """A column of one's own, and what is right about a label that is gone."""
    path = case(setting).path
    lines = path.read_text("utf-8").splitlines()
    more = [f"{lines[0]},note,gout", *(f"{one},mine,absent" for one in lines[1:])]
    path.write_text("\n".join(more) + "\n", "utf-8")
    case(setting, "Clear.", "cardiomegaly", Value.ABSENT)
    first, second = rows(setting)
    assert (first["note"], first["gout"]) == ("mine", "absent")
    assert first["cardiomegaly"] == ""
    assert (second["note"], second["cardiomegaly"]) == ("", "absent")
