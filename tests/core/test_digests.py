"""Digests: equal content, equal digest, and nothing else."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.digests import (
    RepeatedKeyError,
    canonical_json,
    digest_json,
    digest_text,
    digest_texts,
    framed,
    unique_keys,
)


def test_key_order_does_not_matter():
    """A dictionary has no order, so its digest has none."""
    assert digest_json({"a": 1, "b": [2]}) == digest_json({"b": [2], "a": 1})


def test_text_digest_is_plain_sha256():
    """Anyone can check it with standard tools."""
    assert digest_text("abc") == hashlib.sha256(b"abc").hexdigest()


def test_broken_surrogate_is_hashed_not_fatal():
    """A text from a broken decoder still has an identity."""
    assert digest_text("a\ud800") != digest_text("a")


def test_not_a_number_is_refused():
    """NaN has no canonical spelling."""
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"x": float("nan")})


@given(st.lists(st.text()), st.lists(st.text()))
def test_framing_is_injective(one, other):
    """Different lists never give the same bytes."""
    assert (framed(one) == framed(other)) == (one == other)


def test_parts_are_framed_by_their_length_in_bytes():
    """By hand; a letter may take two bytes."""
    assert framed(["ab", "", "é"]) == b"2:ab0:2:\xc3\xa9"
    assert framed([]) == b""


@pytest.mark.parametrize(
    ("texts", "hashed"),
    [
        ({"text": "a"}, b"a"),
        ({"reference": "a"}, b"9:reference1:a"),
        ({"text": "a", "b": "c"}, b"1:b1:c4:text1:a"),
        ({}, b""),
    ],
)
def test_only_a_single_text_is_hashed_without_its_name(texts, hashed):
    """Else a reference could stand for a candidate; the order is that of the names."""
    assert digest_texts(texts) == hashlib.sha256(hashed).hexdigest()


def test_a_name_that_occurs_twice_is_refused_at_any_depth():
    """Of two values the last would win unseen; which name it is, is not said."""
    whole = json.loads('{"a": {"a": 1}, "b": 2}', object_pairs_hook=unique_keys)
    assert whole == {"a": {"a": 1}, "b": 2}
    for text in ('{"zebra": 1, "zebra": 1}', '[{"b": {"zebra": 1, "zebra": 2}}]'):
        with pytest.raises(RepeatedKeyError, match="occurs twice") as refused:
            json.loads(text, object_pairs_hook=unique_keys)
        assert "zebra" not in str(refused.value)


def test_the_canonical_text_has_one_spelling():
    """Keys in order, letters as they are, no spaces, at every depth."""
    value = {"b": [1, 2.5, None, True], "a": {"é": "未", "A": ""}}
    text = '{"a":{"A":"","é":"未"},"b":[1,2.5,null,true]}'
    assert canonical_json(value) == text.encode()
    assert digest_json(value) == hashlib.sha256(text.encode()).hexdigest()
    for number in (float("inf"), float("-inf")):
        with pytest.raises(ValueError, match="JSON compliant"):
            canonical_json([number])
    with pytest.raises(TypeError):
        canonical_json({"x": {1}})


def test_a_broken_surrogate_has_its_bytes_in_every_digest():
    """The three that an encoder that lets it pass writes."""
    raw = b"a\xed\xa0\x80"
    assert digest_text("a\ud800") == hashlib.sha256(raw).hexdigest()
    assert framed(["a\ud800"]) == b"4:" + raw
    assert digest_texts({"x": "a\ud800"}) == (
        hashlib.sha256(b"1:x4:" + raw).hexdigest()
    )
