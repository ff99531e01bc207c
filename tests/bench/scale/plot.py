"""The picture of docs/scale.md: SVG made by hand, of what bench_scale prints."""

import math
from xml.sax.saxutils import escape

BLUE, RED, GREEN, GREY = "#2166ac", "#b2182b", "#1b7837", "#888888"
WIDTH, HEIGHT, GAP = 900, 560, 62


def step_of(most):
    """Between two marks on an axis: 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(most / 3))
    return next(int(k * power) for k in (5, 2, 1) if 3 * k * power <= most)


class Panel:
    """Axes with a title; x and y are in the figures' own units."""

    def __init__(self, box, title, xs, ys):
        self.left, self.top, self.width, self.height = box
        self.xs, self.ys = xs, ys
        self.parts = [self.text(self.left, self.top - 12, title, size=13,
                                bold=True),
                      f'<rect x="{self.left}" y="{self.top}" width="'
                      f'{self.width}" height="{self.height}" fill="none" '
                      'stroke="#cccccc"/>']

    @staticmethod
    def text(x, y, words, size=11, anchor="start", color="#222222",
             bold=False):
        weight = ' font-weight="bold"' if bold else ""
        return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
                f'text-anchor="{anchor}" fill="{color}"{weight}>'
                f"{escape(words)}</text>")

    def x(self, v):
        return self.left + (v - self.xs[0]) / (self.xs[1] - self.xs[0]) * \
            self.width

    def y(self, v):
        return self.top + self.height - (v - self.ys[0]) / \
            (self.ys[1] - self.ys[0]) * self.height

    def ticks(self, xs, ys, unit=""):
        for v in xs:
            self.parts.append(self.text(
                self.x(v), self.top + self.height + 15, f"{v:,}", 10,
                "middle"))
        for v in ys:
            self.parts.append(self.text(
                self.left - 6, self.y(v) + 4, f"{v:,}{unit}", 10, "end"))
            self.parts.append(
                f'<path d="M{self.left} {self.y(v):.1f}h{self.width}" '
                'stroke="#eeeeee"/>')

    def below(self, words, off=32):
        self.parts.append(self.text(self.left + self.width / 2, self.top +
                                    self.height + off, words, 11, "middle"))

    def bar(self, x, width, y, color):
        top, bottom = self.y(min(y, self.ys[1])), self.y(max(0, self.ys[0]))
        self.parts.append(
            f'<rect x="{self.x(x):.1f}" y="{top:.1f}" width="'
            f'{width * self.width / (self.xs[1] - self.xs[0]):.1f}" '
            f'height="{bottom - top:.1f}" fill="{color}"/>')

    def line(self, points, color, dashes=""):
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{color}" '
                          f'stroke-width="1.6"{dash}/>')

    def note(self, x, y, words, color="#222222", anchor="start"):
        self.parts.append(self.text(self.x(x), self.y(y), words, 11, anchor,
                                    color))


def shares(box, title, counts, below):
    """A bar for each collector, in % of the mean, between three standard
    deviations of a fair draw."""
    mean = sum(counts) / len(counts)
    sigma = 300 * math.sqrt(1 / mean)
    most = 2 * max(sigma, 100 * max(abs(c / mean - 1) for c in counts))
    panel = Panel(box, title, (0, len(counts)), (-most / 1.6, most / 1.6))
    step = step_of(most * 1.2)
    panel.ticks([], [-step, 0, step], " %")
    for at, count in enumerate(sorted(counts)):
        off = 100 * (count / mean - 1)
        low, high = min(off, 0), max(off, 0)
        panel.parts.append(
            f'<rect x="{panel.x(at + 0.1):.1f}" y="{panel.y(high):.1f}" '
            f'width="{0.8 * panel.width / len(counts):.2f}" height="'
            f'{panel.y(low) - panel.y(high):.1f}" fill="{BLUE}"/>')
    for v in (-sigma, sigma):
        panel.line([(0, v), (len(counts), v)], RED, "4 3")
    panel.note(len(counts) * 0.02, sigma * 1.06, "3 σ of a fair draw", RED)
    panel.below(below, 17)
    return panel


def moves(box, fleets):
    """Of the names, what moves, beside 1/(N + 1) and 1/N."""
    panel = Panel(box, "Moved, of all devices", (0, len(fleets) * 3 + 1),
                  (0, 40))
    panel.ticks([], [0, 10, 20, 30], " %")
    for at, fleet in enumerate(fleets):
        names, n = fleet["names"], fleet["collectors"]
        for k, (key, ideal, color) in enumerate((
                ("moved_to_added", 1 / (n + 1), BLUE),
                ("moved_from_removed", 1 / n, GREEN))):
            x = at * 3 + 1 + k
            panel.bar(x, 0.8, 100 * fleet[key] / names, color)
            panel.line([(x - 0.1, 100 * ideal), (x + 0.9, 100 * ideal)], RED)
        panel.parts.append(panel.text(panel.x(at * 3 + 1.9), panel.top +
                                      panel.height + 15, str(n), 10,
                                      "middle"))
    panel.note(4, 36, "one is added", BLUE)
    panel.note(4, 32, "one is removed", GREEN)
    panel.note(4, 28, "the ideal, 1/N", RED)
    panel.below("collectors")
    return panel


def storm(box, fleet):
    """Arrivals at the collector that gets most, when another ends."""
    storms = fleet["storms"]
    most = max(max(storms[name]["in"]) for name in ("haproxy", "moves"))
    panel = Panel(box, "A collector ends: devices a second at the busiest of "
                  "the others", (0, 140), (0, most * 1.35))
    panel.ticks(range(0, 141, 20), range(0, int(most * 1.35),
                step_of(most * 1.35)))
    alone = storms["moves without jitter"]
    at = alone["in"].index(max(alone["in"]))
    panel.line([(at, 0), (at, most * 1.35)], GREY, "4 3")
    panel.note(at + 1, most * 1.22, f"without jitter {alone['devices']:,} "
               "in a second", GREY)
    for k, (name, color, words) in enumerate((
            ("haproxy", RED, "HAProxy, grace 30 s"),
            ("moves", BLUE, "a list, --move-after 30 s"),
            ("moves after 60 s", GREEN, "a list, --move-after 60 s"))):
        panel.line(list(enumerate(storms[name]["in"][:140])), color)
        panel.note(96, most * (1.2 - 0.12 * k), words, color)
    panel.below(f"seconds since it ended ({fleet['names']:,} devices, "
                f"{fleet['collectors']} collectors)")
    return panel


def restart(box, fleet, per_second):
    """Arrivals when a collector was away for 5 s, and what one takes."""
    found = fleet["storms"]["restart"]
    most = max(found["in"])
    panel = Panel(box, "Away for 5 s: devices a second", (0, 16),
                  (0, most * 1.2))
    panel.ticks(range(0, 17, 4), range(0, int(most * 1.2), step_of(most)))
    for at, count in enumerate(found["in"][:16]):
        panel.bar(at + 0.1, 0.8, count, BLUE)
    panel.line([(0, per_second), (16, per_second)], RED, "4 3")
    panel.note(15.8, most * 1.1, "a processor's handshakes", RED, "end")
    panel.below(f"seconds ({found['devices']:,} devices come back)")
    return panel


def picture(fleets, per_second):
    large = fleets[-1]
    third, half = (WIDTH - 3 * GAP) / 3, 150
    lower = half + 2 * GAP + 40
    panels = [
        shares((GAP, 62, third, half), "Devices of each collector",
               large["at"], f"{large['collectors']} collectors, sorted"),
        shares((2 * GAP + third, 62, third, half), "Of one that ended, at each",
               large["heirs"], f"the {large['collectors'] - 1} others, sorted"),
        moves((3 * GAP + 2 * third - 20, 62, third, half), fleets[-3:]),
        storm((GAP, lower, 2 * third, 190), fleets[1]),
        restart((3 * GAP + 2 * third - 20, lower, third, 190), fleets[1],
                per_second),
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
        f'{HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        Panel.text(GAP, 22, f"{large['names']:,} devices", 15, bold=True),
        *(part for panel in panels for part in panel.parts), "</svg>", ""])
