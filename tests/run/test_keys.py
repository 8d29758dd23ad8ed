"""Cache keys: equal questions share one, and nothing else does."""

import dataclasses
import hashlib

from loop.core.records import Guide, Item, Prompt
from loop.run.execute import KeyMaker


def key(kit, prompt, engine=None, **spec):
    """Return the key of one prompt from a fresh maker."""
    return KeyMaker(kit.make_spec(**spec), engine or kit.TableEngine()).key(prompt)


def prompt(frame, text, tail=None, **variables):
    """Return a prompt of one item."""
    item = Item(id="c", variables={"text": text, **variables})
    return Prompt(frame=frame, tail=text if tail is None else tail, item=item)


def test_keys_are_sha256_digests(kit):
    """32 bytes, the same on every machine and in every process."""
    made = key(kit, prompt(kit.make_frame(), "a"))
    assert len(made) == hashlib.sha256().digest_size
    assert made == key(kit, prompt(kit.make_frame(), "a"))


def test_guides_count_although_messages_are_equal(kit):
    """The rules engine reads guides, which a template may not render."""
    frame = kit.make_frame()
    guide = Guide(label="edema", name="Edema", definition="Fluid.", terms=("edema",))
    other = dataclasses.replace(frame, guides=(guide,))
    assert key(kit, prompt(frame, "a")) != key(kit, prompt(other, "a"))


def test_variables_that_are_not_in_the_tail_count(kit):
    """An engine that reads variables must not get another case's answer."""
    frame = kit.make_frame()
    one = prompt(frame, "a", tail="same", note="x")
    two = prompt(frame, "b", tail="same", note="x")
    assert key(kit, one) != key(kit, two)


def test_text_cannot_move_between_tail_and_frame(kit):
    """The static part is closed before the case text begins."""
    maker = KeyMaker(kit.make_spec(), kit.TableEngine())
    keys = {maker.key(prompt(kit.make_frame(), text)) for text in ("a", "ab", "", "\0")}
    assert len(keys) == 4


def test_frames_that_died_do_not_lend_their_id(kit):
    """Frames are told apart by identity, and ids are reused by Python."""
    maker = KeyMaker(kit.make_spec(), kit.TableEngine())
    systems = [f"system {number}" for number in range(50)]
    keys = {maker.key(prompt(kit.make_frame(system=system), "a")) for system in systems}
    assert len(keys) == 50
