"""What tests of several rooms share."""

from html.parser import HTMLParser

import pytest

VOID = {"rect", "circle", "path", "polyline"}  # drawings that close themselves


class Page(HTMLParser):
    """What a piece of HTML holds: its tags, its text, the rows of its tables and its code; it must be well-formed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.rows, self.pre, self.text, self._open = [], [], [], "", []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert tag not in VOID
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "pre":
            self.pre.append("")

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self._open[-1] == "pre":
            self.pre[-1] += data


@pytest.fixture(scope="session")
def page():
    """A reader of HTML, which notices what is not well-formed."""
    return Page


@pytest.fixture(scope="session")
def interrupt():
    """A function that makes a fit stop by itself."""
    from scwormhole.train import _fit

    def interrupt(monkeypatch, phase, look):
        """Stop a fit, as Ctrl-C does, in a phase after so many checkpoints of it."""
        real = _fit.train

        def train(name, *args, keep, **options):
            kept = []

            def counted(progress):
                keep(progress)
                kept.append(progress)
                if name == phase and len(kept) == look:
                    raise KeyboardInterrupt

            if name == phase and look == 0:
                raise KeyboardInterrupt
            return real(name, *args, keep=counted, **options)

        monkeypatch.setattr(_fit, "train", train)

    return interrupt
