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

"$kvartet" calibrate "$work/text.txt" --tokens 256 --document-tokens 128 --ratio-min 8 --no-weights \
  --out "$work/profile" >/dev/null
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

# Several lengths, a copy probe and all columns, two documents at the same time.
"${quality[@]}" --full --context-lengths 256,320 --continuation 16 "$work/text.txt" --copy "$work/text.txt" --jobs 2 \
  --methods raw,int8,kivi2,dense@20,dense@20:finer,dense@20:plain+scalar --profile "$work/profile" --json "$work/full.json" --markdown "$work/full.md" --html "$work/full.html" >/dev/null
python3 - "$work/full.json" "$work/full.html" <<'PY'
import json, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
page = open(sys.argv[2], encoding="utf-8").read()
assert report["contexts"] == [256, 320]
assert [(row["context"], row["method"]) for row in report["methods"]] == [
    (context, method) for context in (256, 320)
    for method in ("raw", "int8", "kivi2", "dense@20", "dense@20:finer", "dense@20:plain+scalar")]
for row in report["methods"]:
    what = f"{row['method']} at {row['context']}"
    assert row["texts"] == 1 and row["copies"] == 1, what
    assert 0 <= row["equal_prefix"] <= 16 and 0 <= row["copy_equal_prefix"] <= 16, what
    assert row["memory_bytes"]["encode"] > 0, what
    # The profile's figures are those of the trellis.
    assert ("mflop_token" in row) == (row["method"] in ("dense@20", "dense@20:finer")), what
    if row["method"] == "raw":
        assert row["kl"] == 0 and row["copy_kl"] == 0, what
        assert row["equal_prefix"] == 16 and row["copy_equal_prefix"] == 16, f"{what}: greedy output differs"
    else:
        assert row["kl"] > 0 and row["copy_kl"] > 0, what
rows = {(row["method"], row["context"]): row for row in report["methods"]}
for context in (256, 320):
    raw, finer = rows["dense@20", context], rows["dense@20:finer", context]
    assert finer["whole_ratio"] == finer["coded_ratio"] > raw["whole_ratio"], "dense: exempt tokens are not smaller"
    assert raw["coded_ratio"] > raw["whole_ratio"], "dense: exempt tokens are not raw"
assert all(document["importance_us"] > 0 for document in report["documents"])
assert [document["copy"] for document in report["documents"]] == [False, False, True, True]
assert page.count("<svg") == 10 and "http" not in page
PY

# An interrupted run goes on with what it has.
many=("${quality[@]}" "${lengths[@]}" --methods "int8,kivi2")
for number in 1 2 3; do tail -n "+$number" "$work/text.txt" >"$work/text$number.txt"; done
"${many[@]}" "$work"/text[1-3].txt --state "$work/state" >/dev/null 2>&1 &
job=$!
while kill -0 "$job" 2>/dev/null && [ ! -f "$work/state.kept" ]; do
  if [ -f "$work/state" ] && [ "$(grep -c '' "$work/state")" -ge 2 ]; then
    kill -KILL "$job"
    mv "$work/state" "$work/state.kept"
  fi
  sleep 0.02
done
wait "$job" 2>/dev/null || true
"${many[@]}" "$work"/text[1-3].txt --json "$work/whole.json" >/dev/null
"${many[@]}" "$work"/text[1-3].txt --state "$work/state.kept" --json "$work/resumed.json" >/dev/null 2>"$work/stages"
grep -qE '^[12] of 3 documents are done' "$work/stages"
test ! -e "$work/state.kept"
python3 - "$work/whole.json" "$work/resumed.json" <<'PY'
import json, sys

whole, resumed = (json.load(open(path, encoding="utf-8"))["documents"] for path in sys.argv[1:])
assert len(whole) == 3 and whole == resumed, "a run that was interrupted gives other results"
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
refused "--profile $work/profile: method transform@4: kvt_codec_create: KVT_ERR_INVALID_ARGUMENT" "$work/text.txt" --methods transform@4 --profile "$work/profile"
refused "'dense@7': the ratio must be a whole number from 8 to 96" "$work/text.txt" --methods dense@7
refused "is not the state of this run" "$work/text.txt" --methods int8 --state "$work/text.txt"
refused "excludes --group-layers" "$work/text.txt" --methods int8 --group-layers 2 --profile "$work/profile"
lengths=(--context 256 --continuation 96)
refused "needs a context of 304 tokens or more" --copy "$work/text.txt" --methods int8
lengths=(--context 9000)
refused "more than the model's context" "$work/text.txt" --methods int8
refused "not a GGUF file" "$work/text.txt" --methods int8 --model "$work/text.txt"
