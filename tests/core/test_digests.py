"""Digests: equal content, equal digest, and nothing else."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.digests import canonical_json, digest_json, digest_text, framed


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
