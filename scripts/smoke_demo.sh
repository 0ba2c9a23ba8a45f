#!/bin/bash
# The main job on a short text, with a codec that needs no profile and with one that is given a small profile: exits
# non-zero when a row that must be identical is not.
# Usage: smoke_demo.sh KVARTET
set -euo pipefail
kvartet="$1"
document="$(dirname "$(dirname "$(readlink -f "$0")")")/docs/concepts.md"
work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-smoke-XXXXXX")"
trap 'rm -rf "$work"' EXIT
for sentence in {1..12}; do
  echo "Note $sentence: a block of the cache holds sixteen tokens, and its name depends on everything before it."
done >"$work/prompt.txt"
# Refused before any work, and it says what there is.
refusal="$("$kvartet" demo --codec nosuch --model /nonexistent 2>&1)" && exit 1
case "$refusal" in *"'nosuch' is not one of raw, lossless"*) ;; *) echo "demo --codec nosuch says: $refusal" && exit 1 ;; esac
# Too small a profile to be good; the rows that must be identical do not depend on it.
"$kvartet" calibrate "$document" --tokens 512 --document-tokens 256 --group-layers 3 --no-weights --out "$work/profile"
"$kvartet" demo --codec kivi4 --tokens 32 --prompt "$work/prompt.txt" --json "$work/kivi4.json"
"$kvartet" demo --profile "$work/profile" --tokens 16 --prompt "$work/prompt.txt" --json "$work/transform.json"
python3 - "$work/kivi4.json" "$work/transform.json" "$work/profile" <<'PY'
import json, os, sys

for path in sys.argv[1:3]:
    report = json.load(open(path, encoding="utf-8"))
    rows = {row["way"]: row for row in report["rows"]}
    for way in ("recompute", "raw", "lossy", "lossy_verified", "cache_hit"):
        row = rows[way]
        parts = sum(value for name, value in row["ttft_ms"].items() if name != "total")
        total = row["ttft_ms"]["total"]
        assert abs(parts - total) <= 0.01 * total + 0.1, f"{path}: {way}: parts of ttft_ms add up to {parts}, total is {total}"
        if way != "lossy":
            assert row["equal_tokens"] == row["tokens"], f"{path}: {way}: {row['equal_tokens']} of {row['tokens']} tokens are equal"
    moved = report["profile"]["moved"]
    if report["codec"] == "kivi4":
        assert moved == 0 and report["profile"]["fingerprint"] == "", report["profile"]
    else:
        size = os.path.getsize(sys.argv[3])
        assert size < moved < size + 65536, f"D fetched {moved} bytes for a profile of {size}"
        assert rows["lossy"]["ratio"] > 6, f"lossy ratio is {rows['lossy']['ratio']}"
PY
