"""Phrases that reports assert are found; what is no finding, or private, is not."""

import unicodedata

import pytest

from loop.core.paths import bundled
from loop.engines.rules.cues import read_cues
from loop.optimize.discovery.noun_phrases import mine_phrases
from loop.optimize.discovery.phrase_words import (
    WordForms,
    read_phrase_words,
)
from tests.optimize.discovery.made_reports import reports

CUES = read_cues(bundled() / "labels")
WORDS = read_phrase_words()
ENGLISH = next(one for one in CUES if one.language == "en")


def mined(texts, *, units=None, min_reports=5, longest=4, most=3000):
    """Return what is mined of texts."""
    return mine_phrases(
        texts,
        CUES,
        WORDS,
        units=units or range(len(texts)),
        min_reports=min_reports,
        longest=longest,
        most=most,
    )


def counts(texts, **settings):
    """Return wording to (asserted, hedged, denied)."""
    return {
        one.wording: (len(one.asserted), len(one.hedged), len(one.denied))
        for one in mined(texts, **settings).phrases
    }


def test_what_reports_assert_is_counted_in_reports():
    """Twice in one report is once; a copula and an article stand for a gap."""
    found = counts([f"{one} {one}" for one in reports()])
    assert found["scoliosis ... spine"] == (9, 0, 0)
    assert found["degenerative changes ... thoracic spine"] == (12, 0, 0)
    assert found["heart ... enlarged"] == (7, 0, 0)
    assert found["aorta ... tortuous"] == (6, 0, 0)


def test_a_denied_phrase_is_no_finding():
    """All thirty deny a pneumothorax: it is not shown; effusion is, with denials."""
    found = counts(reports())
    assert not [one for one in found if "pneumothorax" in one]
    # The eight with an effusion deny one as well: what asserts decides.
    assert found["pleural effusion"] == (8, 0, 22)


def test_a_hedged_phrase_is_counted_apart():
    """Possible is neither there nor not there."""
    assert not [one for one in counts(reports()) if "hernia" in one]
    stated = ["Hiatal hernia."] * 5 + ["Possible hiatal hernia."] * 2
    assert counts([*stated, "No hiatal hernia."])["hiatal hernia"] == (5, 2, 1)


def test_rare_phrases_are_not_shown():
    """Of four reports it is their text, of five a wording of the trade."""
    told = "Curious whorled density."
    assert counts([told] * 4) == {}
    assert "whorled density" in " ".join(counts([told] * 5))


def test_one_patient_said_five_times_in_one_report_is_still_rare():
    """Reports are counted, not sentences."""
    told = " ".join(["Curious whorled density."] * 9)
    assert counts([told] * 4 + ["Clear."] * 9) == {}


def test_reports_of_one_patient_count_once():
    """Six reports of one patient are one patient's text; the others count too."""
    told = ["Curious whorled density."] * 6
    assert counts(told, units=[7] * 6) == {}
    assert counts(told, units=[1, 1, 1, 2, 3, 4]) == {}
    assert counts(told, units=[1, 1, 2, 3, 4, 5])["whorled density"] == (6, 0, 0)
    # Five patients hold it, and four of them assert it.
    texts = [*told, "No curious whorled density."]
    assert counts(texts, units=[1, 1, 1, 2, 3, 4, 5]) == {}
    names = ["There is a nodule as told Walrus by phone."] * 9
    assert mined(names, units=[1] * 9).names == 0


def test_a_name_in_letters_and_marks_apart_leaves_no_fragment():
    """NFD, as some systems export it: u and a mark are one letter."""
    text = unicodedata.normalize("NFD", "There is a nodule as told Müller by phone.")
    found = mined([f"{text} This is a nodule."] * 9)
    shown = " ".join(one.wording for one in found.phrases)
    assert "nodule" in shown
    assert "ller" not in shown
    assert found.names == 1


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Seen by Dr. Walrus with nodule in the lung.", "walrus"),
        ("Nodule, read by dr walrus today.", "walrus"),
        ("Nodule. Signed electronically walrus, md.", "walrus"),
        ("There is a nodule as told Walrus by phone.", "walrus"),
        ("Nodule as of March 2019, and on Monday.", "march"),
        ("Nodule seen 12-Jan-2020.", "jan"),
        ("A nodule at level T12 of 7mm on 3/4/2020.", "mm"),
        ("Nodule near the XXXX clip.", "xxxx"),
        ("A nodule near the xxxx clip.", "xxxx"),
        ("A nodule, that is 结节, in the lung.", "结节"),
        ("There is a nodule as told İpek by phone.", "İpek"),
        ("There is a nodule as told Ölçer by phone.", "ölçer"),
        ("Nodule of the area² and ③whorls.", "area²"),
    ],
)
def test_names_dates_and_digits_are_never_shown(text, secret):
    """However many reports hold them."""
    found = mined([f"{text} This is a nodule."] * 20)
    shown = " ".join(one.wording for one in found.phrases)
    assert "nodule" in shown
    assert secret not in shown.split()
    assert not any(char.isdigit() for char in shown)
    context = {word for one in found.phrases for word in one.context}
    assert secret not in context or secret in ("march", "jan", "mm")


def test_names_that_are_left_out_are_counted():
    """The document says how many words are not shown."""
    assert mined(["There is a nodule as told Walrus by phone."] * 20).names == 1


def test_what_stands_in_capitals_only_may_be_a_name():
    """Reports in capitals: nothing is shown, and the words are counted."""
    found = mined(["WALRUS NODULE IN THE WHORLED AREA. SEEN BEFORE."] * 9)
    assert found.phrases == ()
    assert found.names > 0


def test_capitals_at_the_start_of_a_sentence_say_nothing():
    """Scoliosis begins more sentences than not, and stands after a colon."""
    texts = ["Scoliosis.", "Scoliosis is stable.", "Spine: Scoliosis."] * 7
    assert counts([*texts, "Mild scoliosis."])["scoliosis"] == (22, 0, 0)


def test_sentences_in_capitals_say_nothing_of_names():
    """Shouted more often than not, and still a word."""
    texts = ["SEVERE SCOLIOSIS OF IT ALL.", "MILD SCOLIOSIS WAS SEEN THERE."] * 3
    assert counts([*texts, "There is scoliosis."])["scoliosis"] == (7, 0, 0)


def test_what_has_a_capital_more_often_than_not_may_be_a_name():
    """Whoever types it in small letters once."""
    texts = ["As told Walrus, a nodule.", "We told Walrus of a nodule.", "Told walrus."]
    assert "walrus" not in " ".join(counts(texts * 9)).split()
    assert mined(texts * 9).names == 1


def test_letters_beside_digits_are_no_word():
    """Numbers of accessions, levels and sizes."""
    assert counts(["There is whorl12 and 7whorls and a nodule."] * 9) == {
        "nodule": (9, 0, 0)
    }


def test_abbreviation_and_what_it_stands_for_are_one_phrase():
    """COPD, and the words."""
    texts = ["There is chronic obstructive pulmonary disease."] * 4
    texts += ["The copd is severe."] * 5
    found = counts(texts)
    assert found["copd"] == (9, 0, 0)


def test_inflections_and_spellings_are_one_phrase():
    """Opacity and opacities, edema and oedema, in whatever case."""
    texts = ["There is an opacity."] * 3 + ["There are opacities."] * 2
    texts += ["There is edema."] * 3 + ["There is Oedema of the lung, oedema."] * 2
    found = counts(texts)
    assert found["opacity"] == (5, 0, 0)
    assert found["edema"] == (5, 0, 0)


def test_one_form_is_the_shortest_that_stands_in_the_reports():
    """And is the same whichever is met first."""
    forms = WordForms(["opacities", "opacity", "axes", "mass", "masses"], ENGLISH)
    assert [forms.of(one) for one in ("opacities", "masses", "axes")] == [
        "opacity",
        "mass",
        "axes",
    ]


def test_places_and_plain_words_name_no_finding():
    """Where, how large and what kind of image is no finding."""
    assert counts(["Left lower lobe of the lung on this lateral view."] * 9) == {}


def test_low_makes_a_finding_of_a_place():
    """Low lung volumes; low alone is none."""
    found = counts(["There are low lung volumes."] * 9)
    assert found == {"low lung volumes": (9, 0, 0)}


def test_what_is_normal_is_no_finding():
    """Clear lungs, and a normal anything."""
    assert counts(["The lungs are clear. Normal whorls. Bones intact."] * 9) == {}


def test_sections_that_are_not_read_hold_no_finding():
    """What is asked about was not seen."""
    text = "INDICATION: Rule out nodule.\n\nFINDINGS: There is scoliosis."
    assert counts([text] * 9) == {"scoliosis": (9, 0, 0)}


def test_a_phrase_has_no_more_words_than_said():
    """Without those left out."""
    text = "Coarse whorled reticular ground patterning."
    longest = max(counts([text] * 9, longest=2), key=len)
    assert len(longest.split()) == 2


def test_the_most_frequent_stay_where_there_are_too_many():
    """And the others are counted."""
    found = mined(reports(), most=2)
    assert found.beyond > 0
    assert len(found.phrases) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "\ud800 nodule \udfff",
        "🫁" * 50,
        "." * 2000,
        "a" * 100_000,
        "nodule " * 20_000,
        "肺部结节，未见胸腔积液。",
        "{{ 7 * 7 }} <script> ../../x %s",
    ],
    ids=lambda one: repr(one[:9]),
)
def test_hostile_texts_are_read_and_nothing_odd_is_shown(text):
    """Letters only, each phrase printable and short."""
    for one in mined([text] * 6).phrases:
        assert one.wording.replace("...", "").replace(" ", "").isalpha()
        assert len(one.wording) < 200
        one.wording.encode("utf-8")


def test_the_order_of_reports_changes_nothing_but_their_places():
    """No chance, no order of sets."""
    texts = reports()
    assert counts(texts) == counts(texts[::-1])
