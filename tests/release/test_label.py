"""`loop.label`: reports in, a data frame of labels out."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import loop
from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.records import Completion
from loop.engines import base
from loop.labels.taxonomy import read_taxonomy
from loop.release.extractors import ExtractorOptions

REPORTS = {
    "a": "Small left pleural effusion. No pneumothorax.",
    "b": "Possible pneumonia in the right lower lobe.",
    "c": None,
    "d": "Small left pleural effusion. No pneumothorax.",
}


class Failing:
    """Fails where the report says so; else everything is absent."""

    retry_unreadable = 0

    def __init__(self, name, settings):
        """Take what a factory is given."""

    def identity(self):
        """Return a name."""
        return {"engine": "failing"}

    def complete(self, prompts):
        """Yield an answer to each prompt."""
        for index, prompt in enumerate(prompts):
            text = prompt.item.variables["text"]
            if "fails" in text:
                yield index, Completion("", "error", "HTTP 500")
            elif "odd" in text:
                yield index, Completion("no JSON", "stop")
            else:
                answer = dict.fromkeys(prompt.frame.fields, "absent")
                yield index, Completion(json.dumps(answer), "stop")


def test_every_report_has_a_row_in_its_place():
    """Ids as given, the labels in published order, nothing invented for no text."""
    found = loop.label(REPORTS, release="extractor-v11")
    assert list(found.index) == list(REPORTS)
    names = [one.name for one in read_taxonomy(bundled() / "labels").labels]
    assert list(found.columns) == ["status", *names]
    assert found["status"].tolist() == ["answered", "answered", "no_text", "answered"]
    assert found["Pleural Effusion"].tolist()[:2] == ["present", "absent"]
    assert found["Pneumonia"]["b"] == "absent"
    assert found.loc["c"].drop("status").isna().all()
    assert found.loc["a"].equals(found.loc["d"])


def test_numbers_are_nullable_integers():
    """A missing label stays missing: NaN would turn the others into floats."""
    found = loop.label(REPORTS, release="extractor-v7", names="ids", values="numbers")
    assert found["pneumonia"].dtype == "Int8"
    assert found["pneumonia"].tolist()[:2] == [0, -1]
    assert found["pneumonia"]["c"] is pd.NA


def test_a_series_keeps_its_index_and_missing_values():
    """None, NaN, NA and blanks are reports without a word."""
    given = pd.Series(
        ["Clear lungs.", None, float("nan"), pd.NA, "  "], index=[5, 3, 9, 1, 7]
    )
    found = loop.label(given, extractor="extractor@v7")
    assert found.index.tolist() == [5, 3, 9, 1, 7]
    assert found["status"].tolist() == ["answered", *["no_text"] * 4]
    assert loop.label(["Clear lungs."]).index.tolist() == [0]
    assert len(loop.label([])) == 0


def test_what_failed_is_missing_and_told(monkeypatch):
    """Neither absent, nor an error that loses the rest."""
    monkeypatch.setitem(base._FACTORIES, "failing", Failing)
    texts = ["All is well.", "This one fails.", "An odd one."]
    found = loop.label(texts, extractor="extractor@v7", engine="failing:m")
    assert found["status"].tolist() == ["answered", "engine_failed", "unparsed"]
    assert found.drop(columns="status").isna().sum(axis=1).tolist()[1:] == [21, 21]
    problems = found.attrs["ranloop"]["problems"]
    assert len(problems) == 2 and any("HTTP 500" in one for one in problems)


def test_the_frame_says_what_it_is_of():
    """Prompt, engine and taxonomy with their digests."""
    about = loop.label(["Clear lungs."], release="extractor-v11").attrs["ranloop"]
    assert about["release"] == "extractor-v11" and about["extractor"] == "extractor@v11"
    for key in ("prompt_digest", "engine_digest", "taxonomy_digest"):
        assert len(about[key]) == 64
    assert about["engine"] == "rules" and about["problems"] == []


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        ("one report", {}, ValueError, "texts must be a mapping"),
        ([1], {}, ValueError, "item 0: expected a report as text, got int"),
        (["x"], {"names": "long"}, ValueError, "names"),
        (["x"], {"values": "yes"}, ValueError, "values"),
        (["x"], {"language": "English"}, DataError, "language"),
        (["x"], {"release": "extractor-v99"}, DataError, "extractor-v99"),
        (["x"], {"extractor": "none@v1"}, DataError, "none"),
        (
            ["x"],
            {"release": "extractor-v7", "extractor": "extractor@v7"},
            DataError,
            "release",
        ),
        (
            ["x"],
            {"extractor": ExtractorOptions(), "engine": "rules"},
            ValueError,
            "in ExtractorOptions",
        ),
    ],
)
def test_what_is_not_what_it_may_be_is_refused(texts, options, error, message):
    """The message names the parameter."""
    with pytest.raises(error, match=message):
        loop.label(texts, **options)


def test_a_language_that_nothing_covers_is_no_answer():
    """The rules for English would call everything absent."""
    found = loop.label(["Pequeño derrame pleural izquierdo."], language="es")
    assert found["status"].tolist() == ["engine_failed"]
    assert found.drop(columns="status").isna().all(axis=None)


def test_importing_loop_does_not_import_pandas():
    """`loop.label` comes when it is asked for."""
    code = "import sys, loop; print('pandas' in sys.modules, callable(loop.label))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_it_agrees_with_the_file_of_a_run(workspace, tmp_path):
    """The same reports by the same version: the same labels."""
    from loop.core.ledger import Actor
    from loop.labels.importing.importer import import_cohort
    from loop.labels.importing.source import ImportOptions
    from loop.run.label_table import write_labels
    from loop.run.task import run_prompt

    texts = {key: text for key, text in REPORTS.items() if text}
    source = tmp_path / "cases.csv"
    pd.Series(texts, name="text").rename_axis("case_id").to_csv(source)
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    run = run_prompt(workspace, "extractor", "small").run_id
    write_labels(workspace, tmp_path / "labels.csv", run)
    written = pd.read_csv(tmp_path / "labels.csv", index_col="case_id", dtype="str")
    called = loop.label(texts, extractor="extractor", workspace=workspace)
    assert np.array_equal(written.to_numpy(dtype=object), called.to_numpy(dtype=object))


def test_a_missing_value_of_pandas_is_no_report():
    """In a mapping as in a Series."""
    assert loop.label({"a": pd.NA})["status"].tolist() == ["no_text"]


def test_a_language_that_is_said_stands_above_how_a_text_looks():
    """An English report that is said to be German is not read as English."""
    found = loop.label([REPORTS["a"]], language="de")
    assert found["status"].tolist() == ["engine_failed"]
