#!/usr/bin/env python3
"""The table and the verdict of benches/flood.sh.

flood.py DIRECTORY, which holds what the generators said: WORKERS.ROUND.STATE.WHO.json
"""

import json
import pathlib
import sys

# A p99 with the flood, to the one without.
ROSE = 1.5
PLACES = {1: "same worker", 2: "another worker"}
WHO = {"quiet": "the quiet link", "own": "the flooded link's reversals and echoes"}


def said(directory, workers, number, state, who):
    return json.loads((directory / f"{workers}.{number}.{state}.{who}.json").read_text())


def main():
    directory = pathlib.Path(sys.argv[1])
    rounds = sorted({int(path.name.split(".")[1]) for path in directory.glob("*.quiet.json")})
    failed = []
    for workers, place in PLACES.items():
        for number in rounds:
            flood = said(directory, workers, number, "flooded", "flood")
            print(f"{place}, round {number}: {flood['messages_per_second']:.0f} messages/s in the flood, "
                  f"{flood['refusals']['count'] / flood['answered']:.0%} of them refused")
        for who, name in WHO.items():
            ratios = []
            for number in rounds:
                calm, flooded = (said(directory, workers, number, state, who)["host_answers"]
                                 for state in ("calm", "flooded"))
                ratios.append(flooded["p99_us"] / calm["p99_us"])
                print(f"  {name}: p50 {calm['p50_us']:.0f} -> {flooded['p50_us']:.0f} us, "
                      f"p99 {calm['p99_us']:.0f} -> {flooded['p99_us']:.0f} us, x {ratios[-1]:.2f}")
            verdict = "pass" if min(ratios) <= ROSE else "FAIL"
            print(f"{place}, {name}: p99 x {min(ratios):.2f} at best, must <= {ROSE}: {verdict}\n")
            if verdict == "FAIL":
                failed.append(f"{place}, {name}")
    print("FAIL: " + "; ".join(failed) if failed else "pass")
    return 1 if failed else 0


sys.exit(main())
