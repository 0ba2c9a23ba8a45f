#!/usr/bin/env python3
"""Makes one report of several: merge_bars.py [--calibration REPORT.json] OUT.json OUT.md PART.json...

A part is what kvt_bench and tests/bindings/bench.sh write; a calibration's report, of `kvartet calibrate --json`,
becomes the bar calibrate_min. Ends with 1 when a bar is not met.
"""
import argparse
import json
import os
import pathlib

CALIBRATION_TOKENS, CALIBRATION_MINUTES = 33000, 10


def calibration_bar(path):
    report = json.loads(path.read_text())
    minutes = report["seconds"] / 60 * CALIBRATION_TOKENS / report["tokens"]
    note = f"{report['tokens']} tokens in {report['seconds']:.0f} s on {os.cpu_count()} cores, for {CALIBRATION_TOKENS:,}"
    return {"name": "calibrate_min", "value": minutes, "unit": "min", "op": "<=", "bar": CALIBRATION_MINUTES,
            "ok": minutes <= CALIBRATION_MINUTES, "peer": None, "rounds": 1, "spread": 0.0, "load": os.getloadavg()[0],
            "note": note}


def row(bar):
    wanted = f"{bar['op']} {bar['bar']:.4g}" if bar["op"] else "-"
    met = "reported" if not bar["op"] else "yes" if bar["ok"] else "**no**"
    peer = f"{bar['peer']['name']} {bar['peer']['value']:.4g}" if bar["peer"] else "-"
    return (f"| `{bar['name']}` | {bar['value']:.4g} {bar['unit']} | {wanted} | {met} | {peer} | {bar['rounds']} | "
            f"{bar['spread'] * 100:.0f} % | {bar['load']:.1f} | {bar['note']} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calibration", type=pathlib.Path)
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("markdown", type=pathlib.Path)
    parser.add_argument("parts", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    reports = [json.loads(part.read_text()) for part in args.parts]
    bars = [bar for report in reports for bar in report["bars"]]
    if args.calibration:
        bars.append(calibration_bar(args.calibration))
    lines = ["| bar | value | bar | met | peer | rounds | spread | load | figures |", "|---|---|---|---|---|---|---|---|---|"]
    lines += [row(bar) for bar in bars]
    args.json.write_text(json.dumps({"schema": 1, "machine": reports[0]["machine"], "bars": bars}, indent=2) + "\n")
    args.markdown.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    raise SystemExit(main())
