"""Pairs of measurements, and the table of their ratios.  Pure: no processes, no
clocks.

A measurement is a dictionary from measure to number, each of which should be
small.  A pair is one of each side, taken one right after the other: what else
the machine does moves both, so that ratios are taken pair by pair, and their
median is shown with the range.
"""

import statistics

MEASURES = {
    "processor": "processor",
    "time": "time",
    "p50": "round trip p50",
    "p99": "p99",
    "memory": "memory",
}
LOST = "lost"  # a share, shown as it is
# A ratio so close to 1 says nothing.
EVEN = 0.05

BEGIN = "<!-- written by ./bench-peers -->"
END = "<!-- end of what ./bench-peers writes -->"


class Pairs:
    """All pairs of all cases; cases keep the order in which they came."""

    def __init__(self):
        self.cases = {}

    def add(self, case, ours, theirs):
        self.cases.setdefault(case, []).append((ours, theirs))

    def split(self, names):
        """The cases with these names, in this order, and the others."""
        named, others = Pairs(), Pairs()
        named.cases = {name: self.cases[name] for name in names
                       if name in self.cases}
        others.cases = {name: found for name, found in self.cases.items()
                        if name not in named.cases}
        return named, others

    def ratios(self, case, measure):
        """Sorted; none where the other side's figure is zero."""
        return sorted(
            ours[measure] / theirs[measure]
            for ours, theirs in self.cases[case]
            if measure in ours and theirs.get(measure, 0) > 0)

    def median(self, case, measure):
        """None: not measured."""
        ratios = self.ratios(case, measure)
        return statistics.median(ratios) if ratios else None

    def lost(self, case):
        """Of each side the median share; None: not measured."""
        shares = [(ours[LOST], theirs[LOST])
                  for ours, theirs in self.cases[case] if LOST in ours]
        return tuple(map(statistics.median, zip(*shares))) or None

    def behind(self):
        """(case, measure, ratio) where the other side is ahead."""
        found = []
        for case in self.cases:
            for measure in MEASURES:
                ratio = self.median(case, measure)
                if ratio is not None and ratio > 1 + EVEN:
                    found.append((case, measure, ratio))
        return found


def number(ratio):
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"


def cell(ratios):
    """The median, and the range where there are several."""
    if not ratios:
        return ""
    text = number(statistics.median(ratios))
    if len(ratios) > 1:
        text += f" ({number(ratios[0])}-{number(ratios[-1])})"
    return text


def percent(share):
    return f"{share * 100:.0f} %"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(pairs):
    """In Markdown, with the columns that hold something."""
    columns = [""]
    rows = [[case] for case in pairs.cases]
    for measure, title in MEASURES.items():
        add_column(columns, rows, title, [
            cell(pairs.ratios(case, measure)) for case in pairs.cases])
    add_column(columns, rows, "lost: ours, theirs", [
        ", ".join(map(percent, pairs.lost(case) or ()))
        for case in pairs.cases])
    return "\n".join([line(columns), "|" + "---|" * len(columns),
                      *map(line, rows)])


def add_column(columns, rows, title, cells):
    if any(cells):
        columns.append(title)
        for row, text in zip(rows, cells):
            row.append(text)


def verdict(pairs):
    """Where the other side is ahead, in a sentence."""
    behind = pairs.behind()
    if not behind:
        return "Ahead of `tributaryd`: nowhere."
    return "Ahead of `tributaryd`:\n\n" + "\n".join(
        f"* {case}: {MEASURES[measure]}, {number(ratio)}"
        for case, measure, ratio in behind)


def put_between_marks(text, new):
    """The text with what is between its marks replaced."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"no line {BEGIN!r} with {END!r} behind it")
    return text[:begin + len(BEGIN)] + "\n" + new + "\n" + text[end:]
