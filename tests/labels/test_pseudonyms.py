"""Pseudonyms of patients: keyed, the same every time, and closed to everybody else."""

import stat

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.labels.pseudonyms import Pseudonyms, open_pseudonyms


def test_a_pseudonym_is_the_start_of_an_hmac() -> None:
    """RFC 4231, test case 2: key ``Jefe``, SHA-256; spaces around an id are none."""
    pseudonyms = Pseudonyms(b"Jefe")
    assert pseudonyms.of("what do ya want for nothing?") == "5bdcc146bf60754e"
    assert pseudonyms.of(" what do ya want for nothing?\n") == "5bdcc146bf60754e"
    assert pseudonyms.of("") == pseudonyms.of(" \t") == ""
    assert pseudonyms.of("\ud800") != pseudonyms.of("?")


def test_the_fingerprint_tells_keys_apart_and_gives_none_away() -> None:
    """Cohorts under different keys cannot be compared."""
    one, two = (Pseudonyms(key * 32).fingerprint for key in (b"a", b"b"))
    assert one != two
    assert len(one) == len(two) == 8
    assert Pseudonyms(b"a" * 32).fingerprint == one


def test_the_key_is_made_once_and_is_its_owner_s(workspace: WorkspacePaths) -> None:
    """Neither the file nor its folder is open to others."""
    first = open_pseudonyms(workspace)
    path = workspace.keys / "pseudonym"
    assert stat.S_IMODE(workspace.keys.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == f"{first.key.hex()}\n"
    assert len(first.key) == 32
    assert open_pseudonyms(workspace) == first


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it must hold 64 hex characters"),
        ("00" * 31, "it must hold 64 hex characters"),
        ("00" * 33, "it must hold 64 hex characters"),
        ("0" * 63, "cannot be read"),
        ("zz" * 32, "cannot be read"),
        ("é" * 64, "cannot be read"),
    ],
)
def test_a_damaged_key_is_never_replaced(
    workspace: WorkspacePaths, content: str, said: str
) -> None:
    """With another key the same patient would be somebody else."""
    open_pseudonyms(workspace)
    path = workspace.keys / "pseudonym"
    path.write_text(content, "utf-8")
    with pytest.raises(DataError, match=said):
        open_pseudonyms(workspace)
    assert path.read_text("utf-8") == content
