"""What the tests of pages read a page with."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Tags, ids, addresses, scripts and tables of a page; fails on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.attributes, self.ids, self.addresses, self.open = [], [], [], []
        self.tables, self.scripts, self.words = [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    @property
    def tags(self):
        return [tag for tag, _ in self.attributes]

    @property
    def rows(self):
        """The rows of all tables."""
        return [row for table in self.tables for row in table]

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key.rsplit(":")[-1] in ("src", "href", "srcset", "action", "data"):
                self.addresses.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data

    def table(self, first):
        """The rows of the table whose first heading is ``first``."""
        return next(table[1:] for table in self.tables if table[0][0] == first)
