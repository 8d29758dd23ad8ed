"""Whatever a text holds, the page shows it as text."""

import pytest

from loop.ui.html import notice, panel, plain, show

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": '<img src=x onerror="alert(1)">',
    "attribute": '" onmouseover="alert(1)',
    "markdown": "**bold** [link](javascript:alert(1))",
    "template": "{{ 7 * 7 }} ${alert(1)} {% raw %}",
    "terminal": "\x1b[31mred\x1b[0m",
    "null": "a\x00b",
    "direction": "abc\u202edcba\u2066",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("shown", [notice, plain], ids=["notice", "plain"])
def test_hostile_text_becomes_neither_markup_nor_control(text, shown):
    """Reports, comments and names come from outside."""
    html = shown(text)
    assert "<script" not in html
    assert "<img" not in html
    assert 'onmouseover="' not in html
    assert not {"\x1b", "\x00", "\u202e", "\u2066"} & set(html)
    assert "49" not in html


@pytest.mark.parametrize("time", ["2026-01-05T09:07:00.5Z", '"><script>x</script>'])
def test_a_time_says_when_it_was_everywhere(time):
    """A script turns it into the reader's own; whatever stands there stays text."""
    status = {"done": "", "until": "", "trouble": "", "lacks": (), "copied": ""}
    html = show("review_status.html.jinja", **status, kept=time, last=None)
    assert "<script" not in html
    if time[0] == "2":
        assert f'<time datetime="{time}">2026-01-05 09:07 UTC</time>' in html


def test_only_a_panel_that_shall_takes_the_focus():
    """Others change without moving whoever reads elsewhere."""
    script = "window.ranloopSaid("
    assert script in panel(elem_id="said", focused=True).js_on_load
    assert script not in panel(elem_id="list").js_on_load
