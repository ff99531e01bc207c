#!/usr/bin/env python3
"""Makes docs/scale.svg and the tables of docs/scale.md:

	meson compile -C build scale        all of it, in two minutes
	scale.py BENCH_SCALE FOLDER         with this program, into FOLDER
	scale.py --check FOLDER             1 where plan.py says otherwise than the page

bench_scale simulates placement and failover; plan.py reckons with what
bench_device.py measured.
"""

import json
import os
import re
import subprocess
import sys

import plan
import plot

BEGIN = "<!-- written by meson compile scale: {} -->"
END = "<!-- end of what is written -->"


def percent(part, whole, digits=2):
    return f"{100 * part / whole:.{digits}f} %"


def spread(s):
    return f"{s['least']:.3f} to {s['most']:.3f}, {s['sigmas']:.1f} σ"


def placement(fleets):
    return plan.table(
        ["devices, collectors", "each has, of the mean", "one is added: moved",
         "ideal", "one is removed: moved", "ideal", "others moved",
         "its devices at each other, of the mean"],
        [(f"{f['names']:,}, {f['collectors']}", spread(f["spread"]),
          percent(f["moved_to_added"], f["names"]),
          percent(1, f["collectors"] + 1),
          percent(f["moved_from_removed"], f["names"]),
          percent(1, f["collectors"]), f["moved_otherwise"],
          spread(f["heirs_spread"])) for f in fleets])


def longest_queue(counts, per_second):
    """Of a collector that shakes hands with so many a second."""
    queue = most = 0
    for count in counts:
        queue = max(0, queue + count - per_second)
        most = max(most, queue)
    return most


RULES = {
    "moves": "ends; `--move-after 30s`",
    "moves without jitter": "the same, without jitter",
    "moves after 60 s": "ends; `--move-after 60s`",
    "haproxy": "ends; HAProxy, `--grace 30s`",
    "restart": "away for 5 s",
    "restart without jitter": "the same, without jitter",
}


def storms(fleets, per_second):
    rows = []
    for f in fleets:
        for name, words in RULES.items():
            s = f["storms"][name]
            busy = [at for at, count in enumerate(s["in"]) if count]
            queue = longest_queue(s["in"], per_second)
            rows.append((
                f"{f['names']:,}, {f['collectors']}", words, s["devices"],
                f"{busy[0]} to {busy[-1] + 1} s", max(s["in"]), queue,
                f"{queue / per_second:.1f} s"))
            assert s["late"] == 0
    return plan.table(
        ["devices, collectors", "a collector", "devices to the busiest",
         "between", "most in 1 s", "longest queue", "and wait"], rows)


def put(text, name, what):
    """text with `what` between the marks of this name."""
    begin = BEGIN.format(name)
    found, n = re.subn(re.escape(begin) + ".*?" + re.escape(END),
                       lambda _: f"{begin}\n{what}\n{END}", text, flags=re.S)
    if n != 1:
        sys.exit(f"docs/scale.md has not one section {begin}")
    return found


def plan_tables(text, o, figures):
    """text with the tables that need no simulation."""
    text = put(text, "figures", plan.figure_table(figures))
    text = put(text, "device", plan.device_table(o, figures))
    for name, of in ("one collector", plan.bounds), \
            ("all together", plan.fleet_bounds):
        text = put(text, f"bounds of {name}", plan.bound_table(
            o, figures, of, f"devices, by what bounds {name}"))
    text = put(text, "fleets", plan.sizes_table(o, figures, 600))
    return put(text, "lengths", plan.lengths_table(o, figures, 1000000))


def simulate(text, program, figures, folder):
    """text with the tables of the simulation; the picture goes into folder."""
    per_second = 1000 / figures["connect_ms"]["value"]
    fleets = json.loads(subprocess.run([program], check=True,
                                       stdout=subprocess.PIPE).stdout)
    with open(os.path.join(folder, "scale.svg"), "w",
              encoding="utf-8") as file:
        file.write(plot.picture(fleets, per_second))
    text = put(text, "placement", placement(fleets))
    return put(text, "storms", storms(
        [f for f in fleets if f["names"] / f["collectors"] < plan.MACHINES],
        per_second))


def main(argv):
    if len(argv) != 2:
        sys.exit(__doc__)
    program, folder = argv
    o = plan.options([])
    figures = plan.load(o.figures)
    path = os.path.join(folder, "scale.md")
    with open(path, encoding="utf-8") as file:
        before = file.read()
    text = plan_tables(before, o, figures)
    if program == "--check":
        if text != before:
            sys.exit("docs/scale.md is not what plan.py says: "
                     "meson compile -C build scale")
        return
    text = simulate(text, program, figures, folder)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
