"""guides.yaml: what is read back is what was written."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.core.records import Clarification, Exemplar, Guide, Lexicon, Value
from loop.prompts.guides import dump_guides, parse_guides

PHRASES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20
).filter(lambda text: text == text.strip() and text)
LISTS = st.lists(PHRASES, max_size=3).map(tuple)
RULES = st.lists(
    st.builds(
        Clarification,
        phrase=PHRASES,
        value=st.sampled_from(Value),
        note=st.just("") | PHRASES,
    ),
    max_size=2,
).map(tuple)
LEXICONS = st.lists(
    st.builds(
        Lexicon,
        language=st.sampled_from(["en", "zh", "no"]),
        terms=LISTS,
        exclusions=LISTS,
        clarifications=RULES,
    ),
    max_size=2,
    unique_by=lambda one: one.language,
).map(tuple)
GUIDES = st.builds(
    Guide,
    label=st.sampled_from(["edema", "no", "null", "1"]),
    name=PHRASES,
    definition=PHRASES,
    counts=LISTS,
    does_not_count=LISTS,
    uncertain_when=LISTS,
    lexicon=LEXICONS,
    terms=LISTS,
    exclusions=LISTS,
    clarifications=RULES,
    exemplars=st.lists(
        st.builds(
            Exemplar,
            text=PHRASES,
            value=st.sampled_from(Value),
            evidence=PHRASES,
            why=st.just("") | PHRASES,
        ),
        max_size=2,
    ).map(tuple),
    implies=LISTS,
)


@given(guide=GUIDES)
def test_every_guide_survives_the_file(guide):
    """Words such as no, on, 1 and ~ stay words."""
    (back,) = parse_guides(dump_guides([guide]), "guides.yaml")
    assert back == guide


def test_file_order_is_kept(second):
    """The order of labels is the order asked."""
    assert parse_guides(dump_guides(second.guides), "x") == second.guides


def test_nothing_is_written_where_there_is_nothing(first):
    """An empty list says nothing to whoever reads the file, the lexicon's neither."""
    kept = Lexicon(language="en", terms=("wet",))
    written = dump_guides([replace(first.guides[0], lexicon=(kept,))])
    assert written == (
        "edema:\n  name: Edema\n  definition: Fluid in the lung.\n"
        "  lexicon:\n    en:\n      terms:\n      - wet\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("edema: {name: E}", "edema.definition: missing"),
        ("edema: {name: E, definition: d, term: a}", "edema.term: there is no such"),
        ("edema: {name: E, definition: d, terms: a}", "edema.terms"),
        ("edema: {name: E, definition: d}\nedema: {}", "'edema' occurs twice"),
        ("edema: [", "not valid YAML"),
        (
            "edema: {name: E, definition: d, clarifications: [{phrase: p, value: no}]}",
            "clarifications.0.value: must be one of present, absent, uncertain, "
            "significant, insignificant, no_error",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_field(text, message):
    """A typing error in a guide must not silently drop content."""
    with pytest.raises(DataError, match=r"guides\.yaml") as caught:
        parse_guides(text, "guides.yaml")
    assert message in str(caught.value)
