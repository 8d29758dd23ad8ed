"""A small release to check and to attack."""

from pathlib import Path

import pytest

from tests.release.small import Small, make_small
from tests.review.revise.conftest import wavering as wavering


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """Make a release that two people signed."""
    return make_small(tmp_path)
