#!/bin/bash
# `kvartet quality` on one short text: figures that must hold whatever the machine, and what it says of bad input.
# Usage: quality_test.sh KVARTET
set -euo pipefail
kvartet="$1"
work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-quality-XXXXXX")"
trap 'rm -rf "$work"' EXIT
for number in {1..60}; do
  echo "Shelf $((number * 37 % 101)) holds box $number, which the machine of row $((number % 7)) fetched on day $((number * 13 % 29))."
done >"$work/text.txt"
quality=("$kvartet" quality --weights shipped --repeat 1)
lengths=(--context 256 --continuation 16)

"$kvartet" calibrate "$work/text.txt" --tokens 256 --document-tokens 128 --ratio-min 8 --out "$work/profile" >/dev/null
"${quality[@]}" "${lengths[@]}" "$work/text.txt" --methods raw,int8,kivi4,kivi2,transform@8 --profile "$work/profile" \
  --json "$work/quality.json" --markdown "$work/quality.md" >"$work/table"
cmp "$work/table" "$work/quality.md"
python3 - "$work/quality.json" "$work/profile" <<'PY'
import json, os, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
rows = {row["method"]: row for row in report["methods"]}
sizes = {row["method"]: row for row in report["documents"][0]["methods"]}


def near(what, value, wanted, tolerance):
    assert abs(value - wanted) <= tolerance * wanted, f"{what} is {value}, wanted {wanted}"


assert rows["raw"]["kl"] == 0, f"raw: KL is {rows['raw']['kl']}, must be exactly 0"
assert rows["raw"]["same_percent"] == 100 and rows["raw"]["perplexity_percent"] == 0
assert rows["raw"]["kl_95"] is None, "one document has no interval"
near("raw: whole ratio", rows["raw"]["whole_ratio"], 1, 0.02)
near("int8: coded ratio", rows["int8"]["coded_ratio"], 2 * 64 / 66, 0.02)
near("kivi4: coded ratio", rows["kivi4"]["coded_ratio"], 16 / 5, 0.03)
near("kivi2: coded ratio", rows["kivi2"]["coded_ratio"], 16 / 3, 0.05)
near("transform@8: coded ratio", rows["transform@8"]["coded_ratio"], 8, 0.05)
assert 0 <= rows["int8"]["kl"] < rows["kivi2"]["kl"] and rows["kivi4"]["kl"] < rows["kivi2"]["kl"]
assert report["more_kl_than"] == "kivi4" and rows["kivi4"]["more_kl"] == 0
assert sizes["raw"]["exempt_bytes"] * 256 == sizes["raw"]["raw_bytes"] * 132
for name, row in rows.items():
    size = sizes[name]
    near(f"{name}: whole ratio", row["whole_ratio"], size["raw_bytes"] / size["frame_bytes"], 1e-9)
    assert row["encode_us_token"] > 0 and row["decode_us_token"] > 0
one = rows["transform@8"]["amortised_ratio"]["1"]
frame = sizes["transform@8"]["frame_bytes"]
near("transform@8: ratio with the profile", one, sizes["raw"]["raw_bytes"] / (frame + os.path.getsize(sys.argv[2])), 1e-9)
PY

# refused WORDS ARGUMENTS...: the command fails and says so.
refused() {
  local words="$1" status=0
  shift
  "${quality[@]}" "${lengths[@]}" "$@" >"$work/out" 2>&1 || status=$?
  if [ "$status" -ne 0 ] && [ "$status" -lt 128 ] && grep -qF -- "$words" "$work/out"; then return; fi
  echo "quality $*: status $status, wanted a failure that says '$words'; it said:"
  cat "$work/out"
  return 1
}

head -c 200 "$work/text.txt" >"$work/short.txt"
head -c 4096 /dev/zero >"$work/binary.txt"
head -c 1000 "$work/profile" >"$work/torn"
refused "'transform@3': the ratio must be a whole number from 4 to 32" "$work/text.txt" --methods transform@3
refused "kivi4 is named twice" "$work/text.txt" --methods kivi4,kivi4
refused "method zip" "$work/text.txt" --methods zip
refused "is too short" "$work/short.txt" --methods int8
refused "is binary" "$work/binary.txt" --methods int8
refused "$work/none.txt: cannot be read" "$work/none.txt" --methods int8
refused "256 of 256 tokens are exempt" "$work/text.txt" --methods int8 --sinks 128 --window 128
refused "--documents is 2, there are 1 documents" "$work/text.txt" --methods int8 --documents 2
refused "--profile $work/torn: kvt_profile_fingerprint: KVT_ERR_CORRUPT" "$work/text.txt" --methods transform@8 --profile "$work/torn"
refused "$work/none: cannot be read" "$work/text.txt" --methods transform@8 --profile "$work/none"
refused "--profile $work/profile: kvt_codec_create: KVT_ERR_INVALID_ARGUMENT" "$work/text.txt" --methods transform@4 --profile "$work/profile"
lengths=(--context 9000)
refused "more than the model's context" "$work/text.txt" --methods int8
refused "not a GGUF file" "$work/text.txt" --methods int8 --model "$work/text.txt"
