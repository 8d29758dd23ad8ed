"""The annotation guideline: one text for readers and models, in three forms."""

import dataclasses
import re
from io import BytesIO

import docx
import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Clarification, Exemplar, Guide, Value
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_version
from loop.review.guideline import (
    VALUES,
    Guideline,
    GuidelineEntry,
    build_guideline,
    write_guideline,
)

SHIPPED = WorkspacePaths(bundled())
TAXONOMY = read_taxonomy(SHIPPED.labels)
V7 = read_version(SHIPPED, "extractor@v7")


def words(file):
    """Return the words of a written guideline, whatever its form."""
    if file.suffix != ".docx":
        return re.sub(r"<[^>]*>|\\", " ", file.read_text("utf-8"))
    document = docx.Document(BytesIO(file.read_bytes()))
    cells = [c.text for t in document.tables for row in t.rows for c in row.cells]
    return "\n".join([*(p.text for p in document.paragraphs), *cells])


@pytest.mark.parametrize("form", ["html", "md", "docx"])
def test_every_form_says_all_of_the_taxonomy(form, tmp_path):
    """A reader who was given the Word file was told what the page says."""
    file = tmp_path / f"g.{form}"
    write_guideline(SHIPPED, file, prompt="extractor@v7")
    text = " ".join(words(file).split()).replace("&#34;", '"').replace("&amp;", "&")
    assert TAXONOMY.digest[:12] in text
    assert V7.digest[:12] in text
    for label in TAXONOMY.labels:
        for said in (*label.counts, *label.does_not_count, *label.uncertain_when):
            assert said in text, said
    assert "A skin fold on the right imitates a pleural edge." in text


def test_a_page_that_is_printed_alone_says_of_which_guideline_it_is(tmp_path):
    """Readers print the page of one label and pin it to the wall."""
    page, word = tmp_path / "g.html", tmp_path / "g.docx"
    source = f"Annotation guideline; {'; '.join(build_guideline(TAXONOMY).sources)}"
    assert TAXONOMY.digest[:12] in source
    write_guideline(SHIPPED, page)
    assert page.read_text("utf-8").count(source) == len(TAXONOMY.labels)
    write_guideline(SHIPPED, word)
    (section,) = docx.Document(BytesIO(word.read_bytes())).sections
    assert section.footer.paragraphs[0].text == source


def test_the_taxonomy_alone_has_no_examples():
    """Readers who label for the reference are not told what a prompt was taught."""
    entries = build_guideline(TAXONOMY).entries
    assert [one.name for one in entries] == [label.name for label in TAXONOMY.labels]
    assert not any(one.examples or one.rulings or one.in_prompt for one in entries)


def test_patterns_for_rules_are_not_shown():
    """A star is no word that anybody says."""
    shown = [
        item
        for entry in build_guideline(TAXONOMY, V7).entries
        for _, items in entry.lists
        for item in items
    ]
    assert "plate like" in shown
    assert not [item for item in shown if "*" in item or "..." in item]


def test_a_ruling_on_a_pattern_is_not_shown():
    """Readers are shown rulings on words; a pattern is for the engine `rules`."""
    rules = [
        Clarification(phrase=phrase, value=Value.UNCERTAIN, note="Why.")
        for phrase in ("blunted angle", "blunt* angle", "angle ... blunted")
    ]
    guide = dataclasses.replace(
        V7.guides[0], clarifications=tuple(rules), terms=("a*", "b")
    )
    version = dataclasses.replace(V7, guides=(guide,))
    (entry,) = [
        one for one in build_guideline(TAXONOMY, version).entries if one.rulings
    ]
    assert entry.rulings == (("blunted angle", "uncertain", "Why."),)
    assert dict(entry.lists)["Also called"] == ("b",)


@pytest.mark.parametrize("read", [True, False])
def test_readers_are_told_of_no_finding_where_they_label_it(read):
    """In its own entry and in no other."""
    entries = build_guideline(TAXONOMY, no_finding_read=read).entries
    told = [one.name for one in entries if "For readers" in dict(one.lists)]
    assert told == (["No Finding"] if read else [])


def test_a_definition_that_differs_is_shown_beside_the_taxonomys():
    """Two definitions of one label are seen, not merged."""
    label = TAXONOMY.find("pneumonia")
    guide = Guide(label="pneumonia", name="Pneumonia", definition=label.definition)
    same = dataclasses.replace(V7, guides=(guide,))
    other = dataclasses.replace(guide, definition="Any infection of the lung.")
    differs = dataclasses.replace(V7, guides=(other,))
    shown = {
        name: {one.name: one.in_prompt for one in build_guideline(TAXONOMY, v).entries}
        for name, v in (("same", same), ("differs", differs))
    }
    assert shown["same"]["Pneumonia"] == ""
    assert shown["differs"]["Pneumonia"] == "Any infection of the lung."


@pytest.mark.parametrize("form", ["html", "md", "docx"])
def test_markup_in_a_guide_is_text(form, tmp_path, monkeypatch):
    """A guide may come from anybody: it is never markup."""
    hostile = "<script>alert(1)</script>"
    example = Exemplar(text=hostile, value=Value.PRESENT, evidence=hostile)
    guide = dataclasses.replace(V7.guides[0], exemplars=(example,), terms=(hostile,))
    version = dataclasses.replace(V7, guides=(guide,))
    monkeypatch.setattr("loop.review.guideline.read_version", lambda *_: version)
    file = tmp_path / f"g.{form}"
    write_guideline(SHIPPED, file, prompt="extractor@v7")
    if form == "docx":
        assert hostile in words(file)
    else:
        assert "<script" not in file.read_text("utf-8")


def test_another_ending_is_refused(tmp_path):
    """The message names the forms."""
    with pytest.raises(DataError, match=r"\.html, \.md, \.docx"):
        write_guideline(SHIPPED, tmp_path / "g.pdf")


def test_the_verb_says_what_it_wrote(tmp_path):
    """Whoever hands it out knows which versions it is of."""
    file = tmp_path / "g.md"
    CliRunner().invoke(app, ["init", str(tmp_path / "ws")])
    done = CliRunner().invoke(
        app, ["guideline", "--out", str(file), "-w", str(tmp_path / "ws")]
    )
    assert done.exit_code == 0, done.output
    assert TAXONOMY.digest[:12] in done.output
    assert file.exists()


def small():
    """Return a taxonomy of two labels, and a version that asks for one of them."""
    edema, mass = (TAXONOMY.find(name) for name in ("edema", "lung_lesion"))
    taxonomy = dataclasses.replace(
        TAXONOMY,
        labels=(
            dataclasses.replace(
                edema,
                definition="Wet lungs.",
                counts=("Wet.",),
                does_not_count=(),
                uncertain_when=("Damp.",),
            ),
            dataclasses.replace(
                mass,
                definition="A lump.",
                counts=(),
                does_not_count=("A nipple.",),
                uncertain_when=(),
            ),
        ),
        reading=("Read all.", "Then judge."),
    )
    guide = Guide(
        label="edema",
        name="Oedema",
        definition="Water in the lungs.",
        terms=("wet*", "water"),
        clarifications=(
            Clarification(phrase="moist", value=Value.PRESENT, note="It is wet."),
            Clarification(phrase="dry", value=Value.ABSENT),
        ),
        exemplars=(
            Exemplar(text="Lungs wet.", value=Value.PRESENT, evidence="wet"),
            Exemplar(
                text="Lungs dry.", value=Value.ABSENT, evidence="dry", why="No water."
            ),
        ),
    )
    return taxonomy, dataclasses.replace(V7, guides=(guide,))


def test_a_guideline_says_what_taxonomy_and_version_say():
    """Nothing that is empty, and nothing of a label that the version does not ask."""
    taxonomy, version = small()
    found = build_guideline(taxonomy, version)
    assert found == Guideline(
        title="Annotation guideline",
        sources=(
            f"Taxonomy version {taxonomy.version}, digest {taxonomy.digest[:12]}",
            f"Prompt extractor@v7, digest {version.digest[:12]}",
        ),
        reading=("Read all.", "Then judge."),
        entries=(
            GuidelineEntry(
                name=taxonomy.labels[0].name,
                definition="Wet lungs.",
                lists=(
                    ("Counts", ("Wet.",)),
                    ("Uncertain", ("Damp.",)),
                    ("Also called", ("water",)),
                ),
                rulings=(("moist", "present", "It is wet."), ("dry", "absent", "")),
                examples=version.guides[0].exemplars,
                in_prompt="Water in the lungs.",
            ),
            GuidelineEntry(
                name=taxonomy.labels[1].name,
                definition="A lump.",
                lists=(("Does not count", ("A nipple.",)),),
                rulings=(),
                examples=(),
                in_prompt="",
            ),
        ),
    )


def test_a_word_file_holds_all_of_a_guideline_in_its_order(tmp_path, monkeypatch):
    """Headings by their level, items of lists, and the examples as a table."""
    taxonomy, version = small()
    monkeypatch.setattr("loop.review.guideline.read_version", lambda *_: version)
    monkeypatch.setattr("loop.review.guideline.read_taxonomy", lambda *_: taxonomy)
    file = tmp_path / "g.docx"
    made = write_guideline(SHIPPED, file, prompt="extractor@v7")
    document = docx.Document(BytesIO(file.read_bytes()))
    said = [
        (one.style.name, one.text) for one in document.paragraphs if one.text.strip()
    ]
    bullet, first, second = "List Bullet", "Heading 1", "Heading 2"
    names = [one.name for one in taxonomy.labels]
    assert said == [
        ("Title", "Annotation guideline"),
        *(("Normal", source) for source in made.sources),
        (first, "Values"),
        *((bullet, f"{value}: {meaning}") for value, meaning in VALUES.items()),
        (first, "Rules of reading"),
        (bullet, "Read all."),
        (bullet, "Then judge."),
        (first, names[0]),
        ("Normal", "Wet lungs."),
        ("Normal", "In the prompt version: Water in the lungs."),
        (second, "Counts"),
        (bullet, "Wet."),
        (second, "Uncertain"),
        (bullet, "Damp."),
        (second, "Also called"),
        (bullet, "water"),
        (second, "Rulings"),
        (bullet, "moist: present. It is wet."),
        (bullet, "dry: absent"),
        (second, "Examples"),
        (first, names[1]),
        ("Normal", "A lump."),
        (second, "Does not count"),
        (bullet, "A nipple."),
    ]
    (table,) = document.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Text", "Value", "Why"],
        ["Lungs wet.", "present", '"wet"'],
        ["Lungs dry.", "absent", "No water."],
    ]
    about = document.core_properties
    assert (about.title, about.comments) == (made.title, "; ".join(made.sources))


@pytest.mark.parametrize(
    ("name", "ending"), [("g.pdf", ".pdf"), ("guide", "nothing"), ("g.", "nothing")]
)
def test_a_file_of_another_ending_is_told_its_own(tmp_path, name, ending):
    """Capital letters are no other ending."""
    with pytest.raises(DataError, match=f"ends in {re.escape(ending)}\\. Name a file"):
        write_guideline(SHIPPED, tmp_path / name)
    write_guideline(SHIPPED, tmp_path / "g.MD")
    assert (tmp_path / "g.MD").is_file()
