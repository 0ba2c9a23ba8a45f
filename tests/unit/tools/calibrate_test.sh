#!/bin/bash
# kvartet calibrate from outside: a run that is killed goes on to the same profile, and every bad input ends with a
# message and a status that is not 0, and leaves what was there.
# Usage: calibrate_test.sh KVARTET
set -euo pipefail
kvartet="$1"
work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-calibrate-XXXXXX")"
trap 'rm -rf "$work"' EXIT
cd "$work"

for text in one two three; do
  for number in {1..120}; do echo "Page $number of text $text: rows $((number * 37 % 101)) to $((number * 53 % 97))."; done >"$text"
done
small=(--document-tokens 192 --tokens 576 --group-layers 1 --jobs 1 --no-weights)

fail() {
  echo "calibrate_test: $*" >&2
  exit 1
}

# refused WORDS ARGS...: the command fails and says so.
refused() {
  local words="$1"
  shift
  if "$kvartet" calibrate "$@" >out 2>err; then fail "was not refused: $*"; fi
  grep -qF -- "$words" err || fail "no '$words' in: $(cat err)"
}

"$kvartet" calibrate one two three "${small[@]}" --out whole --json report.json 2>/dev/null | tee out
python3 - <<'PY'
import json, os
report = json.load(open("report.json", encoding="utf-8"))
assert report["bytes"] == os.path.getsize("whole") and report["resumed_documents"] == 0, report
assert [document["tokens"] for document in report["documents"]] == [192] * 3, report
assert report["metric"] is True and report["weights"] is None, report
mflop = report["mflop_token"]
assert list(mflop["transform"])[0] == "8" and mflop["transform"]["8"] > mflop["transform"]["32"] > 0, mflop
assert list(mflop["dense"])[-1] == "96" and mflop["dense"]["8"] > mflop["dense"]["96"] > 0, mflop
assert report["tokens"] == 3 * (192 - 4) and len(report["fingerprint"]) == 32, report
names = [(rung["codec"], rung["ratio"]) for rung in report["rungs"]]
assert names == [("lossless", 0), ("int8", 0), ("kivi4", 0), ("transform", 16), ("dense", 20), ("dense", 40)], report
assert [rung["quality_class"] == 0 for rung in report["rungs"]] == [True] + 5 * [False], report
assert all(min(rung["encode_rate"], rung["decode_rate"], rung["reached"] - 1) > 0 for rung in report["rungs"]), report
assert report["processor"], report
PY
grep -qE '^  MFLOP a token each way: transform [0-9.]+ at 8, .*; dense [0-9.]+ at 8' out || fail "no MFLOP in: $(cat out)"
[ ! -e whole.state ] || fail "the state is still there"

# Killed as soon as it says that a document has entered.
mkfifo progress
"$kvartet" calibrate one two three "${small[@]}" --out again 2>progress >/dev/null &
child=$!
while read -r line; do
  case "$line" in *" 1 of 3 documents"*) kill -KILL "$child" ;; esac
done <progress
wait "$child" 2>/dev/null || true
[ -s again.state ] || fail "the killed run left no state"
[ ! -e again ] || fail "the killed run left a profile"
cp again.state kept.state
"$kvartet" calibrate one two three "${small[@]}" --out again --json again.json >out 2>/dev/null
grep -qE '\([12] of them resumed\)' out || fail "did not go on: $(cat out)"
# What codecs cost is measured anew; all else is the same bytes, which the fingerprint is of.
python3 - <<'PY'
import json
whole, again = (json.load(open(name, encoding="utf-8")) for name in ("report.json", "again.json"))
assert whole["fingerprint"] == again["fingerprint"] and whole["bytes"] == again["bytes"], (whole, again)
PY
cp again kept

: >empty
printf 'text\0more' >binary
printf 'caf\351 au lait' >latin
echo "A few words." >short
mkdir folder
refused "empty: has no text" empty "${small[@]}" --out new
refused "binary: is binary, not text" binary "${small[@]}" --out new
refused "latin: is not UTF-8 text at byte 3" latin "${small[@]}" --out new
refused "short: is too short" one short "${small[@]}" --out new
refused "nothing: cannot be read: No such file" nothing "${small[@]}" --out new
refused "the texts are too short" one two --tokens 100000 --document-tokens 192 --out new
refused "folder: cannot be written: is a folder" one two three "${small[@]}" --out folder
refused "cannot be written: Not a directory" one two three "${small[@]}" --out one/profile
refused "kept.state: is the state of a calibration with other texts" one two --tokens 384 --document-tokens 192 \
  --group-layers 1 --no-weights --out new --resume kept.state
refused "kept.state: is the state of a calibration with other texts or settings" one two three "${small[@]}" --no-metric \
  --out new --resume kept.state
refused "whole: is not the state of a calibration" one two three "${small[@]}" --out new --resume whole
refused "--ratio-min" one two three "${small[@]}" --ratio-min 3 --out new
refused "--ratio-min" one two three "${small[@]}" --ratio-min 33 --out new
refused "KVT_ERR_INVALID_ARGUMENT" one two three --document-tokens 192 --tokens 576 --group-layers 31 --no-weights --out new
refused "--model" one two three "${small[@]}" --model one --out new
[ ! -e again.state ] || fail "the state of a finished run is still there"
[ ! -e new ] || fail "a refused run wrote a profile"
cmp kept again
