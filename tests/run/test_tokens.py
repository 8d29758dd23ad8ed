"""Tokens: the model's own tokenizer where it is, else an estimate that says so."""

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from loop.run.tokens import (
    ERROR_PERCENT,
    estimate_tokens,
    find_counter,
    find_tokenizer,
)

REPORT = (
    "FINDINGS: The heart is mildly enlarged. There is a small left pleural effusion "
    "with adjacent atelectasis. No pneumothorax is seen.\n"
    "IMPRESSION: Cardiomegaly with small left pleural effusion."
)


def save_tokenizer(folder):
    """Write a tokenizer that splits at white space, every word unknown to it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def cache(root, model, commit="abc123", main=True):
    """Lay out a Hugging Face cache with the tokenizer of `model`."""
    folder = root / f"models--{model.replace('/', '--')}"
    save_tokenizer(folder / "snapshots" / commit)
    if main:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / "main").write_text(f"{commit}\n")
    return {"HF_HUB_CACHE": str(root)}


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (REPORT, (49, 48, 44)),
        ("No focal consolidation, effusion or pneumothorax.", (12, 12, 11)),
    ],
)
def test_the_estimate_is_near_three_real_tokenizers(text, counted):
    """What cl100k, o200k and tekken made of these sentences; one alone is off more."""
    mean = sum(counted) / len(counted)
    assert estimate_tokens(text) == pytest.approx(mean, rel=2 * ERROR_PERCENT / 100)


def test_without_a_tokenizer_it_is_an_estimate_and_says_so():
    """A number without its error would be believed."""
    counter = find_counter("nobody/nothing", environment={"HF_HOME": "/nowhere"})
    assert not counter.exact
    assert counter.count is estimate_tokens
    assert f"estimated, +-{ERROR_PERCENT} %" in counter.remark
    assert "nobody/nothing" in counter.remark


def test_an_engine_without_a_model_is_estimated_too():
    """The embedded engine has no tokens, but the prompt may go elsewhere."""
    assert "no tokenizer" in find_counter(None).remark


def test_the_tokenizer_in_the_models_folder_is_used(tmp_path):
    """And its truncation, which serves other purposes, is not."""
    counter = find_counter(str(save_tokenizer(tmp_path / "model")))
    assert counter.exact
    assert counter.count("one two three four") == 4
    assert counter.count("") == 0
    assert "tokenizer of" in counter.remark


@pytest.mark.parametrize("revision", [None, "main", "abc123"])
def test_the_tokenizer_in_the_local_cache_is_used(tmp_path, revision):
    """By name of the revision or by its commit; nothing is downloaded."""
    environment = cache(tmp_path, "org/model")
    counter = find_counter("org/model", revision, environment=environment)
    assert counter.exact
    assert counter.count("one two") == 2


@pytest.mark.parametrize("revision", ["../../../other", ".", "..", "a/b", "a b", "\n"])
def test_a_revision_is_the_name_of_a_folder_and_no_path(tmp_path, revision):
    """Whatever lies where it would lead to: it comes from a file of settings."""
    environment = cache(tmp_path / "hub", "org/model")
    save_tokenizer(tmp_path / "hub" / "models--org--model" / "snapshots" / revision)
    assert find_tokenizer("org/model", revision, environment) is None


def test_a_snapshot_without_a_name_is_found(tmp_path):
    """Caches made by commit have no refs."""
    environment = cache(tmp_path, "org/model", main=False)
    assert find_counter("org/model", environment=environment).exact


def test_another_revision_is_not_taken_for_the_one_asked(tmp_path):
    """Its vocabulary may differ."""
    environment = cache(tmp_path, "org/model")
    assert not find_counter("org/model", "v2", environment=environment).exact


@pytest.mark.parametrize("name", ["HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_looked_for_where_its_libraries_do(tmp_path, name):
    """Both names put it below themselves."""
    below = "hub" if name == "HF_HOME" else "huggingface/hub"
    cache(tmp_path / below, "org/model")
    assert find_counter("org/model", environment={name: str(tmp_path)}).exact


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"model": 1}', "\x00"])
def test_a_file_that_is_no_tokenizer_is_not_used(tmp_path, content):
    """The estimate stands in, and says why."""
    (tmp_path / "tokenizer.json").write_text(content)
    counter = find_counter(str(tmp_path))
    assert not counter.exact
    assert "cannot be read" in counter.remark


def test_without_the_package_the_estimate_says_what_to_install(tmp_path, monkeypatch):
    """It is an extra."""
    save_tokenizer(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "[tokens]'`" in find_counter(str(tmp_path)).remark


@pytest.mark.parametrize("model", ["../../etc", "a/b/c", "a b", "", "~", "\x00"])
def test_a_name_that_is_no_model_is_no_path(tmp_path, model):
    """Names come from the command line; none leads out of the cache."""
    environment = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    assert not find_counter(model, environment=environment).exact


@pytest.mark.parametrize("part", ["a", "A", "1", "word ", "-", ". ", "肺", "é", "x\n"])
def test_what_is_longer_never_takes_fewer_tokens(part):
    """Whatever it is made of: a cost would be told too low."""
    sizes = [estimate_tokens(part * times) for times in range(1, 200)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 5 * sizes[0]


@given(st.text(max_size=60))
def test_any_text_is_counted(text):
    """No script, no surrogate and no length breaks the count."""
    assert 0 <= estimate_tokens(text) <= 3 * len(text) + 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_parts_add_up(one, other):
    """Frames and cases are counted apart: the seam costs a token or two."""
    parts = estimate_tokens(one) + estimate_tokens(other)
    assert abs(estimate_tokens(f"{one}\n{other}") - parts) <= 2


def test_a_lone_surrogate_does_not_break_a_real_tokenizer(tmp_path):
    """Texts of broken files may hold one."""
    counter = find_counter(str(save_tokenizer(tmp_path)))
    assert counter.count("one \ud800 two") == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"),
        ("HUGGINGFACE_HUB_CACHE", "HF_HOME"),
        ("HF_HOME", "XDG_CACHE_HOME"),
    ],
)
def test_the_nearer_name_of_the_cache_comes_first(tmp_path, before, after):
    """Where both are given, as its libraries do; an empty one is none."""
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    below = {"HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}
    cache(tmp_path / "here" / below.get(before, ""), "org/here")
    cache(tmp_path / "there" / below.get(after, ""), "org/there")
    both = {before: here, after: there}
    assert find_tokenizer("org/here", None, both)
    assert not find_tokenizer("org/there", None, both)
    assert find_tokenizer("org/there", None, {before: "", after: there})


def test_without_a_name_the_cache_is_at_home(tmp_path, monkeypatch):
    """Its usual place."""
    monkeypatch.setenv("HOME", str(tmp_path))
    cache(tmp_path / ".cache" / "huggingface" / "hub", "org/model")
    assert find_tokenizer("org/model", None, {})


@pytest.mark.parametrize(("main", "found"), [(True, "abc"), (False, "abd")])
def test_of_several_snapshots_the_named_or_the_last_counts(tmp_path, main, found):
    """What the cache calls main, as long as it calls anything so."""
    environment = cache(tmp_path, "org/model", "abd", main=False)
    cache(tmp_path, "org/model", "abc", main=main)
    path = find_tokenizer("org/model", None, environment)
    assert path.parent.name == found


def test_a_named_snapshot_without_a_tokenizer_lends_none(tmp_path):
    """The other snapshot is another model's."""
    environment = cache(tmp_path, "org/model")
    (tmp_path / "models--org--model" / "refs" / "main").write_text("gone\n")
    assert find_tokenizer("org/model", None, environment) is None
    assert find_tokenizer("org/model", "abc123", environment)


def test_no_mark_of_a_tokenizer_is_counted(tmp_path):
    """Neither the start of a text nor what makes all texts equally long."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[S]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[S] $A", special_tokens=[("[S]", 1)]
    )
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    count = find_counter(str(tmp_path)).count
    assert [count(text) for text in ("", "one", "one two")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("effect " * 100, 83),
        ("effects " * 100, 110),
        ("THE " * 100, 83),
        ("LUNG " * 100, 119),
        ("12 " * 100, 230),
        ("1234 " * 100, 460),
        ("\r\n" * 100, 1),
        (" \n" * 100, 90),
        (". " * 100, 130),
        ("... " * 100, 156),
        ("肺" * 100, 130),
        ("é " * 100, 60),
    ],
)
def test_each_class_of_characters_has_its_price(text, tokens):
    """As fitted once; another price is another fit, to be measured again."""
    assert estimate_tokens(text) == tokens
