"""The engine under garbage: no crash, no invented evidence, linear time."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError, EngineError
from loop.core.records import Item, Prompt, PromptFrame
from loop.engines.base import Settings, get_engine
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.sections import SectionFinder
from tests.calls import count_calls
from tests.engines.reading import CUES, entries, guide

GUIDES = [
    guide("effusion", "effusion", "fluid ... pleura*"),
    guide("heart", "heart ... enlarged", exclusions=("heart failure",)),
    guide("积液", "胸腔积液"),
]
READER = ReportReader(GUIDES, [one.label for one in GUIDES], CUES)
WORDS = st.sampled_from(
    [
        "no",
        "not",
        "may",
        "or",
        "and",
        ",",
        ".",
        ";",
        ":",
        "XXXX",
        "cannot exclude",
        "\n",
        "  ",
        "effusion",
        "fluid",
        "pleural",
        "heart",
        "is",
        "enlarged",
        "未见",
        "，",
        "。",
        "胸腔积液",
        "İ",
    ]
)


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join)))
def test_any_text_gives_valid_json_with_true_evidence(text):
    """Every span lies in the text and holds words."""
    raw = READER.answer(text)
    if not raw:
        return
    answer = entries(raw)
    assert list(answer) == [one.label for one in GUIDES]
    for one in answer.values():
        assert one["value"] in {"present", "absent", "uncertain"}
        if "span" in one:
            start, end = one["span"]
            assert 0 <= start < end <= len(text)
            assert text[start:end].strip() == text[start:end]


@given(st.lists(WORDS).map(" ".join))
def test_remembered_sentences_do_not_change_an_answer(text):
    """The memo is an optimisation only."""
    fresh = ReportReader(GUIDES, [one.label for one in GUIDES], CUES, memo=0)
    assert READER.answer(text) == fresh.answer(text)


@pytest.mark.parametrize(
    "unit",
    [
        *("no effusion ", "a", " ", "\n", "heart ", "未见胸腔积液", "FINDINGS: "),
        *(
            "[ ] effusion ",
            "effusion? ",
            "efusion ",
            "effusion or heart ",
            "not seen on ",
        ),
        *("no further significant ", "left right ", "effusion: no, ", "Small Heart "),
    ],
)
def test_ten_times_the_text_is_ten_times_the_work(unit):
    """It grows with the length, not with its square."""
    reader = ReportReader(GUIDES, [one.label for one in GUIDES], CUES, memo=0)

    def work(size):
        text = unit * (size // len(unit))
        reader.answer(text)
        return count_calls(lambda: reader.answer(text))

    assert work(50_000) < 15 * work(5_000) + 1000


def test_a_term_of_many_equal_parts_takes_linear_time():
    """Neither a lexicon nor a text can make the engine compare all with all."""
    guides = [guide("x", " ... ".join(["a"] * 12), "b ... a ... b ... a ... b")]
    reader = ReportReader(guides, ["x"], CUES, memo=0)

    def work(size):
        assert '"present"' in reader.answer("a b " * size)
        return count_calls(lambda: reader.answer("a b " * size))

    assert work(10_000) < 15 * work(1_000) + 1000


def test_field_without_a_guide_is_refused():
    """The engine says what is missing instead of answering absent."""
    with pytest.raises(EngineError, match="no guide for lung_lesion"):
        ReportReader(GUIDES, ["lung_lesion"], CUES)


def _prompt(text, guides, language="en"):
    frame = PromptFrame(
        call="joint", messages=(), fields=("effusion",), schema={}, guides=guides
    )
    item = Item(id="1", variables={"text": text}, language=language)
    return Prompt(frame=frame, tail=text, item=item)


def test_case_without_text_fails_instead_of_being_absent(labels_folder):
    """Silence about everything is not a normal report."""
    engine = get_engine("rules", Settings(labels=labels_folder))
    [(index, completion)] = engine.complete([_prompt(" \n", tuple(GUIDES))])
    assert (index, completion.finish_reason) == (0, "error")
    assert completion.error == "the case has no text"


@pytest.mark.parametrize("text", ["INDICATION: effusion?", "\nComparison: none\n"])
def test_text_with_nothing_to_read_fails_instead_of_being_absent(labels_folder, text):
    """Only an indication: the report itself says nothing of any label."""
    engine = get_engine("rules", Settings(labels=labels_folder))
    [(_, completion)] = engine.complete([_prompt(text, tuple(GUIDES))])
    assert completion.finish_reason == "error"
    assert "not read" in completion.error


def test_language_without_cues_fails_instead_of_being_absent(labels_folder):
    """A text the engine cannot read is not a normal report."""
    engine = get_engine("rules", Settings(labels=labels_folder))
    [(_, completion)] = engine.complete([_prompt("Плеврит.", tuple(GUIDES), "ru")])
    assert completion.finish_reason == "error"
    assert "labels/cues/ru.yaml" in completion.error


def test_prompt_without_guides_fails(labels_folder):
    """A judge's prompt has no guides: rules cannot answer it and says so."""
    engine = get_engine("rules", Settings(labels=labels_folder))
    [(_, completion)] = engine.complete([_prompt("Effusion.", ())])
    assert completion.finish_reason == "error"


def test_identity_changes_with_the_cues(labels_folder, tmp_path):
    """Another cue is another engine: cached answers are not reused."""
    folder = tmp_path / "cues"
    folder.mkdir()
    for path in (labels_folder / "cues").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        (folder / path.name).write_text(text.replace("    - without\n", ""), "utf-8")
    ours = get_engine("rules", Settings(labels=labels_folder)).identity()
    theirs = get_engine("rules", Settings(labels=tmp_path)).identity()
    assert ours != theirs


def test_a_phrase_with_a_slot_that_is_not_there_is_refused():
    """A typing error in a cue file must not make its cue vanish."""
    (english, *_) = CUES
    with pytest.raises(DataError, match=r"no slot 'sen', which a cue of 2 words"):
        list(english.spelled_out("not <sen>"))
    wide = "<cannot> <sure> <excluded> <seen> <consider>"
    with pytest.raises(DataError, match="stands for more than 2,000 phrases"):
        list(english.spelled_out(wide))


def test_cues_of_before_are_read_without_the_newer_lists(tmp_path):
    """A workspace keeps its own cue files."""
    (tmp_path / "cues").mkdir()
    path = tmp_path / "cues" / "en.yaml"
    path.write_text('language: en\nwords: true\nnegation: {before: ["no"]}\n', "utf-8")
    fields = [one.label for one in GUIDES]
    reader = ReportReader(GUIDES, fields, read_cues(tmp_path))
    text = "No effusion [ ]. Heart is Enlarged. Possible efusion or Heart? over"
    answer = entries(reader.answer(text))
    assert [one["value"] for one in answer.values()] == ["absent", "present", "absent"]


def test_nothing_is_read_without_cues(tmp_path):
    """An engine that knows no negation would call every named finding present."""
    (tmp_path / "cues").mkdir()
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="no cue files in "):
            read_cues(folder)


def test_headings_are_those_that_one_search_would_find():
    """They are looked for in few places; a search of every place is too slow."""
    names = [name for cues in CUES for kind in cues.sections for name in kind[1]]
    either = "|".join(
        re.escape(name).replace(r"\ ", r"\s+")
        for name in sorted(names, key=len, reverse=True)
    )
    slow = re.compile(
        rf"(?:^|(?<=\n)|(?<=[.!?;。；])|(?<=\s)(?=(?-i:[A-Z]{{4}})))[ \t]*"
        rf"(?:\d+[.)]\s*)?({either})[ \t]*(?:[:：]|(?<=(?-i:[A-Z]))\r?\n)",
        re.IGNORECASE,
    )
    rng = random.Random(8)
    pieces = [
        *(change(name) for name in names for change in (str, str.upper, str.title)),
        *("\n", "\r\n", ". ", " ", "  ", "\t", ":", "：", ";", "。", "1) ", "2.\n"),
        *("No effusion", "PORT", "\u017ftudy", "\xa0", "ends in findings"),
    ] + [":", "\n", ". "] * 60
    finder, found = SectionFinder(CUES), 0
    for _ in range(4_000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 25)))
        wanted = [(one.span(), one.group(1)) for one in slow.finditer(text)]
        assert [
            (one.span(), one.group(1)) for one in finder._headings(text)
        ] == wanted, text
        found += len(wanted)
    assert found > 1_500
