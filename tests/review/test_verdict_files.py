"""Verdict files: pleasant to write, strict about what they mean, read back equal."""

import csv
import io
import json
import textwrap
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.errors import DataError, LoopError, UnknownLabelError
from loop.core.records import Clarification, ErrorWeight, Exemplar, Value
from loop.labels.taxonomy import read_taxonomy
from loop.review import verdict_files
from loop.review.status import KeptVerdict, VerdictState, read_kept
from loop.review.submit import VerdictContext, load_verdicts
from loop.review.verdict import (
    Action,
    Context,
    Edits,
    ErrorVerdict,
    Judgement,
    Severity,
    Verdict,
    check_verdicts,
)
from loop.review.verdict_files import (
    ImportDefaults,
    VerdictsDryRun,
    dry_run_file,
    read_verdicts,
    take_file,
    verdicts_file,
    verdicts_table,
)
from loop.run.task import run_prompt
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.stepping import FLUID, begin, overtake
from tests.review.scenes import MADE_ON, verdict


def read(tmp_path, text, name="verdicts.yaml"):
    """Return the verdicts of a file with this text."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_verdicts(path, reviewer="Dr A. Example").verdicts


def one(tmp_path, lines):
    """Return the only verdict of a file; a judgement is given in the header."""
    body = "\n".join(f"  {line}" for line in lines.strip().splitlines())
    (verdict,) = read(
        tmp_path, f"judgement: model_wrong\nverdicts:\n-\n{body}\n  comment: general\n"
    )
    return verdict


def test_header_values_hold_for_every_verdict_that_says_nothing_else(tmp_path):
    """A clinician writes name and judgement once."""
    first, second = read(
        tmp_path,
        "reviewer: Dr B. Example\njudgement: guideline_ambiguous\nseverity: minor\n"
        "verdicts:\n"
        "- {case_id: a1, label: edema, terms: wet lungs}\n"
        "- {case_id: a2, label: edema, severity: major, judgement: model_wrong}\n",
    )
    assert (first.judgement, first.severity) == (
        Judgement.GUIDELINE_AMBIGUOUS,
        Severity.MINOR,
    )
    assert (second.judgement, second.severity) == (
        Judgement.MODEL_WRONG,
        Severity.MAJOR,
    )
    assert first.reviewer == "Dr B. Example"


def test_severity_and_context_may_be_left_out(tmp_path):
    """Nobody chose them, so that nothing is kept of them; empty counts as left out."""
    verdicts = read(
        tmp_path,
        "judgement: model_wrong\nverdicts:\n- {case_id: a1, label: edema}\n"
        "- {case_id: a2, label: edema, severity: '', context: ''}\n",
    )
    assert {(one.severity, one.context) for one in verdicts} == {(None, None)}


def test_one_value_may_stand_where_a_list_is_meant(tmp_path):
    """``terms: ptx`` and ``terms: [ptx]`` mean the same."""
    listed = one(tmp_path, "label: pneumothorax\nterms: [ptx]\ncases: [7, b]")
    single = one(tmp_path, "label: pneumothorax\nterm: ptx\ncase_id: 7")
    assert listed.edits == single.edits
    assert listed.case_ids == ("7", "b")
    assert single.case_ids == ("7",)


def test_one_verdict_may_carry_many_edits(tmp_path):
    """A round of a hundred actions must not need a hundred entries."""
    edits = one(
        tmp_path,
        """
label: pleural_effusion
terms: [pleural fluid, costophrenic ... blunted]
exclusions: [pericardial effusion]
clarifications:
- {phrase: blunted angle, value: uncertain, note: Alone it decides nothing.}
exemplars:
- {text: Fluid layers., value: present, evidence: Fluid}
implies: lung_opacity
remove_terms: [effusion]
""",
    ).edits
    assert edits.count == 7
    assert edits.clarifications[0].note == "Alone it decides nothing."
    assert edits.implies == ("lung_opacity",)


@pytest.mark.parametrize(
    ("lines", "kind", "rows"),
    [
        ("action: add_term\nterms: [a b]", "terms", ("a b",)),
        ("action: add_exclusion\nexclusion: a b", "exclusions", ("a b",)),
        ("action: add_exclusion\nphrase: a b", "exclusions", ("a b",)),
        (
            "action: clarify\nphrase: a b\nvalue: absent",
            "clarifications",
            (Clarification(phrase="a b", value=Value.ABSENT),),
        ),
        (
            "action: add_exemplar\nexemplar: {text: a b, value: present, evidence: b}",
            "exemplars",
            (Exemplar(text="a b", value=Value.PRESENT, evidence="b"),),
        ),
        ("action: add_implication\nimplies: edema", "implies", ("edema",)),
        ("action: remove_term\nterm: a b", "remove_terms", ("a b",)),
        ("action: remove_exclusion\nexclusions: a", "remove_exclusions", ("a",)),
        ("action: remove_clarification\nphrase: a", "remove_clarifications", ("a",)),
    ],
)
def test_an_action_may_be_named(tmp_path, lines, kind, rows):
    """The form with ``action`` says the same as the content alone."""
    verdict = one(tmp_path, f"label: edema\n{lines}")
    assert getattr(verdict.edits, kind) == rows
    assert verdict.edits.count == 1


def test_the_example_in_the_manual_is_a_verdict_file(tmp_path):
    """What the module shows must work as it stands."""
    path = tmp_path / "example.yaml"
    labels, judge = (
        part.split("\n\n    ")[-1].split("\n\nIn a CSV")[0].split("\n\nA verdict")[0]
        for part in verdict_files.__doc__.split("::\n")[1:]
    )
    path.write_text(textwrap.dedent(labels))
    verdicts, prompt, _, cohort = read_verdicts(path)
    assert (prompt, cohort) == ("extractor@v1", "dev")
    assert [verdict.edits.count for verdict in verdicts] == [6, 0]
    path.write_text("verdicts:\n" + textwrap.dedent(judge))
    (verdict,) = read_verdicts(path).verdicts
    assert (verdict.edits.count, verdict.correct_counts) == (1, (0, 1))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("label: edema\naction: add_term", "action add_term needs terms"),
        ("label: edema\naction: none\nterms: a", "action none, but terms given"),
        ("label: edema\naction: explode", "action 'explode' is none of"),
        ("label: edema\ncase: a\ncases: b", "are the same thing"),
        ("label: edema\nanchor: true", "anchor needs case_id"),
        ("label: edema\nverdict: wrong", "verdict: there is no such field"),
        ("terms: a", "label: missing"),
        ("label: edema\nphrase: a", "value: missing"),
        (
            "label: edema\njudgement: reference_wrong\ncase: a\nterms: b",
            "make a second verdict for the wording",
        ),
        (
            "label: edema\njudgement: reference_wrong\ncase: a",
            "needs case_id and correct_value",
        ),
        (
            "label: edema\njudgement: source_text_defect\ncase: a\nterms: b",
            "changes no wording",
        ),
        (
            "label: edema\njudgement: answer_right\ncase: a\nterms: b",
            "changes no wording",
        ),
        (
            "label: edema\njudgement: answer_right\ncase: a\nanchor: true",
            "leave out anchor",
        ),
        (
            "label: edema\njudgement: answer_right",
            "answer_right needs case_id",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_out(tmp_path, lines, message):
    """The error names the verdict and what is missing."""
    with pytest.raises(DataError, match=r"(?s)verdict 1.*Correct") as caught:
        one(tmp_path, lines)
    assert message in str(caught.value)


def test_a_verdict_on_no_case_needs_a_reason(tmp_path):
    """A general rule must say why."""
    with pytest.raises(DataError, match="needs a comment that says why"):
        read(tmp_path, "verdicts:\n- {label: edema, judgement: model_wrong, term: a}\n")


def test_csv_says_the_same_as_yaml(tmp_path):
    """A spreadsheet export works, several terms in one cell."""
    text = (
        "\ufeffcase_id,label,judgement,context,action,terms,phrase,value,note,"
        "exemplar_text,exemplar_value,exemplar_evidence,comment,anchor\r\n"
        'a1|a2,edema,model_wrong,negation,add_term,"wet lungs | fluid, in lung",,,,'
        ",,,,\r\n"
        "a3,edema,guideline_ambiguous,,clarify,,hazy,uncertain,Not enough.,,,,,yes\r\n"
        ",edema,model_wrong,,add_exemplar,,,,,Lungs are wet.,present,wet,general,\r\n"
    )
    terms, rule, example = read(tmp_path, text, "verdicts.csv")
    assert terms.case_ids == ("a1", "a2")
    assert terms.edits.terms == ("wet lungs", "fluid, in lung")
    assert terms.context is Context.NEGATION
    assert rule.edits.clarifications[0].phrase == "hazy"
    assert rule.anchor
    assert example.edits.exemplars[0].evidence == "wet"


def test_numbered_columns_of_a_table_are_taken_by_their_number(tmp_path):
    """In whatever order they stand; lines without a cell are left out."""
    names = ["phrase_10", "value_10", "phrase_2", "value_2", "phrase", "value"]
    names += [f"exemplar_{one}_2" for one in ("text", "value", "evidence")]
    names += [f"exemplar_{one}" for one in ("text", "value", "evidence")]
    cells = ["ten", "absent", "two", "present", "one", "uncertain"]
    cells += ["Wet b.", "present", "Wet", "Wet a.", "present", "Wet"]
    head = ",".join(["case_id", "label", "judgement", *names])
    line = ",".join(["a1", "edema", "guideline_ambiguous", *cells])
    text = f"{head}\r\n\r\n{line}\r\n\r\n{line.replace('a1', 'a2')}\r\n"
    first, second = read(tmp_path, text, "verdicts.csv")
    phrases = [rule.phrase for rule in first.edits.clarifications]
    assert phrases == ["one", "two", "ten"]
    assert [one.text for one in first.edits.exemplars] == ["Wet a.", "Wet b."]
    assert (second.case_ids, second.edits) == (("a2",), first.edits)


def test_a_csv_row_with_too_many_cells_is_named_by_line(tmp_path):
    """An unquoted comma is the usual accident."""
    with pytest.raises(DataError, match="line 2: another number of columns"):
        read(tmp_path, "case_id,label\na1,edema,oops\n", "verdicts.csv")


def test_labels_may_be_written_as_published(tmp_path, labels_folder):
    """``Pleural Effusion`` and ``pleural_effusion`` are one label."""
    verdict = one(tmp_path, "label: Pleural Effusion\ncase: a\nimplies: Lung Opacity")
    (checked,) = check_verdicts([verdict], read_taxonomy(labels_folder), {"a"})
    assert checked.label == "pleural_effusion"
    assert checked.edits.implies == ("lung_opacity",)


def test_an_unknown_label_is_named_with_its_verdict(tmp_path, labels_folder):
    """The closest label is suggested."""
    verdict = one(tmp_path, "label: pleural efusion\ncase: a")
    with pytest.raises(UnknownLabelError, match=r"verdict 1: .*Did you mean"):
        check_verdicts([verdict], read_taxonomy(labels_folder), {"a"})


def test_no_finding_has_no_wording_to_judge(tmp_path, labels_folder):
    """It is derived; the label that blocks it must be judged."""
    verdict = one(tmp_path, "label: no_finding\ncase: a\nterms: all clear")
    with pytest.raises(DataError, match="derived from the other labels"):
        check_verdicts([verdict], read_taxonomy(labels_folder), {"a"})


def test_an_id_depends_on_everything_said(tmp_path):
    """The same verdict read twice is one; another word makes another."""
    first = one(tmp_path, "label: edema\ncase: a\nterms: wet")
    assert one(tmp_path, "label: edema\ncase: a\nterms: wet").id == first.id
    assert one(tmp_path, "label: edema\ncase: a\nterms: damp").id != first.id


def test_an_empty_file_is_refused(tmp_path):
    """Nothing to do is more likely a mistake."""
    with pytest.raises(DataError, match="holds no verdicts"):
        read(tmp_path, "verdicts: []\n")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["label", "terms", "case", "action", "phrase", "value", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(row=_JSON | st.fixed_dictionaries({"action": st.sampled_from(list(Action))}))
def test_no_file_breaks_the_reader(tmp_path, row):
    """Whatever stands in a file, the answer is verdicts or a clear error."""
    try:
        read(tmp_path, json.dumps({"verdicts": [row]}))
    except LoopError as error:
        assert "verdicts" in str(error) or "YAML" in str(error)


@pytest.mark.parametrize(
    ("cell", "pinned"), [("Yes", True), ("x", True), ("NO", False), ("0", False)]
)
def test_anchor_takes_yes_or_no(tmp_path, cell, pinned):
    """As a spreadsheet may hold it."""
    text = f"case_id,label,judgement,terms,anchor\na,edema,model_wrong,b,{cell}\n"
    (verdict,) = read(tmp_path, text, "verdicts.csv")
    assert verdict.anchor is pinned


def test_another_word_for_anchor_is_refused_by_line(tmp_path):
    """A pin that was meant must not be dropped for its spelling."""
    text = "case_id,label,judgement,terms,anchor\na,edema,model_wrong,b,ture\n"
    with pytest.raises(DataError, match=r"line 2: anchor is 'ture'.*Write yes or no"):
        read(tmp_path, text, "verdicts.csv")


def test_a_column_that_stands_twice_is_refused(tmp_path):
    """One of the two would be lost without a word."""
    text = "case_id,label,judgement,terms, terms\na,edema,model_wrong,b,c\n"
    with pytest.raises(DataError, match=r"line 1: column 'terms' appears twice"):
        read(tmp_path, text, "verdicts.csv")


def test_empty_columns_at_the_end_do_no_harm(tmp_path):
    """Spreadsheets export them; a cell in one is refused by its place."""
    text = "case_id,label,judgement,terms,,\na,edema,model_wrong,b,,{}\n"
    assert len(read(tmp_path, text.format(""), "verdicts.csv")) == 1
    with pytest.raises(DataError, match="column_6"):
        read(tmp_path, text.format("stray"), "verdicts.csv")


def test_two_values_for_one_case_are_refused_with_both_verdicts(
    tmp_path, labels_folder
):
    """Neither reviewer silently wins, however the label is spelled."""
    verdicts = read(
        tmp_path,
        "judgement: model_wrong\nverdicts:\n"
        "- {case: a, label: edema, correct_value: present}\n"
        "- {case: b, label: edema, correct_value: absent}\n"
        "- {cases: [b, a], label: Edema, correct_value: absent,"
        " judgement: reference_wrong}\n",
    )
    with pytest.raises(
        DataError, match=r"verdicts 1 and 3 disagree .* case 'a': .*Agree"
    ):
        check_verdicts(verdicts, read_taxonomy(labels_folder), {"a", "b"})


def test_failures_table_can_be_filled_in_and_sent_back(tmp_path):
    """The columns that `ranloop failures --format csv` shows are not verdicts."""
    path = tmp_path / "failures.csv"
    path.write_text(
        "case_id,label,kind,predicted,reference,spans,problem,judgement,terms\n"
        "'=1+1,edema,false_negative,absent,present,,,model_wrong,fluid overload\n",
        encoding="utf-8",
    )
    [verdict] = read_verdicts(path).verdicts
    assert verdict.case_ids == ("=1+1",)
    assert verdict.edits.terms == ("fluid overload",)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030"])
def test_a_spreadsheet_of_another_locale_is_read(tmp_path, encoding):
    """Semicolons and GBK are what some hospitals' spreadsheets write."""
    path = tmp_path / "v.csv"
    text = "case;label;judgement;terms\n007;edema;model_wrong;肺水肿\n"
    path.write_bytes(text.encode(encoding))
    [verdict] = read_verdicts(path).verdicts
    assert verdict.case_ids == ("007",)
    assert verdict.edits.terms == ("肺水肿",)


def test_a_plain_list_is_told_how_to_begin(tmp_path):
    """The message shows the form, not a model's name."""
    path = tmp_path / "v.yaml"
    path.write_text("- case: 1\n")
    with pytest.raises(DataError, match="Begin it with `verdicts:`"):
        read_verdicts(path)


NASTY = [
    "=1+1", "'=1", "''=1", "@x", "-2", "a|b", "a\\|b", "x\\", "|", "no", "true", "007",
    "1:30", "~", "a,b;c", '"q"', "# x", "- x", "肺|水", "null", "{}", "'", "[", "1e5",
]  # fmt: skip


def spoken(characters):
    """Return a strategy of verdicts whose texts are of these characters."""
    words = st.text(characters, max_size=12) | st.sampled_from(NASTY)
    words = words.map(str.strip).filter(bool)
    phrases = st.lists(words, max_size=3).map(tuple)
    values = st.sampled_from(Value)
    edits = st.builds(
        Edits,
        terms=phrases,
        exclusions=phrases,
        clarifications=st.lists(
            st.builds(
                Clarification, phrase=words, value=values, note=words | st.just("")
            ),
            max_size=3,
        ).map(tuple),
        exemplars=st.lists(
            st.builds(Exemplar, text=words, value=values, evidence=words, why=words),
            max_size=3,
        ).map(tuple),
        implies=phrases,
        remove_terms=phrases,
        remove_clarifications=phrases,
        remove_exemplars=phrases,
        remove_implies=phrases,
    )
    weights = st.sampled_from(ErrorWeight)
    errors = st.lists(
        st.builds(ErrorVerdict, words=words | st.just(""), said=weights, right=weights),
        max_size=3,
    ).map(tuple)
    cases = st.lists(words, min_size=1, max_size=3).map(tuple)
    said = st.builds(
        Verdict,
        label=st.sampled_from(["edema", "fracture"]),
        judgement=st.sampled_from(
            [Judgement.MODEL_WRONG, Judgement.GUIDELINE_AMBIGUOUS]
        ),
        severity=st.none() | st.sampled_from(Severity),
        context=st.none() | st.sampled_from(Context),
        case_ids=cases,
        edits=edits,
        correct_value=st.none() | values,
        reviewer=words,
        comment=words | st.just(""),
        anchor=st.booleans(),
    )
    return st.builds(
        lambda one, listed: (
            replace(one, errors=listed) if len(one.case_ids) == 1 else one
        ),
        said,
        errors,
    )


ANYTHING = st.characters(codec="utf-8")

SHOWN = st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"])
"""Without control characters, which a table spells out."""


def keep(*verdicts, made_on=MADE_ON):
    """Return verdicts as the store would give them."""
    return [
        KeptVerdict(
            id=one.id,
            verdict=one,
            circumstances=made_on,
            created="2026-01-05T09:00:00.000000Z",
            state=VerdictState.OPEN,
        )
        for one in verdicts
    ]


def back(tmp_path, text, name):
    """Write `text` and return the file read back."""
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8"))
    return read_verdicts(path, reviewer="nobody")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verdicts=st.lists(spoken(ANYTHING), min_size=1, max_size=3))
def test_yaml_reads_back_equal(tmp_path, verdicts):
    """Whatever was said, in any script, with any punctuation."""
    file = back(tmp_path, verdicts_file(keep(*verdicts), notes=True), "v.yaml")
    assert list(file.verdicts) == verdicts
    assert [one.id for one in file.verdicts] == [one.id for one in verdicts]


@settings(
    max_examples=25,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
    ],
)
@given(verdicts=st.lists(spoken(SHOWN), min_size=1, max_size=3))
def test_a_table_reads_back_equal(tmp_path, verdicts):
    """Several clarifications, bars and formulas included."""
    file = back(tmp_path, verdicts_table(keep(*verdicts), notes=True), "v.csv")
    assert list(file.verdicts) == verdicts


@pytest.mark.parametrize(
    ("write", "name"), [(verdicts_file, "v.yaml"), (verdicts_table, "v.csv")]
)
def test_notes_are_left_out_unless_asked_for(tmp_path, write, name):
    """A note is for the team; only the reason of a verdict on no case stays."""
    error = ErrorVerdict(
        words="tomorrow's words",
        said=ErrorWeight.SIGNIFICANT,
        right=ErrorWeight.NO_ERROR,
    )
    on_a_case = verdict(comment="ask her tomorrow", errors=(error,))
    on_no_case = verdict(case_ids=(), comment="the guide forgets this")
    text = write(keep(on_a_case, on_no_case))
    assert "tomorrow" not in text
    first, second = back(tmp_path, text, name).verdicts
    assert (first.comment, second) == ("", on_no_case)
    assert first.errors == (replace(error, words=""),)


@pytest.mark.parametrize(
    ("write", "name"), [(verdicts_file, "v.yaml"), (verdicts_table, "v.csv")]
)
def test_what_nobody_chose_is_not_written(tmp_path, write, name):
    """An empty severity or cause comes back empty, not as the commonest one."""
    text = write(keep(verdict(severity=None, context=None)))
    assert "major" not in text and "other" not in text
    (found,) = back(tmp_path, text, name).verdicts
    assert (found.severity, found.context) == (None, None)


def test_what_all_verdicts_share_stands_at_the_top(tmp_path):
    """So that `revise` and `verdict add` need not be told."""
    file = back(tmp_path, verdicts_file(keep(verdict())), "v.yaml")
    assert (file.cohort, file.prompt, file.run) == ("dev", "tiny@v1", "run-1")
    other = VerdictContext("dev", "tiny@v2", "", "run-2")
    both = [*keep(verdict()), *keep(verdict("b"), made_on=other)]
    file = back(tmp_path, verdicts_file(both), "v.yaml")
    assert (file.cohort, file.prompt, file.run) == ("dev", "", "")


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_no_cell_is_a_formula(start):
    """A comment typed by anyone must not run in somebody's spreadsheet."""
    hostile = f'{start}HYPERLINK("http://x","y")'
    one = verdict(hostile, reviewer=hostile, comment=hostile)
    rows = list(csv.reader(io.StringIO(verdicts_table(keep(one), notes=True))))
    assert sum(hostile in cell for cell in rows[1]) == 3
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in rows[1])


def test_control_characters_are_spelled_out_in_a_table():
    """A terminal or spreadsheet never gets them."""
    table = verdicts_table(keep(verdict(comment="a\x1b[31m\u202eb\x00")), notes=True)
    assert "\\x1b[31m\\u202eb\\x00" in table
    assert "\x1b" not in table


@pytest.mark.parametrize(
    ("write", "name"), [(verdicts_file, "v.yaml"), (verdicts_table, "v.csv")]
)
def test_that_nothing_is_wrong_reads_back_equal(tmp_path, write, name):
    """What was said of right answers is exported like everything else."""
    said = verdict(judgement=Judgement.ANSWER_RIGHT)
    assert list(back(tmp_path, write(keep(said)), name).verdicts) == [said]


def test_draws_are_written_only_where_there_were_several():
    """A column that is empty throughout would only be asked about."""
    flips = VerdictContext("dev", "tiny@v1", "", "run-1", flips="2 of 5")
    plain, drawn = (
        verdicts_table(keep(verdict(), made_on=made_on)) for made_on in (MADE_ON, flips)
    )
    assert "failed_in_draws" not in plain
    assert "failed_in_draws" in drawn
    assert "2 of 5" in drawn


@pytest.fixture
def written(setting):
    """Return what writes verdicts on effusion below a header, and returns the file."""

    def write(header=""):
        rows = "".join(
            f"- {{case: {case}, label: {label}, judgement: model_wrong}}\n"
            for case, label in (
                ("e0", "cardiomegaly"),
                ("f0", "pleural_effusion"),
                ("f1", "pleural_effusion"),
            )
        )
        return setting.verdicts(f"{header}verdicts:\n{rows}")

    return write


def test_who_imports_a_file_says_better_what_it_is_about(setting, store, written):
    """Cohort and run of the occasion stand before those of the file."""
    setting.add_cohort("other", "dev", [("x1", "Another study.", 0, 0)])
    run = run_prompt(setting.workspace, "tiny", "dev", engine="rules").run_id
    file = written("reviewer: Dr F\ncohort: other\nrun: nowhere\nprompt: p@v9\n")
    occasion = ImportDefaults("Dr A", cohort="dev", run=run[:15])
    taken = take_file(setting.workspace, store, file, occasion)
    assert (taken.cohort, taken.run, len(taken.ids)) == ("dev", run, 3)
    kept = load_verdicts(store, "dev", taken.ids)
    assert {one.reviewer for one in kept} == {"Dr F"}


@pytest.mark.parametrize(
    ("header", "run", "cohort"),
    [
        ("cohort: dev\n", False, "dev"),
        ("run: latest\n", True, "dev"),
        ("cohort: dev\nrun: latest\n", True, "dev"),
    ],
)
def test_a_file_says_what_it_is_about(setting, store, written, header, run, cohort):
    """Its cohort, its run, or the cohort of its run."""
    made = run_prompt(setting.workspace, "tiny", "dev", engine="rules").run_id
    taken = take_file(setting.workspace, store, written(header), ImportDefaults("Dr A"))
    assert (taken.cohort, taken.run) == (cohort, made if run else "")


def test_a_file_that_says_nothing_is_told_how(setting, store, written):
    """And a run of other cases is refused; nothing is kept of either."""
    with pytest.raises(DataError, match="nothing says which cohort the cases of"):
        take_file(setting.workspace, store, written(), ImportDefaults("Dr A"))
    setting.add_cohort("other", "dev", [("x1", "Another study.", 0, 0)])
    run = run_prompt(setting.workspace, "tiny", "other", engine="rules").run_id
    occasion = ImportDefaults("Dr A", run=run)
    said = f"run {run} asked the cases of other, and the verdicts are on dev"
    with pytest.raises(DataError, match=said):
        take_file(setting.workspace, store, written("cohort: dev\n"), occasion)
    assert store.list_verdicts() == []


def test_a_dry_run_counts_and_keeps_nothing(setting, store, written):
    """Labels with most verdicts first; what is kept already, word for word."""
    file, occasion = written(), ImportDefaults("Dr A", cohort="dev")
    before = dry_run_file(setting.workspace, store, file, occasion)
    assert (before.verdicts, before.known, before.reviewers) == (3, 0, ("Dr A",))
    assert list(before.labels.items()) == [("pleural_effusion", 2), ("cardiomegaly", 1)]
    assert before.judgements == {"model_wrong": 3}
    assert (before.cohort, before.run) == ("dev", "")
    assert store.list_verdicts() == []
    take_file(setting.workspace, store, file, occasion)
    assert dry_run_file(setting.workspace, store, file, occasion).known == 3
    other = ImportDefaults("Dr B", cohort="dev")
    assert dry_run_file(setting.workspace, store, file, other).known == 0


def test_a_verdict_that_was_answered_since_may_be_handed_in_again(setting, store):
    """What it asked for is there by now; another one that asks for it is refused."""
    text = (
        "cohort: dev\nprompt: tiny@v1\nverdicts:\n- {case: f0, label: "
        "pleural_effusion, judgement: guideline_ambiguous, terms: [fluid ... base]}\n"
    )
    file, occasion = setting.verdicts(text), ImportDefaults("Dr A")
    taken = take_file(setting.workspace, store, file, occasion)
    effusion, heart = setting.tiny.guides
    overtake(setting, guides=(replace(effusion, exclusions=("fluid ... base",)), heart))
    assert take_file(setting.workspace, store, file, occasion).ids == taken.ids
    assert dry_run_file(setting.workspace, store, file, occasion).known == 1
    with pytest.raises(DataError):
        take_file(setting.workspace, store, file, ImportDefaults("Dr B"))


def test_a_reviewer_who_looks_like_another_one_is_refused(setting, store, written):
    """As somebody whose verdicts are kept, or who stands in the same file."""
    take_file(
        setting.workspace,
        store,
        written(),
        ImportDefaults("Dr A", cohort="dev"),
    )
    kept = store.list_verdicts()
    for name in ("Dr \N{CYRILLIC CAPITAL LETTER A}", "dr a", "Dr  A"):
        occasion = ImportDefaults(name, cohort="dev")
        for attempt in (take_file, dry_run_file):
            with pytest.raises(DataError, match="looks like 'Dr A', who is known here"):
                attempt(setting.workspace, store, written(), occasion)
    two = setting.verdicts(
        "verdicts:\n"
        "- {case: e0, label: cardiomegaly, judgement: model_wrong, reviewer: Dr B}\n"
        "- {case: f0, label: cardiomegaly, judgement: model_wrong, reviewer: dr b}\n"
    )
    with pytest.raises(DataError, match="looks like 'Dr B'"):
        take_file(setting.workspace, store, two, ImportDefaults("Dr A", cohort="dev"))
    assert store.list_verdicts() == kept
    again = ImportDefaults("Dr A", cohort="dev")
    assert dry_run_file(setting.workspace, store, written(), again).known == 3


def test_a_draft_is_made_of_no_verdict_under_a_look_alike(setting, store):
    """However it comes in: also with the file that `revise` takes."""
    begin(setting, store, FLUID)
    other = replace(FLUID, reviewer=FLUID.reviewer.replace("D", "d"), comment="again")
    with pytest.raises(DataError, match="looks like"):
        begin(setting, store, other)


WHOLE = Verdict(
    label="edema",
    judgement=Judgement.GUIDELINE_AMBIGUOUS,
    severity=Severity.MINOR,
    context=Context.NEGATION,
    case_ids=("c|1", "c2"),
    edits=Edits(
        terms=("wet", "a|b"),
        exclusions=("dry",),
        clarifications=(
            Clarification(phrase="hazy", value=Value.UNCERTAIN, note="Alone."),
            Clarification(phrase="damp", value=Value.ABSENT),
        ),
        exemplars=(
            Exemplar(text="Wet lungs.", value=Value.PRESENT, evidence="Wet", why="w"),
            Exemplar(text="Dry.", value=Value.ABSENT, evidence="Dry"),
        ),
        implies=("lung_opacity",),
        remove_terms=("moist",),
        general_rules=("Read all.",),
    ),
    correct_value=Value.PRESENT,
    reviewer="Ann",
    comment="why",
    anchor=True,
)
JUDGED = Verdict(
    label="severity",
    judgement=Judgement.MODEL_WRONG,
    case_ids=("p1",),
    errors=(
        ErrorVerdict(
            words="x", said=ErrorWeight.SIGNIFICANT, right=ErrorWeight.INSIGNIFICANT
        ),
        ErrorVerdict(
            words="", said=ErrorWeight.NO_ERROR, right=ErrorWeight.SIGNIFICANT
        ),
    ),
    reviewer="Ben",
)


def test_a_written_file_holds_what_was_said_in_reading_order():
    """Nothing that is empty, and nothing twice."""
    assert verdicts_file(keep(WHOLE, JUDGED), notes=True) == textwrap.dedent(
        """\
        prompt: tiny@v1
        run: run-1
        cohort: dev
        verdicts:
        - cases:
          - c|1
          - c2
          label: edema
          judgement: guideline_ambiguous
          severity: minor
          context: negation
          correct_value: present
          terms:
          - wet
          - a|b
          exclusions:
          - dry
          implies:
          - lung_opacity
          remove_terms:
          - moist
          general_rules:
          - Read all.
          clarifications:
          - phrase: hazy
            value: uncertain
            note: Alone.
          - phrase: damp
            value: absent
            note: ''
          exemplars:
          - text: Wet lungs.
            value: present
            evidence: Wet
            why: w
          - text: Dry.
            value: absent
            evidence: Dry
            why: ''
          reviewer: Ann
          comment: why
          anchor: true
        - cases:
          - p1
          label: severity
          judgement: model_wrong
          errors:
          - words: x
            said: significant
            right: insignificant
          - said: no_error
            right: significant
          reviewer: Ben
        """
    )


def test_a_written_table_has_a_column_for_each_of_them():
    """In the order of the form; what only the second verdict has stands last."""
    drawn = VerdictContext("dev", "tiny@v2", "", "run-2", flips="1 of 3")
    kept = [*keep(WHOLE), *keep(JUDGED, made_on=drawn)]
    first, second = csv.DictReader(io.StringIO(verdicts_table(kept, notes=True)))
    filled = [
        {name: cell for name, cell in row.items() if cell} for row in (first, second)
    ]
    assert list(filled[0].items()) == [
        ("id", WHOLE.id),
        ("created", "2026-01-05T09:00:00.000000Z"),
        ("state", "open"),
        ("on_cohort", "dev"),
        ("on_run", "run-1"),
        ("on_prompt", "tiny@v1"),
        ("reviewer", "Ann"),
        ("cases", "c\\|1 | c2"),
        ("label", "edema"),
        ("judgement", "guideline_ambiguous"),
        ("severity", "minor"),
        ("context", "negation"),
        ("comment", "why"),
        ("correct_value", "present"),
        ("anchor", "yes"),
        ("terms", "wet | a\\|b"),
        ("exclusions", "dry"),
        ("implies", "lung_opacity"),
        ("remove_terms", "moist"),
        ("general_rules", "Read all."),
        ("phrase", "hazy"),
        ("value", "uncertain"),
        ("note", "Alone."),
        ("phrase_2", "damp"),
        ("value_2", "absent"),
        ("exemplar_text", "Wet lungs."),
        ("exemplar_value", "present"),
        ("exemplar_evidence", "Wet"),
        ("exemplar_why", "w"),
        ("exemplar_text_2", "Dry."),
        ("exemplar_value_2", "absent"),
        ("exemplar_evidence_2", "Dry"),
    ]
    assert filled[1] == {
        "id": JUDGED.id,
        "created": "2026-01-05T09:00:00.000000Z",
        "state": "open",
        "on_cohort": "dev",
        "on_run": "run-2",
        "on_prompt": "tiny@v2",
        "failed_in_draws": "1 of 3",
        "reviewer": "Ben",
        "cases": "p1",
        "label": "severity",
        "judgement": "model_wrong",
        "error_words": "x",
        "error_said": "significant",
        "error_right": "insignificant",
        "error_said_2": "no_error",
        "error_right_2": "significant",
    }


HEAD = "case_id,label,judgement"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}\na,edema,model_wrong\nb,edema,x\n", "line 3 .*\n  judgement: "),
        (
            f'{HEAD},comment\na,edema,model_wrong,"x\ny"\nb,,,\n',
            "line 4 .*\n  label: missing",
        ),
        ("kind,text\na,b\n", "line 1: no column case_id, label or judgement"),
        (f"{HEAD},phrase_1\na,edema,model_wrong,x\n", "phrase_1: there is no such"),
        (f"{HEAD},phrase_100\na,edema,model_wrong,x\n", "phrase_100: there is no"),
        (f"{HEAD}\n", "holds no verdicts. Add at least one"),
        ("case\n\na\n", "line 3 .*\n  label: missing"),
    ],
)
def test_what_is_wrong_in_a_table_is_found_by_its_line(tmp_path, text, message):
    """Counted as an editor counts them."""
    with pytest.raises(DataError, match=message):
        read(tmp_path, text, "v.CSV")


@pytest.mark.parametrize(
    ("cells", "edits"),
    [
        (
            "phrase_2,value_2\na,edema,model_wrong,x,absent",
            Edits(clarifications=(Clarification(phrase="x", value=Value.ABSENT),)),
        ),
        (
            "phrase_99,value_99,phrase_11,value_11\na,edema,model_wrong,x,absent,y,present",
            Edits(
                clarifications=(
                    Clarification(phrase="y", value=Value.PRESENT),
                    Clarification(phrase="x", value=Value.ABSENT),
                )
            ),
        ),
        (
            "action,phrase\na,edema,model_wrong,add_exclusion,x",
            Edits(exclusions=("x",)),
        ),
        (
            "terms,remove_terms,remove_exclusions,general_rule\n"
            r"a,edema,model_wrong,| x || y\|z |,v|w,u,Read all.",
            Edits(
                terms=("x", "y|z"),
                remove_terms=("v", "w"),
                remove_exclusions=("u",),
                general_rules=("Read all.",),
            ),
        ),
        ("comment\na,edema,model_wrong,x|y", Edits()),
    ],
)
def test_a_row_says_what_its_columns_say(tmp_path, cells, edits):
    """A bar separates entries only where there may be several."""
    (found,) = read(tmp_path, f"{HEAD},{cells}\n", "v.csv")
    assert found.edits == edits
    assert found.comment in ("", "x|y")


@pytest.mark.parametrize("cell", ["true", "YES", "y", "1", "X"])
def test_every_yes_pins_a_case(tmp_path, cell):
    """In any case."""
    (found,) = read(tmp_path, f"{HEAD},anchor\na,edema,model_wrong,{cell}\n", "v.csv")
    assert found.anchor is True


@pytest.mark.parametrize("cell", ["false", "No", "n", "0", "-", ""])
def test_every_no_pins_none(tmp_path, cell):
    """As does an empty cell."""
    (found,) = read(tmp_path, f"{HEAD},anchor\na,edema,model_wrong,{cell}\n", "v.csv")
    assert found.anchor is False


@pytest.mark.parametrize("name", ["v.yaml", "v.csv"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    """One that is not there, and what is no file."""
    with pytest.raises(DataError, match=f"{name} does not exist. Check the name"):
        read_verdicts(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=f"{name}"):
        read_verdicts(tmp_path / name)


def test_the_verdict_that_is_wrong_is_named_by_its_number(tmp_path):
    """The second of three; what is no verdict at all is told so."""
    good = "- {case: a, label: edema, judgement: model_wrong}\n"
    with pytest.raises(DataError, match=r"v\.yaml, verdict 2 .*\n  judgement: missing"):
        read(
            tmp_path, f"verdicts:\n{good}- {{case: a, label: edema}}\n{good}", "v.yaml"
        )
    with pytest.raises(DataError, match=r"(?s)v\.yaml, verdict 2 .*`key: value` lines"):
        read(tmp_path, f"verdicts:\n{good}- edema\n{good}", "v.yaml")


def test_empty_keys_of_a_file_say_nothing(tmp_path):
    """Neither a rule nor an action; what is empty at the top gives no default."""
    (found,) = read(
        tmp_path,
        "context: negation\nseverity: ''\nreviewer: ''\nverdicts:\n"
        "- {case: a, label: edema, judgement: model_wrong, action: '', phrase: '', "
        "value: '', note: '', terms: ''}\n",
    )
    assert found == Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        context=Context.NEGATION,
        case_ids=("a",),
        reviewer="Dr A. Example",
    )
    errors = "[{words: ' x ', said: significant, right: no_error}]"
    (found,) = read(
        tmp_path,
        "verdicts:\n- {case: a, label: severity, judgement: model_wrong, error: "
        f"{errors}}}\n",
    )
    assert found.errors[0].words == "x"


def test_what_is_taken_is_kept_with_what_it_was_made_on(setting, store, written):
    """The run's prompt where there is a run, else the one that the file names."""
    run = run_prompt(setting.workspace, "tiny", "dev", engine="rules").run_id
    file = written("prompt: tiny@v9\ncohort: dev\n")
    for number, (occasion, prompt) in enumerate(
        (
            (ImportDefaults("Ann"), "tiny@v9"),
            (ImportDefaults("Ben", run=run), "tiny@v1"),
        )
    ):
        take_file(setting.workspace, store, file, occasion)
        kept = read_kept(store, setting.workspace, "dev")[3 * number :]
        assert [one.circumstances for one in kept] == 3 * [
            VerdictContext("dev", prompt, file.name, occasion.run)
        ]


def test_a_dry_run_names_everybody_who_judges(setting, store):
    """In order of their names, each once; only what is known word for word is known."""
    rows = [("e0", "Dr Z"), ("f0", "Dr M"), ("f1", "Dr Z")]
    text = "".join(
        f"- {{case: {case}, label: cardiomegaly, judgement: model_wrong, "
        f"reviewer: {who}}}\n"
        for case, who in rows
    )
    occasion = ImportDefaults("", cohort="dev")
    first = setting.verdicts("verdicts:\n" + text.splitlines()[0] + "\n", "one.yaml")
    take_file(setting.workspace, store, first, occasion)
    found = dry_run_file(
        setting.workspace, store, setting.verdicts(f"verdicts:\n{text}"), occasion
    )
    assert found == VerdictsDryRun(
        cohort="dev",
        run="",
        verdicts=3,
        known=1,
        reviewers=("Dr M", "Dr Z"),
        judgements={"model_wrong": 3},
        labels={"cardiomegaly": 3},
    )


@pytest.mark.parametrize(
    "column",
    [
        *("kind", "predicted", "reference", "spans", "evidence", "text", "problem"),
        *("place", "worth", "why", "sections", "progress", "reviewers", "reserved_by"),
        *("id", "created", "state", "on_cohort", "on_run", "on_prompt"),
        "failed_in_draws",
    ],
)
def test_what_a_table_shows_beside_a_case_says_nothing(tmp_path, column):
    """Whoever fills it in leaves such columns as they are."""
    path = tmp_path / "v.csv"
    rows = ("case_id,label,judgement", "a,edema,model_wrong")
    path.write_text("\n".join(rows) + "\n")
    bare = read_verdicts(path, reviewer="Ann")
    path.write_text(f"{rows[0]},{column}\n{rows[1]},something\n")
    assert read_verdicts(path, reviewer="Ann") == bare
