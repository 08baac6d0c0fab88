#!/usr/bin/env python3
"""Tables and verdicts of benches/versus.sh, from the lines that load.py wrote.

report.py half RESULTS     half of HAProxy's messages/s at 64x1; 0 when it was not run
report.py report RESULTS   the tables; exit code 1 when a "must" did not hold
report.py curve RESULTS    of benches/latency.sh: latencies by load, for plot.py
"""

import json
import statistics
import sys

# Connections x messages in flight on each.
SHAPES = ["4x8", "16x8", "64x1", "256x1", "64x64"]
# The core of the generator and the host is full: what the proxy could do does not show.
SATURATED = 0.95
# Of the messages offered, what must have been answered for a load to count as carried.
CARRIED = 0.97

# What tollgate divided by HAProxy has to be, by shape: must, goal.
THROUGHPUT = {"4x8": (0.5, 0.75), "16x8": (0.8, 1.0), "64x1": (1.3, 1.7), "256x1": (1.5, 2.0),
              "64x64": (0.25, 0.37)}
PROCESSOR = {"4x8": (1.6, 1.25), "16x8": (1.3, 1.0), "64x1": (0.75, 0.6), "256x1": (0.65, 0.5),
             "64x64": (4.0, 2.8)}
# Processor time of a message at 64x1 to that of the bare echo.
OVER_ECHO = (1.8, 1.4)
# Added to the direct echo's p50 at half load, by tollgate to HAProxy.
ADDED = (3.0, 1.5)
# A refusal's round trip to the direct echo's.
REFUSAL_P50 = (1.5, 1.0)
REFUSAL_P999 = (2.0, 1.2)
# Refusals per second to what HAProxy forwards, 16x8.
REFUSALS_ONLY = (1.3, 1.8)


class Runs:
    """What was measured, by part, round and contestant."""

    def __init__(self, path):
        with open(path) as file:
            self.all = [json.loads(line) for line in file]

    def shapes(self):
        return [shape for shape in SHAPES if self.rounds(shape)]

    def rounds(self, part):
        return sorted({int(run["round"]) for run in self.all if run["part"] == part})

    def one(self, part, number, who):
        for run in self.all:
            if (run["part"], int(run["round"]), run["who"]) == (part, number, who):
                return run
        sys.exit(f"no run of {who} in round {number} of {part}")

    def of(self, part, who):
        return [self.one(part, number, who) for number in self.rounds(part)]

    def ratios(self, part, who, other, value):
        pairs = zip(self.of(part, who), self.of(part, other))
        return [value(mine) / value(theirs) for mine, theirs in pairs]


def rate(run):
    return run["rate"]


def proxy_ns(run):
    return run["proxy_ns"]


def latency(name):
    def value(run):
        """Of the answers that there were: a direct echo refuses nothing, and a refusal is no answer."""
        said = run["generator"]
        kinds = [said[kind] for kind in ("host_answers", "refusals") if said[kind]["count"] > 0]
        return max(kinds, key=lambda kind: kind["count"])[name]

    return value


def saturated(run):
    return run["peer_core"] >= SATURATED or run["generator"].get("saturated", False)


class Verdicts:
    """Pass or fail of each measure, printed as they come."""

    def __init__(self):
        self.failed = []

    def say(self, what, value, limits, at_most=True, unsure=False):
        must, goal = limits
        good = (lambda limit: value <= limit) if at_most else (lambda limit: value >= limit)
        sign = "<=" if at_most else ">="
        if good(goal):
            verdict = "pass, goal reached"
        elif good(must):
            verdict = "pass, goal missed"
        elif unsure:
            verdict = "undecided: the generator was saturated"
        else:
            verdict = "FAIL"
            self.failed.append(what)
        print(f"  {what:52} {value:6.2f}   must {sign} {must:<5} goal {sign} {goal:<5} {verdict}")


def table(head, rows):
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    print()


def shape_table(runs, shape):
    rows = []
    for who in ("direct", "haproxy", "nginx", "tollgate"):
        mine = runs.of(shape, who)
        rates, costs = [rate(run) for run in mine], [proxy_ns(run) / 1e3 for run in mine]
        row = [who, f"{max(rates) / 1e3:.0f}", f"{statistics.median(rates) / 1e3:.0f}",
               f"{min(costs):.2f}", f"{statistics.median(costs):.2f}"]
        if who == "haproxy":
            row += ["1", "1", "1", "1"]
        else:
            faster = runs.ratios(shape, who, "haproxy", rate)
            dearer = runs.ratios(shape, who, "haproxy", proxy_ns)
            row += [f"{max(faster):.2f}", f"{statistics.median(faster):.2f}",
                    f"{min(dearer):.2f}", f"{statistics.median(dearer):.2f}"]
        row.append(" ".join(f"{run['peer_core']:.2f}{'*' if saturated(run) else ''}" for run in mine))
        row.append(f"{max(run['others'] for run in mine):.2f}")
        rows.append(row)
    print(f"{shape}")
    table(["", "k msg/s best", "median", "us CPU/msg best", "median", "x haproxy msg/s best", "median",
           "x CPU best", "median", "peers' core", "others"], rows)


def shapes(runs, verdicts):
    for shape in runs.shapes():
        shape_table(runs, shape)
    print("peers' core: what generator and host had of it, by round; * saturated. others: what nobody\n"
          "of ours had of the two cores, in the worst round.\n")
    for shape in runs.shapes():
        costs = runs.ratios(shape, "tollgate", "haproxy", proxy_ns)
        verdicts.say(f"{shape}: CPU per message to HAProxy's, median", statistics.median(costs),
                     PROCESSOR[shape])
    if over := runs.ratios("64x1", "tollgate", "direct", proxy_ns):
        verdicts.say("64x1: CPU per message to the bare echo's, median", statistics.median(over),
                     OVER_ECHO)
    for shape in runs.shapes():
        throughput(runs, shape, verdicts)


def throughput(runs, shape, verdicts):
    """Where HAProxy's peers were full, a round says nothing. Where tollgate's were, it says the least
    that the ratio is."""
    fair = [(mine, theirs) for mine, theirs in zip(runs.of(shape, "tollgate"), runs.of(shape, "haproxy"))
            if not saturated(theirs)]
    if not fair:
        print(f"  {shape}: throughput not judged, HAProxy's peers were saturated in every round")
        return
    least = any(saturated(mine) for mine, _ in fair)
    verdicts.say(f"{shape}: messages/s to HAProxy's, median{' (at least)' if least else ''}",
                 statistics.median(rate(mine) / rate(theirs) for mine, theirs in fair),
                 THROUGHPUT[shape], at_most=False, unsure=least)


def percentiles(runs, part, names):
    rows = []
    for who in names:
        mine = runs.of(part, who)
        cells = [f"{latency(name)(run):.0f}" for run in mine for name in ("p50_us", "p99_us", "p99_9_us")]
        groups = [" / ".join(cells[at : at + 3]) for at in range(0, len(cells), 3)]
        rows.append([who, *groups, f"{max(run['others'] for run in mine):.2f}"])
    head = ["p50 / p99 / p99.9 us", *(f"round {number}" for number in runs.rounds(part)), "others"]
    table(head, rows)


def refusals(runs, verdicts):
    print("\nrefusals: 16 connections, 20,000 messages/s, every one refused; beside a direct echo\n")
    percentiles(runs, "refusals", ["direct", "refuse"])

    def best(who, name):
        return min(map(latency(name), runs.of("refusals", who)))

    for name, limits in (("p50_us", REFUSAL_P50), ("p99_9_us", REFUSAL_P999)):
        ratio = best("refuse", name) / best("direct", name)
        shown = name.removesuffix("_us").replace("_", ".")
        verdicts.say(f"refusal's {shown} to the direct echo's, best of each", ratio, limits)
    faster = runs.ratios("refusals-only", "refuse", "haproxy", rate)
    verdicts.say("16x8: refusals/s to what HAProxy forwards, median", statistics.median(faster),
                 REFUSALS_ONLY, at_most=False,
                 unsure=any(map(saturated, runs.of("refusals-only", "refuse"))))


def half_load(runs, verdicts):
    print("\nhalf load: 64 connections, half of HAProxy's messages/s at 64x1\n")
    percentiles(runs, "half-load", ["direct", "haproxy", "tollgate"])
    direct, haproxy, tollgate = (min(map(latency("p50_us"), runs.of("half-load", who)))
                                 for who in ("direct", "haproxy", "tollgate"))
    if haproxy <= direct:
        print("  added p50 not judged: HAProxy added nothing")
        return
    verdicts.say("p50 that tollgate adds to that HAProxy adds, best of each",
                 (tollgate - direct) / (haproxy - direct), ADDED)


def report(runs):
    verdicts = Verdicts()
    shapes(runs, verdicts)
    refusals(runs, verdicts)
    if runs.rounds("half-load"):
        half_load(runs, verdicts)
    if verdicts.failed:
        print("\nFAIL: " + "; ".join(verdicts.failed))
        return 1
    print("\npass")
    return 0


def curve(runs):
    """The best of the rounds, as far as the load was carried at all."""
    print("# contestant, messages/s offered, p50 and p99 in us: benches/latency.sh")
    for who in ("direct", "haproxy", "tollgate", "refuse"):
        for part in sorted({run["part"] for run in runs.all}, key=int):
            carried = [run for run in runs.of(part, who) if rate(run) >= CARRIED * int(part)]
            if not carried:
                break
            best = [min(latency(name)(run) for run in carried) for name in ("p50_us", "p99_us")]
            print(f"{who}\t{part}\t{best[0]:.0f}\t{best[1]:.0f}")
    return 0


def main():
    command, runs = sys.argv[1], Runs(sys.argv[2])
    if command == "half":
        print(round(max((rate(run) for run in runs.of("64x1", "haproxy")), default=0) / 2))
        return 0
    return curve(runs) if command == "curve" else report(runs)


sys.exit(main())
