#!/usr/bin/env python3
"""Runs the programs of bench.sh in turn, one pass each a round, and writes the bars as tests/bench does.

Where the system places a process and its memory makes a difference for its life, so each program is started several
times, and its figure is the median of all its passes. A pass is long enough that what a program's runtime does when it
wakes from its wait for the pass (Go's monitor then looks every 20 us, for a millisecond) is a small part of it.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess

BARS = {"go": 1.1, "java": 1.2, "rust": 1.05}
STARTS = 9
WARM_UP = 2  # passes before the first round: the JVM compiles what is hot
# glibc's malloc keeps what the emptied cache frees. Left alone it does so in C only, which has freed a large mapping
# before; the others would take page faults for frames that were there a moment ago.
KEEP = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
PAIRS = 80 * 128  # of put and get in a pass


class Program:
    def __init__(self, text):
        self.name, command = text.split("=", 1)
        self.process = subprocess.Popen(command.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | KEEP)

    def run(self):
        """One pass; its seconds."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"bars: the program of {self.name} ended with {self.process.wait()}")
        return int(line) / 1e9

    def cpu(self):
        """Seconds that its threads have run, whatever else the machine does."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit(f"bars: the program of {self.name} ended with {self.process.returncode}")


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def machine():
    def field(path, name):
        with open(path) as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(name)), "")
    return {"cpu": field("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory": field("/proc/meminfo", "MemTotal"), "kernel": platform.release()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    parser.add_argument("--rounds", type=int, default=90)
    parser.add_argument("programs", nargs=4)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    seconds = {text.split("=", 1)[0]: [] for text in args.programs}
    cpu = {name: [] for name in seconds}  # one a start: seconds for a put and get
    for start in range(STARTS):
        programs = [Program(text) for text in args.programs]
        for program in programs:
            for _ in range(WARM_UP):
                program.run()
        before = {program.name: program.cpu() for program in programs}
        for turn in range(args.rounds // STARTS):
            for program in programs if (start + turn) % 2 == 0 else programs[::-1]:
                seconds[program.name].append(program.run())
        for program in programs:
            cpu[program.name].append((program.cpu() - before[program.name]) / (args.rounds // STARTS * PAIRS))
            program.end()

    base = statistics.median(seconds["c"])
    bars, lines = [], ["| bar | value | bar | met | peer | rounds | spread | figures |", "|---|---|---|---|---|---|---|---|"]
    for name, bar in BARS.items():
        median = statistics.median(seconds[name])
        value = median / base
        low, _, high = (part / PAIRS * 1e6 for part in statistics.quantiles(seconds[name], n=4))
        note = (f"put + get of 64 KiB: {median / PAIRS * 1e6:.1f} us (middle half {low:.1f} to {high:.1f}), "
                f"C {base / PAIRS * 1e6:.1f} us; processor time {statistics.median(cpu[name]) * 1e6:.1f} us, "
                f"C {statistics.median(cpu['c']) * 1e6:.1f} us")
        bars.append({"name": f"binding_{name}", "value": value, "unit": "x time of C", "op": "<=", "bar": bar,
                     "ok": value <= bar, "peer": {"name": "c", "value": base / PAIRS}, "rounds": len(seconds[name]),
                     "spread": spread(seconds[name]), "load": load, "note": note})
        met = "yes" if value <= bar else "**no**"
        lines.append(f"| `binding_{name}` | {value:.4g} x time of C | <= {bar:.4g} | {met} | c {base / PAIRS:.4g} | "
                     f"{len(seconds[name])} | {spread(seconds[name]) * 100:.0f} % | {note} |")
    print("\n".join(lines))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"schema": 1, "machine": machine(), "bars": bars}, file, indent=2)
            file.write("\n")
    if args.markdown:
        with open(args.markdown, "w") as file:
            file.write("\n".join(lines) + "\n")
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    raise SystemExit(main())
