"""The mutant tester replaces functions in a running process."""

import gc

from tests.mutant_tests import exchange


def test_a_function_is_exchanged_in_a_process_that_was_frozen(tmp_path):
    """Else each mutant would be tested in a copy of the tree, which takes minutes."""
    path, space = str(tmp_path / "made.py"), {}
    before, after = (f"def told():\n    return {number}\n" for number in (1, 2))
    exec(compile(before, path, "exec"), space)
    gc.freeze()
    try:
        assert exchange(path, before, after)
    finally:
        gc.unfreeze()
    assert space["told"]() == 2
    assert not exchange(str(tmp_path / "never_imported.py"), before, after)
