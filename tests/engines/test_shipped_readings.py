"""The shipped extractor on sentences a radiologist might write.

They were written without looking at any report or at the cues, and those the engine
read wrongly at first led to the cues and scopes it has now.
"""

from pathlib import Path

import pytest

from loop.core.paths import WorkspacePaths, bundled
from loop.core.yaml_files import parse_yaml
from loop.engines.rules.engine import ReportReader
from loop.prompts.catalog import read_version
from tests.engines.reading import CUES, entries

READINGS = Path(__file__).parents[1] / "golden" / "readings.yaml"


@pytest.fixture(scope="module")
def reader():
    """Return the rules engine with the guides of the newest shipped version."""
    guides = read_version(WorkspacePaths(bundled()), "extractor@latest").guides
    return ReportReader(guides, [one.label for one in guides], CUES)


@pytest.mark.parametrize(
    "reading",
    parse_yaml(READINGS.read_text("utf-8"), READINGS),
    ids=lambda one: one["text"],
)
def test_sentence_is_read_as_a_radiologist_means_it(reader, reading):
    """Each sentence states the status of one to four labels."""
    answer = entries(reader.answer(reading["text"]))
    said = {label: answer[label]["value"] for label in reading["says"]}
    assert said == reading["says"]
