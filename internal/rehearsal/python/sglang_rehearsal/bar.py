"""Progress bars, byte for byte as tqdm draws them."""

import os
import sys
import time

MIN_INTERVAL = 0.1  # seconds between two redraws: a step of minutes redraws nothing


class Bar:
    """for x in Bar(items, ...): what tqdm(items, ...) would print.

    end="\\n" is the shard bar of SGLang up to 0.5.9, whose format ends in a new line.
    """

    def __init__(self, items, desc="", unit="it", completed=False, end=""):
        self.items, self.unit, self.completed, self.end = list(items), unit, completed, end
        self.desc, self.done, self.start, self.last = desc, 0, time.monotonic(), 0.0
        self.width = 0

    def __iter__(self):
        self._draw()
        for item in self.items:
            yield item
            self.done += 1
            if time.monotonic() - self.last >= MIN_INTERVAL:
                self._draw()
        self._draw()
        if not self.end:
            self._draw()
        sys.stderr.write("\n")
        sys.stderr.flush()

    def describe(self, desc):
        """Change the text; like set_description it redraws at once."""
        self.desc = desc
        self._draw()

    def _draw(self):
        self.last = time.monotonic()
        text = self._text()
        padding = " " * max(0, self.width - len(text))
        self.width = len(text)
        sys.stderr.write("\r" + text + padding + (self.end if _columns() != 0 else ""))
        sys.stderr.flush()

    def _text(self):
        total, elapsed = len(self.items), time.monotonic() - self.start
        share = self.done / total if total else 1.0
        rate = self.done / elapsed if elapsed > 0 and self.done else 0
        left = _clock((total - self.done) / rate) if rate else "?"
        head = "%s%3.0f%%" % (self.desc + ": " if self.desc else "", 100 * share)
        tail = "%d/%d [%s<%s, %s]" % (self.done, total, _clock(elapsed), left, _rate(rate, self.unit))
        columns = _columns()
        if columns == 0:  # a terminal whose size nobody has set: no bar, no format
            return head + " " + tail
        if self.completed:
            return "%s Completed | %s" % (head, tail)
        width = 10 if columns is None else max(1, columns - len(head) - len(tail) - 3)
        return "%s|%s| %s" % (head, _blocks(share, width), tail)


def _columns():
    """Width of the terminal; None where there is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return int(os.environ["COLUMNS"]) - 1 if os.environ.get("COLUMNS", "").isdigit() else None


def _blocks(share, width):
    full, part = divmod(int(share * width * 8), 8)
    if full >= width:
        return "█" * width
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(width)


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return "%d:%02d:%02d" % (hours, minutes, seconds) if hours else "%02d:%02d" % (minutes, seconds)


def _rate(rate, unit):
    if not rate:
        return "?%s/s" % unit if unit != "it" else "?it/s"
    return "%5.2f%s/s" % (rate, unit) if rate >= 1 else "%5.2fs/%s" % (1 / rate, unit)
