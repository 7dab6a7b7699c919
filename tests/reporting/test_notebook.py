"""What notebooks show of results, comparisons and audits: whole, true and escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import rawlsgcn as rg
from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.reporting.formatting import number, percent

HOSTILE = '<script>alert(1)</script>" onload=x'


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.attributes, self.words = [], [], set(), []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {key for key, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def shown(thing) -> Tags:
    html = thing._repr_html_()
    assert "http" not in html
    assert not re.search(r"url\((?!#)", html)
    return Tags(html)


def test_a_result_shows_its_figures_and_a_picture(make) -> None:
    result = make()
    display = shown(result)
    assert number(result.calibrated_bias.mean) in display.words
    assert percent(result.low_degree_accuracy.mean) in display.words
    assert display.tags.count("svg") == 1


def test_a_comparison_is_a_list_that_shows_itself(three) -> None:
    both = Comparison(three)
    assert list(both) == three
    display = shown(both)
    assert all(result.title in display.words for result in three)
    assert len(both.accuracy_bias_plot().axes) == 2


def test_two_displays_on_one_page_share_no_id(three, three_models) -> None:
    things = [*three, Comparison(three), three_models]
    ids = [re.findall(r' id="([^"]+)"', thing._repr_html_()) for thing in things]
    assert len({name for each in ids for name in each}) == sum(map(len, ids)) > 0


def test_compare_gives_one() -> None:
    graph = rg.synthetic(300, classes=2)
    results = rg.compare(graph, ["gcn", "rawlsgcn-graph"], seeds=1, epochs=2)
    assert isinstance(results, Comparison)
    assert [result.method for result in results] == ["gcn", "rawlsgcn-graph"]


def test_an_audit_shows_its_verdict_and_every_model(three_models) -> None:
    display = shown(three_models)
    assert str(three_models).split("\n")[0] in display.words
    for model in three_models.models:
        assert model.name in display.words
        assert number(model.bias) in display.words


@pytest.mark.parametrize("kind", ["result", "audit"])
def test_hostile_names_stay_text(kind, make, make_audit, graph_of) -> None:
    if kind == "result":
        plain, hostile = make(), make(title=HOSTILE, graph=graph_of(HOSTILE))
    else:
        plain, hostile = make_audit(), make_audit({HOSTILE: (0.2, 0.9)})
    before, after = shown(plain), shown(hostile)
    assert set(after.tags) == set(before.tags)
    assert after.attributes == before.attributes
    assert any("<script>alert(1)</script>" in word for word in after.words)
