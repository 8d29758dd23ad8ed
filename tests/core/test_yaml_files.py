"""YAML that we write reads back as what it was."""

import traceback

import pytest
from pydantic import BaseModel, ConfigDict

from loop.core.errors import DataError
from loop.core.yaml_files import check_model, dump_yaml, parse_yaml, read_model


@pytest.mark.parametrize(
    "word",
    ["1.5e5", "-0.5E3", "1.5", "12", "007", "true", "null", "~", "12:30", "0x1F"],
)
def test_a_word_that_looks_like_a_number_stays_a_word(word):
    """A term such as 1.5e5 must not come back as 150000.0."""
    assert parse_yaml(dump_yaml([word]), "test") == [word]


@pytest.mark.parametrize("number", [1.5, 150000.0, -0.5, 1e-7, 3])
def test_a_number_stays_a_number(number):
    """Thresholds of a protocol are numbers."""
    assert parse_yaml(dump_yaml([number]), "test") == [number]


class Strict(BaseModel):
    """A model that takes one number."""

    model_config = ConfigDict(extra="forbid")

    number: int


def test_neither_an_error_nor_its_cause_shows_what_a_file_holds():
    """A notebook prints causes too; keys and values may be texts."""
    given = {"number": "small zebra", "a zebra on the left": 1}
    with pytest.raises(DataError, match="number: Input should be") as refused:
        check_model(given, Strict, "file.yaml")
    assert "zebra" not in "".join(traceback.format_exception(refused.value))
    assert "(19 characters, not shown): there is no such field" in str(refused.value)


@pytest.mark.parametrize(("depth", "refused"), [(200, False), (201, True)])
def test_nesting_is_counted_in_a_text_that_opens_much(depth, refused):
    """What was closed again is no depth; what is too deep would end the process."""
    inner = depth - 1
    text = "[" + "[], " * 5000 + "[" * inner + "]" * inner + "]"
    if refused:
        with pytest.raises(DataError, match=r"x\.yaml: nested too deeply"):
            parse_yaml(text, "x.yaml")
    else:
        assert len(parse_yaml(text, "x.yaml")) == 5001


def test_what_is_written_has_its_order_and_its_letters():
    """A file is read by people: keys as given, words as they are spelled."""
    assert dump_yaml({"b": "未见", "a": ["é", {"d": 1, "c": 2}]}) == (
        "b: 未见\na:\n- é\n- d: 1\n  c: 2\n"
    )


@pytest.mark.parametrize(
    ("wrong", "listed"),
    [({"number": "x"}, 1), (dict.fromkeys(map(str, range(10))), 10)],
)
def test_ten_wrong_fields_are_listed_at_most(wrong, listed):
    """And the one that is missing is among them."""
    with pytest.raises(DataError) as refused:
        check_model(wrong, Strict, "file.yaml")
    assert str(refused.value).count("\n  ") == listed


def test_a_missing_field_and_a_file_of_another_kind_are_named():
    """The field by its name; the whole where there is no field."""
    with pytest.raises(DataError, match=r"\n  number: missing\n"):
        check_model({}, Strict, "file.yaml")
    with pytest.raises(DataError, match=r"\n  \(file\): "):
        check_model(["number"], Strict, "file.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a: 1\nb: c: d\n",
            ", line 2: not valid YAML (mapping values are not allowed in this context)",
        ),
        ("a: \x00", ": not valid YAML (cannot be read)"),
        (
            "a: 1\nb: !<zebra> x\n",
            ", line 2: not valid YAML (could not determine a constructor for the tag "
            "'zebra')",
        ),
        (
            "a: !<a%20zebra> x\n",
            ", line 1: not valid YAML (could not determine a constructor for the tag "
            "(7 characters, not shown))",
        ),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(text, said):
    """As far as there is one; what the file says itself is quoted only as a word."""
    with pytest.raises(DataError) as refused:
        parse_yaml(text, "f.yaml")
    assert str(refused.value) == f"f.yaml{said}. Correct that line."


def test_a_key_that_occurs_twice_is_told_with_its_line():
    """At any depth; the same key of another mapping is another one."""
    assert parse_yaml("a: {x: 1}\nb: {x: 2}\n", "f") == {"a": {"x": 1}, "b": {"x": 2}}
    with pytest.raises(DataError) as refused:
        parse_yaml("a:\n  - x: 1\n    y: 2\n    x: 3\n", "f.yaml")
    assert str(refused.value) == (
        "f.yaml, line 4: key 'x' occurs twice. Keep one of the two."
    )


def test_a_file_is_read_as_its_model(tmp_path):
    """Its name is in what is said of it."""
    path = tmp_path / "x.yaml"
    path.write_text("number: 3\n")
    assert read_model(path, Strict) == Strict(number=3)
    path.write_text("number: x\n")
    with pytest.raises(DataError, match=r"^/.*/x\.yaml does not have the expected for"):
        read_model(path, Strict)
    path.write_text("number: [\n")
    with pytest.raises(DataError, match=r"^/.*/x\.yaml, line 2: not valid YAML"):
        read_model(path, Strict)


def test_a_wrong_field_is_told_by_its_place():
    """Every part of it: a number for a row, a word for a field."""

    class Rows(BaseModel):
        rows: list[Strict]

    with pytest.raises(DataError) as refused:
        check_model({"rows": [{"number": 1}, {}, {"number": 2, "x": 1}]}, Rows, "f")
    assert str(refused.value) == (
        "f does not have the expected form:\n"
        "  rows.1.number: missing\n"
        "  rows.2.x: there is no such field; check its spelling and its place\n"
        "Correct these fields and run the command again."
    )
