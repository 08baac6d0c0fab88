#!/usr/bin/env python3
"""Runs the load generator once and appends what it said, with what the processors did, to a file.

load.py RESULTS KEY=VALUE... proxy=PID host=PID -- GENERATOR ARGUMENT...

The processors are looked at inside the generator's window, a little after its warm-up and a little
before its end: what the proxy had of a core there, by the rate of messages that were answered, is
its processor time per message.
"""

import json
import os
import subprocess
import sys
import time

CORES = {"proxy": 0, "peers": 1}
TICK = os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """What all threads of a process have had of a core."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def busy_seconds():
    """What each core was busy with anything."""
    busy = {}
    with open("/proc/stat") as file:
        for line in file:
            words = line.split()
            if words[0][:3] == "cpu" and words[0] != "cpu":
                user, nice, system, _idle, _wait, irq, softirq, steal = map(int, words[1:9])
                busy[int(words[0][3:])] = (user + nice + system + irq + softirq + steal) / TICK
    return busy


def sample(pids):
    threads = {name: thread_seconds(pid) for name, pid in pids.items()}
    return time.monotonic(), threads, busy_seconds()


def option(command, name):
    return float(command[command.index(name) + 1])


def main():
    split = sys.argv.index("--")
    results, command = sys.argv[1], sys.argv[split + 1 :]
    labels = dict(word.split("=", 1) for word in sys.argv[2:split])
    pids = {name: int(labels.pop(name)) for name in ("proxy", "host") if name in labels}

    try:
        # Or it would look too late on a busy machine. The generator does not inherit it.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    except PermissionError:
        pass
    generator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pids["generator"] = generator.pid
    warmup, seconds = option(command, "--warmup"), option(command, "--seconds")
    time.sleep(warmup + 0.1 * seconds)
    at, before, busy_before = sample(pids)
    time.sleep(0.8 * seconds)
    end, after, busy_after = sample(pids)
    said, _ = generator.communicate()
    if generator.returncode != 0:
        sys.exit(f"the generator failed: {labels}")
    said = json.loads(said)

    took = end - at
    had = {name: (after[name] - before[name]) / took for name in pids}
    rate = said["messages_per_second"]
    peers = had["generator"] + had.get("host", 0.0)
    busy = {name: (busy_after[core] - busy_before[core]) / took for name, core in CORES.items()}
    record = {
        **labels,
        "rate": rate,
        "proxy_ns": had.get("proxy", 0.0) / rate * 1e9,
        "host_ns": had.get("host", 0.0) / rate * 1e9,
        "generator_ns": had["generator"] / rate * 1e9,
        "proxy_core": had.get("proxy", 0.0),
        "peer_core": peers,
        # What neither the proxy nor its peers had of the two cores.
        "others": max(0.0, sum(busy.values()) - had.get("proxy", 0.0) - peers),
        "generator": said,
    }
    with open(results, "a") as file:
        print(json.dumps(record), file=file)


main()
