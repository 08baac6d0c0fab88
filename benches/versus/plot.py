#!/usr/bin/env python3
"""Draws docs/latency.svg from docs/latency.tsv, which benches/latency.sh measured.

plot.py TABLE SVG

A table of: contestant, messages/s, p50, p99 in microseconds. Both axes are logarithmic: the load
doubles from point to point, and what matters of a latency is how many times longer it is.
"""

import math
import sys

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 150, 56, 52
# Name in the table, name in the plot, colour on light and on dark ground (Okabe and Ito, adjusted).
LINES = [
    ("direct", "direct echo", "#666666", "#a0a0a0"),
    ("haproxy", "HAProxy", "#c2571a", "#f0894a"),
    ("tollgate", "tollgate", "#0060a8", "#58aaf0"),
    ("refuse", "tollgate, refused", "#00805c", "#3cc79c"),
]
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #202020 }
  .title { font-weight: 600; font-size: 14px }
  line, .axis { fill: none; stroke: #202020; stroke-opacity: .15 }
  .axis { stroke-opacity: .6 }
  .p50, .p99 { fill: none; stroke-width: 2; stroke-linejoin: round }
  .p99 { stroke-dasharray: 5 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e0e0e0 }
    line, .axis { stroke: #e0e0e0 }
  }
"""


def read(path):
    """Points (messages/s, p50, p99) by contestant."""
    points = {}
    with open(path) as file:
        for line in file:
            if not line.startswith("#"):
                who, *numbers = line.split()
                points.setdefault(who, []).append(tuple(map(float, numbers)))
    return points


class Scale:
    """A logarithmic axis from the least to the greatest value, in pixels."""

    def __init__(self, values, first, last):
        self.low, self.high = math.log(min(values)), math.log(max(values))
        self.first, self.last = first, last

    def __call__(self, value):
        share = (math.log(value) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)


def steps(low, high):
    """1, 2 and 5 times the powers of ten between the two."""
    power = 10 ** math.floor(math.log10(low))
    found = []
    while power <= high:
        found += [power * digit for digit in (1, 2, 5) if low <= power * digit <= high]
        power *= 10
    return found


def number(value, unit):
    return f"{value / 1000:g} {unit[1]}" if value >= 1000 else f"{value:g} {unit[0]}"


def label(x, y, text, anchor="middle", kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{text}</text>'


def axes(x, y, loads, bounds):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in steps(*bounds):
        yield f'<line x1="{LEFT}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        yield label(LEFT - 8, y(value) + 4, number(value, ("µs", "ms")), "end")
    for value in loads:
        yield f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield label(x(value), bottom + 18, number(value, ("", "k")))
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield label((LEFT + right) / 2, HEIGHT - 10, "messages per second offered")
    yield (f'<text transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)" '
           f'text-anchor="middle">round trip</text>')
    yield label(8, 22, "Round trip against load: p50 (solid) and p99 (dashed)", "start", "title")
    yield label(8, 40, "64 connections, open loop, one core; timed from when a message was due", "start")


def curves(points, x, y):
    taken = []
    for who, name, light, _ in LINES:
        for column, kind in ((1, "p50"), (2, "p99")):
            path = "L".join(f"{x(p[0]):.1f} {y(p[column]):.1f}" for p in points[who])
            yield f'<path class="{kind} {who}" d="M{path}"/>'
    ends = sorted((y(points[who][-1][1]), who, name) for who, name, *_ in LINES)
    for height, who, name in ends:
        height = max([height, *(other + 15 for other in taken)])
        taken.append(height)
        yield f'<text class="name {who}" x="{x(points[who][-1][0]) + 8:.1f}" y="{height + 4:.1f}">{name}</text>'


def colours():
    for who, _, light, dark in LINES:
        yield f"  path.{who} {{ stroke: {light} }} text.{who} {{ fill: {light}; font-weight: 600 }}"
        yield (f"  @media (prefers-color-scheme: dark) "
               f"{{ path.{who} {{ stroke: {dark} }} text.{who} {{ fill: {dark} }} }}")


def draw(points):
    loads = sorted({point[0] for line in points.values() for point in line})
    times = [time for line in points.values() for point in line for time in point[1:]]
    bounds = (min(times) / 1.2, max(times) * 1.2)
    x = Scale(loads, LEFT + 12, WIDTH - RIGHT - 4)
    y = Scale(bounds, HEIGHT - BOTTOM, TOP)
    body = "\n".join([*axes(x, y, loads, bounds), *curves(points, x, y)])
    style = STYLE + "\n".join(colours())
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="Round trip against load">\n<style>{style}\n</style>\n{body}\n</svg>\n')


def main():
    table, svg = sys.argv[1:]
    with open(svg, "w", encoding="utf-8") as file:
        file.write(draw(read(table)))


main()
