"""What the verb ``annotate`` says of an annotation, a comparison and a report."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import annotate
from loop.release.annotation import AnnotatedCorpus
from loop.release.corpus_review import CorpusReport, LabelPrevalence
from loop.run.shards import (
    AnnotationComparison,
    AnnotationManifest,
    AnnotationPlan,
    LabelDifference,
    RepeatedIds,
    ShardFacts,
)
from loop.stats.intervals import Estimate

NONE = Estimate(None, None, None, "nothing was read")


def call(*words):
    """Run the verb in no workspace."""
    app = typer.Typer()
    annotate.register(app)
    return CliRunner().invoke(app, [*map(str, words)])


def annotated(engine="openai:m", release="tiny-v1", **facts):
    """Return a corpus of 9 rows whose rows ended in every way."""
    told = {
        "rows": 9,
        "statuses": {
            "answered": 3,
            "unparsed": 2,
            "engine_failed": 1,
            "no_text": 3,
        },
        "repaired": 1,
        "problems": {f"reason {n}": n for n in range(1, 7)},
        "failed": ("r4", "r5", "r6"),
        "repeated": RepeatedIds(ids=6, examples=("a", "b", "c", "d", "e", "f")),
        "labels": {
            "Edema": {"present": 1, "uncertain": 2, "absent": 3, "blank": 4},
            "Fracture": {"absent": 9},
        },
        "shards": tuple(
            ShardFacts(file=f"part-0000{n}.parquet", rows=3, sha256="0" * 64)
            for n in range(3)
        ),
        **facts,
    }
    plan = AnnotationPlan(
        prompt="tiny@v1",
        prompt_digest="0" * 64,
        release=release,
        contract="labels/1",
        engine=engine,
        parameters={},
        engine_identity={},
        taxonomy_digest="0" * 64,
        no_finding="derived",
        columns=("Edema", "Fracture"),
        text=False,
        shard_rows=3,
    )
    manifest = AnnotationManifest(
        plan=plan, source="r.csv", source_digest="0" * 64, ranloop="1", **told
    )
    return AnnotatedCorpus(manifest, 2, 1.0)


def test_every_way_that_a_row_ended_is_told(capsys):
    """Beside each label, with the reasons and the ids of what was not answered."""
    annotate._show(annotated(), Path("out"))
    said = capsys.readouterr()
    assert said.out == (
        "9 rows of r.csv by tiny-v1 with openai:m: 3 shards, 2 made now\n"
        "\n"
        "status         rows   share\n"
        "-------------  ----  ------\n"
        "answered          3  33.3 %\n"
        "unparsed          2  22.2 %\n"
        "engine_failed     1  11.1 %\n"
        "no_text           3  33.3 %\n"
        "\n"
        "label     present  uncertain  absent  blank\n"
        "--------  -------  ---------  ------  -----\n"
        "Edema           1          2       3      4\n"
        "Fracture        0          0       9      0\n"
        "\n"
        "note: 6 ids of several rows, for example a, b, c, d, e\n"
        "note: 1 repaired answer\n"
        "note: 1 row without an answer: reason 1\n"
        "note: 2 rows without an answer: reason 2\n"
        "note: 3 rows without an answer: reason 3\n"
        "note: 4 rows without an answer: reason 4\n"
        "note: 5 rows without an answer: reason 5\n"
        "note: ids of these rows: r4, r5, r6\n"
        "note: the same command asks once more where the engine failed\n"
    )
    assert said.err == "wrote out: shards, _annotation.json and _SUCCESS\n"


def test_of_many_rows_without_an_answer_five_are_named(capsys):
    """And how many more there are; a row without a text is none of them."""
    failed = tuple(f"r{n}" for n in range(1, 9))
    statuses = {"unparsed": 2000, "engine_failed": 6, "no_text": 4, "answered": 10}
    corpus = annotated(rows=2020, statuses=statuses, failed=failed)
    annotate._show(corpus, Path("out"))
    lines = capsys.readouterr().out.splitlines()
    assert "note: ids of these rows: r1, r2, r3, r4, r5 and 2,001 more" in lines


def test_what_ended_well_has_no_notes(capsys):
    """A version that is no release is named by itself."""
    nothing = {
        "statuses": {"answered": 9},
        "repaired": 0,
        "problems": {},
        "failed": (),
        "repeated": RepeatedIds(ids=0, examples=()),
    }
    annotate._show(annotated(release="", **nothing), Path("out"))
    said = capsys.readouterr().out
    assert said.startswith("9 rows of r.csv by tiny@v1 with openai:m: 3 shards")
    assert "note:" not in said


@pytest.mark.parametrize(
    ("engine", "failed", "told"),
    [("openai:m", 1, True), ("rules", 1, False), ("openai:m", 0, False)],
)
def test_only_what_may_end_otherwise_is_asked_again(capsys, engine, failed, told):
    """The rules say the same each time."""
    statuses = {"answered": 9 - failed, "engine_failed": failed}
    annotate._show(annotated(engine, statuses=statuses), Path("out"))
    assert ("asks once more" in capsys.readouterr().out) is told


COMPARISON = AnnotationComparison(
    rows=12_000,
    differing=7,
    labels=(
        LabelDifference("Edema", 3, {"present -> absent": 2, "absent -> present": 1}),
        LabelDifference("Fracture", 0, {}),
    ),
    statuses={"answered -> unparsed": 4},
    examples=("a", "b", "c", "d", "e", "f"),
)


def test_a_comparison_names_each_change(capsys):
    """Of the statuses first, then label by label."""
    annotate._show_comparison(COMPARISON)
    assert capsys.readouterr().out == (
        "12,000 rows: 11,993 the same, 7 different\n"
        "\n"
        "label                 change  rows\n"
        "------  --------------------  ----\n"
        "status  answered -> unparsed     4\n"
        "Edema      present -> absent     2\n"
        "Edema      absent -> present     1\n"
        "\n"
        "note: the first that differ are a, b, c, d, e\n"
    )
    same = COMPARISON._replace(differing=0, labels=(), statuses={}, examples=())
    annotate._show_comparison(same)
    assert capsys.readouterr().out == "12,000 rows: 12,000 the same, 0 different\n"


def test_a_comparison_is_whole_as_json():
    """With the labels that do not differ, and all examples."""
    assert annotate._comparison_data(COMPARISON) == {
        "rows": 12_000,
        "differing": 7,
        "statuses": {"answered -> unparsed": 4},
        "labels": [
            {
                "label": "Edema",
                "rows": 3,
                "changes": {"present -> absent": 2, "absent -> present": 1},
            },
            {"label": "Fracture", "rows": 0, "changes": {}},
        ],
        "examples": ["a", "b", "c", "d", "e", "f"],
    }


def report(**changes):
    """Return a report on two labels; of the second nothing is known."""
    labels = (
        LabelPrevalence(
            label="Edema",
            called=50,
            among_called=Estimate(0.9, 0.8, 0.95),
            among_others=Estimate(0.01, 0.0, 0.05),
            prevalence=Estimate(0.2, 0.1, 0.3),
            reviewed=(30, 40),
            undecided=2,
            not_coded=3,
        ),
        LabelPrevalence(
            label="Fracture",
            called=0,
            among_called=NONE,
            among_others=NONE,
            prevalence=NONE,
            reviewed=(0, 0),
            undecided=1,
            not_coded=1,
        ),
    )
    told = {"missing": 1, "changed": 2, "unanswered": 3, "left_out": ("Mass", "Hernia")}
    return CorpusReport(
        rows=200, reference="dev:ref2", drawn=70, labels=labels, **{**told, **changes}
    )


NOTES = (
    "note: called: share of rows that the annotation calls present. right: share "
    "of these that readers\n"
    "      call present. missed: share of the other rows, called absent or uncertain "
    "or not answered,\n"
    "      that readers call present. prevalence: by both. read: rows of each kind "
    "that were read.\n"
    "note: Each row counts by 1 / its chance of being drawn. 95 % limits: "
    "Clopper-Pearson for the\n"
    "      effective number of rows, and recovered from both for the prevalence.\n"
)


def test_a_report_says_what_it_rests_on(capsys):
    """Each number with its limits, and every row that is in none."""
    annotate._show_report(report())
    dash = "\N{EN DASH}"
    assert capsys.readouterr().out == (
        "200 rows with a text, 70 drawn, held against dev:ref2\n"
        "\n"
        "label     called                 right                missed"
        "            prevalence     read\n"
        "--------  ------  --------------------  --------------------"
        "  --------------------  -------\n"
        "Edema     25.0 %  0.900 [0.800, 0.950]  0.010 [0.000, 0.050]"
        "  0.200 [0.100, 0.300]  30 + 40\n"
        f"Fracture   0.0 %{dash:>22}{dash:>22}{dash:>22}    0 + 0\n"
        "\n"
        "note: 1 drawn row not in the cohort: if they differ from the others, so does "
        "the truth from these numbers\n"
        "note: 2 drawn rows with another text in the cohort than was annotated: "
        "readers labelled something else, so these are not read\n"
        "note: 3 rows with a text and no answer: nothing is called present there, so "
        "they count among the others\n"
        "note: no numbers for Mass, Hernia: the reference has no such label\n"
        "note: 3 cells that readers left uncertain or open: in no number\n"
        "note: 4 cells that the reference does not code: counted as absent\n" + NOTES
    )


def test_a_report_of_which_nothing_is_missing_has_two_notes(capsys):
    """What its columns are, and what its limits are."""
    found = report(missing=0, changed=0, unanswered=0, left_out=())
    whole = tuple(one._replace(undecided=0, not_coded=0) for one in found.labels)
    annotate._show_report(found._replace(labels=whole))
    lines = capsys.readouterr().out.split("\n\n")
    assert lines[-1] == NOTES


def test_a_report_is_whole_as_json():
    """With the limits that a table rounds."""
    data = annotate._report_data(report())
    none = {
        "value": None,
        "low": None,
        "high": None,
        "note": "nothing was read",
    }
    notes = data.pop("notes")
    assert [one.split()[0] for one in notes] == ["called:", "Each"]
    assert data == {
        "rows": 200,
        "reference": "dev:ref2",
        "drawn": 70,
        "missing": 1,
        "changed": 2,
        "unanswered": 3,
        "left_out": ["Mass", "Hernia"],
        "labels": [
            {
                "label": "Edema",
                "called": 50,
                "right": {"value": 0.9, "low": 0.8, "high": 0.95, "note": ""},
                "missed": {"value": 0.01, "low": 0.0, "high": 0.05, "note": ""},
                "prevalence": {"value": 0.2, "low": 0.1, "high": 0.3, "note": ""},
                "reviewed": [30, 40],
                "undecided": 2,
                "not_coded": 3,
            },
            {
                "label": "Fracture",
                "called": 0,
                "right": none,
                "missed": none,
                "prevalence": none,
                "reviewed": [0, 0],
                "undecided": 1,
                "not_coded": 1,
            },
        ],
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("r.csv",), "name a source, and a folder with --out"),
        (("--out", "o"), "name a source, and a folder with --out"),
        (("--dry-run",), "name a source, and a folder with --out"),
        (("--report", "o", "--compare", "a", "b"), "give --report or --compare"),
        (("r.csv", "-o", "o", "--seed", "1"), "--seed goes with --sample"),
        (("r.csv", "-o", "o", "--cohort", "c"), "--cohort goes with --report"),
        (("--compare", "a", "b", "--rows", "2"), "reads folders: leave out --rows"),
        (("r.csv", "--dry-run", "-o", "o"), "only counts: leave out --out"),
        (
            ("r.csv", "-o", "o", "--sample", "s", "--rows", "2"),
            "--sample only draws rows: leave out --rows",
        ),
    ],
)
def test_what_would_do_nothing_is_refused_by_name(words, said):
    """Before anything is read."""
    done = call(*words)
    assert done.exit_code == 2
    told = " ".join(done.output.replace("\u2502", " ").split())
    assert said in told


def test_a_report_needs_its_cohort(workspace):
    """The sample is known by its folder, the labels by their cohort."""
    done = call("--report", "o", "-w", workspace.root)
    assert done.exit_code == 2
    assert "--report needs the --cohort" in done.output


PRICES = "prices:\n  m: {input: 2.0, output: 10.0, currency: EUR}\n"


def estimated(workspace, tmp_path, *words):
    """Return what a dry run over two reports says: a text, and an object."""
    source = tmp_path / "r.csv"
    source.write_text("case_id,text\na,Small effusion.\nb,\n")
    options = ("--prompt", "extractor@v1", "--language", "en", "--dry-run")
    asked = (source, *options, "-w", workspace.root, *words)
    done = call(*asked)
    assert done.exit_code == 0, done.output
    return done.stdout, json.loads(call(*asked, "--json").stdout)


def test_an_estimate_says_what_a_model_would_cost_and_how_long_it_would_take(
    workspace, tmp_path
):
    """By the price of its tokens and by the throughput that is named."""
    workspace.config.write_text(PRICES)
    asked = ("-e", "openai:m", "--tokens-per-second", "2.5")
    said, data = estimated(workspace, tmp_path, *asked)
    assert (data["sent"], data["rows"], data["asked"]) == (0, 2, 1)
    assert data["currency"] == "EUR"
    tokens = data["prompt_tokens"] + data["output_tokens"]
    assert data["gpu_hours"] == pytest.approx(tokens / 2.5 / 3600)
    least = 2e-6 * data["uncached_tokens"] + 10e-6 * data["output_tokens"]
    most = 2e-6 * data["prompt_tokens"] + 10e-6 * data["output_tokens"]
    assert least * 0.999 <= data["cost"] <= most * 1.001
    assert f"  cost      {data['cost']:,.2f} EUR\n" in said
    hours = f"{data['gpu_hours']:,.1f}"
    assert f"  GPU       {hours} hours at 2.5 tokens/s\n" in said
    assert said.startswith("extractor@v1 on r.csv with openai:m: NOTHING WAS SENT\n")
    assert "  rows      2 in 1 shard\n  with text 1\n" in said


def test_an_estimate_without_a_price_has_no_cost(workspace, tmp_path):
    """And without a throughput no hours."""
    said, data = estimated(workspace, tmp_path, "-e", "openai:m")
    assert (data["cost"], data["currency"], data["gpu_hours"]) == (None, None, None)
    assert "cost" not in said and "GPU" not in said
