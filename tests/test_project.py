"""The promises the project makes about itself."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

import loop
from loop import cli
from loop.cli.main import SECTIONS, app
from tests import contents

PACKAGE = Path(loop.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
COMMANDS = sorted(typer.main.get_command(app).commands)


@pytest.fixture(scope="module")
def trees():
    """Return each module's path with its syntax tree."""
    return {path: ast.parse(path.read_text("utf-8")) for path in MODULES}


def test_every_module_says_what_it_is_for(trees):
    """Each module opens with a sentence."""
    silent = [
        str(path.relative_to(PACKAGE))
        for path, tree in trees.items()
        if not ast.get_docstring(tree)
    ]
    assert silent == []


def test_the_contents_page_names_every_module():
    """Whoever opens CONTRIBUTING sees the whole house as it is."""
    assert contents.PAGE.read_text("utf-8") == contents.written()


def test_the_diagram_of_the_rooms_shows_every_layer():
    """In the order in which the import contract has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    rooms = contents.PAGE.read_text("utf-8").split("## The rooms of `loop/`\n")[1]
    diagram = rooms.split("```")[1]
    layers = re.findall(r"^(\w+(?: \| \w+)*)(?:  |$)", diagram, re.MULTILINE)
    assert layers == contract["layers"]


def test_a_class_name_means_one_thing(trees):
    """A reader who has met a name need not learn it again in another room."""
    places = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


PARALLEL = {
    "base": "what the engines share, and the contracts, and the metrics",
    "documents": "a subject's own documents, beside the subject",
    "engine": "one in the folder of each engine",
    "records": "what a room speaks in, and what it is read with first",
    "page": "of each page of the workbench: its wiring",
    "state": "of each page: what it rests on",
    "view": "of each page: what it shows",
    "events": "of each page: what happens on it",
}
"""Names of modules that are the same part of parallel things."""


def test_a_module_name_means_one_thing():
    """Who is told of `ledger` knows where to look; verbs are named as users type."""
    places = defaultdict(list)
    for path in MODULES:
        place = path.relative_to(PACKAGE)
        if place.parts[0] != "cli" and path.stem != "__init__":
            places[path.stem].append(str(place))
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: several[name] for name in several.keys() - PARALLEL.keys()} == {}


OTHER_RECORDS = {
    # They change while something is read, merged, counted or shown.
    ("frozen",): {"_Gathered"},
    ("frozen", "kw_only"): {
        *("ProgressBar", "_Tries", "VocabularyEntry", "ObjectReader", "_Wording"),
        *("_Merge", "UsageCount", "Job", "EventRegistry", "_StopSignal", "_Report"),
        "_AttemptTally",
    },
    # They keep what was computed once.
    ("slots",): {"Prompt", "AppContext"},
    # A field or two, whose order is plain.
    ("kw_only",): {
        *("WorkspacePaths", "Vocabulary", "_Question", "Pseudonyms", "WordSeal"),
        *("JsonPairs", "_CohortItems", "Proxies"),
    },
}
"""What these records are not, of all that a record is."""


def test_a_record_is_frozen_slotted_and_made_by_names(trees):
    """Nobody changes what another has read; no two fields change places unseen."""
    found = defaultdict(set)
    for tree in trees.values():
        for node in ast.walk(tree):
            for mark in getattr(node, "decorator_list", ()):
                if ast.unparse(mark).startswith("dataclass"):
                    given = {one.arg for one in mark.keywords if one.value.value}
                    wanted = ("frozen", "slots", "kw_only")
                    lacks = tuple(one for one in wanted if one not in given)
                    found[lacks].add(node.name)
    assert len(found.pop(())) >= 200
    assert found == OTHER_RECORDS


LIBRARY = {
    # For those who use the package from Python; the manual and notebooks show them.
    *("RanScoreMetric", "RanScoreReward", "judge_pairs", "load_export"),
    *("accuracy_optimism", "certification_power", "positives_needed"),
    *("replace_votes", "rogan_gladen_f1", "write_reference"),
    # What `judge_pairs` returns, to be held against experts, and for marked pairs.
    *("judged_texts", "judge_marked_pairs"),
    # Named in the table of engines, as a string.
    "make_replay",
}
"""Public names that nothing in the package itself uses."""


def test_every_public_name_is_used(trees):
    """What only its own tests call is dead."""
    public, used = set(), set()
    for tree in trees.values():
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        named = {node.name for node in tree.body if isinstance(node, kinds)}
        public |= {name for name in named if not name.startswith("_")}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
    assert public - used == LIBRARY


def test_help_imports_nothing_heavy():
    """`ranloop --help` must answer at once."""
    heavy = ("numpy", "pandas", "scipy", "statsmodels", "jinja2", "pydantic", "sqlite3")
    code = (
        f"import sys, loop.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_the_help_that_the_list_shows(name):
    """A verb says the same of itself in both places."""
    command = typer.main.get_command(app).commands[name]
    lines = [verbs[name] for verbs in SECTIONS.values() if name in verbs]
    assert lines == [command.help.splitlines()[0]]


def test_every_line_of_the_help_is_whole_in_80_columns():
    """What ends in three dots has not said what it is for."""
    shown = CliRunner().invoke(app, ["--help"], terminal_width=80).output
    assert [line for line in shown.splitlines() if len(line) > 78] == []
    for verbs in SECTIONS.values():
        for name, line in verbs.items():
            assert re.search(rf"^  {name} +{re.escape(line)}$", shown, re.MULTILINE)


def test_every_module_of_a_verb_is_registered():
    """A verb is found by the name of its module."""
    folder = Path(cli.__file__).parent
    verbs = {p.stem for p in folder.glob("*.py") if "\ndef register(" in p.read_text()}
    own = {name.replace("-", "_") for name in COMMANDS} - {"withdraw", "restore", "try"}
    own.add("tryout")  # `try` is a word of Python's.
    assert verbs == own


def test_the_readme_can_be_read_in_one_sitting():
    """Numbers, tables and reference are in the manual."""
    assert len(README.read_text("utf-8").splitlines()) <= 150


def headings(page):
    """Return the anchors of a page's headings, as GitHub and the manual make them."""
    lines = re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in lines}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_a_link_leads_somewhere(name):
    """To a file of the project, and to a heading in it."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", (ROOT / name).read_text())
    assert links
    for path, anchor in links:
        page = ROOT / (path or name)
        assert page.is_file(), path
        assert not anchor or anchor in headings(page), (path, anchor)


def test_a_number_that_the_readme_boasts_of_is_in_the_manual():
    """There it has its interval, its caveat and the command that measures it."""
    boasts = README.read_text("utf-8").split("## Why\n")[1].split("\n## ")[0]
    manual = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*/*.md"))
    numbers = re.findall(r"\d[\d,.]*\d", boasts)
    assert len(numbers) >= 10
    assert [one for one in numbers if one not in manual] == []


def test_the_readme_counts_the_versions_that_were_made():
    """Six after v1 by `ranloop revise`, as the results say, the others by drafts."""
    newest = max(int(one.name[1:]) for one in (ROOT / "prompts/extractor").glob("v*"))
    numbers = {3: "three", 4: "four", 5: "five", 6: "six"}
    readme = " ".join(README.read_text("utf-8").split())
    assert f"Six rounds of verdicts and {numbers[newest - 7]} drafts" in readme


def test_a_version_has_a_dated_note_and_can_be_cited():
    """Whoever has version N finds what is in it, and cites that one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    notes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    dated = re.findall(r"^## \[(.+)\] - (\d{4}-\d\d-\d\d)$", notes, re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (project["version"], str(cited["date-released"])) in dated
    assert cited["version"] == project["version"]
    assert cited["authors"] == [{"name": "ranloop maintainers"}]
