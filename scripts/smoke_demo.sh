#!/bin/bash
# The main job on a short text: exits non-zero when a row that must be identical is not.
# Usage: smoke_demo.sh KVARTET
set -euo pipefail
work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-smoke-XXXXXX")"
trap 'rm -rf "$work"' EXIT
for sentence in {1..12}; do
  echo "Note $sentence: a block of the cache holds sixteen tokens, and its name depends on everything before it."
done >"$work/prompt.txt"
"$1" demo --tokens 32 --prompt "$work/prompt.txt" --json "$work/demo.json"
python3 - "$work/demo.json" <<'PY'
import json, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
rows = {row["way"]: row for row in report["rows"]}
for way in ("recompute", "raw", "lossy", "lossy_verified", "cache_hit"):
    row = rows[way]
    parts = sum(value for name, value in row["ttft_ms"].items() if name != "total")
    total = row["ttft_ms"]["total"]
    assert abs(parts - total) <= 0.01 * total + 0.1, f"{way}: parts of ttft_ms add up to {parts}, total is {total}"
    if way != "lossy":
        assert row["equal_tokens"] == row["tokens"], f"{way}: {row['equal_tokens']} of {row['tokens']} tokens are equal"
PY
