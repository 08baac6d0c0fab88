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


def p99(directory, workers, rounds, state, who):
    """The best of the rounds, and all of them."""
    answers = [said(directory, workers, number, state, who)["host_answers"] for number in rounds]
    return min(answer["p99_us"] for answer in answers), "  ".join(
        f"{answer['p50_us']:.0f} / {answer['p99_us']:.0f}" for answer in answers)


def main():
    directory = pathlib.Path(sys.argv[1])
    rounds = sorted({int(path.name.split(".")[1]) for path in directory.glob("*.quiet.json")})
    failed = []
    for workers, place in PLACES.items():
        floods = [said(directory, workers, number, "flooded", "flood") for number in rounds]
        rates = ", ".join(f"{flood['messages_per_second']:.0f}" for flood in floods)
        refused = min(flood["refused"] / flood["answered"] for flood in floods)
        print(f"{place}: {rates} messages/s in the flood, at least {refused:.0%} of them refused")
        for who, name in WHO.items():
            calm, of_calm = p99(directory, workers, rounds, "calm", who)
            flooded, of_flooded = p99(directory, workers, rounds, "flooded", who)
            verdict = "pass" if flooded <= ROSE * calm else "FAIL"
            print(f"  {name}, p50 / p99 us by round\n    calm     {of_calm}\n    flooded  {of_flooded}")
            print(f"    best p99 x {flooded / calm:.2f}, must <= {ROSE}: {verdict}")
            if verdict == "FAIL":
                failed.append(f"{place}, {name}")
    print("FAIL: " + "; ".join(failed) if failed else "pass")
    return 1 if failed else 0


sys.exit(main())
