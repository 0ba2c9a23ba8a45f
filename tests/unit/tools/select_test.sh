#!/bin/bash
# `kvartet select` on one short text: what must hold whatever the machine, and what it says of bad input.
# Usage: select_test.sh KVARTET
set -euo pipefail
kvartet="$1"
work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-select-XXXXXX")"
trap 'rm -rf "$work"' EXIT
{
  echo "The secret word of the vault is PELICAN. Whoever asks is told that the secret word of the vault is PELICAN."
  for number in {1..24}; do
    echo "Shelf $((number * 37 % 101)) holds box $number, fetched on day $((number * 13 % 29))."
  done
  echo "The secret word of the vault is"
} >"$work/text.txt"
select=("$kvartet" select --window 16 --prompt 96)
sizes=(--context 512 --tokens 12 --long 64 --every 24)

"${select[@]}" "${sizes[@]}" "$work/text.txt" --budget 25,100 --json "$work/select.json" >"$work/table"
python3 - "$work/select.json" "$work/table" <<'PY'
import json, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
table = open(sys.argv[2], encoding="utf-8").read()
samples = {(s["stage"], s["method"], s["budget_percent"]): s for s in report["documents"][0]["samples"]}
prefill, long = "after prefill", "long generation"
assert set(samples) == {(stage, method, budget) for budget in (25, 100) for stage, methods in (
    (prefill, ("recent", "snapkv", "snapkv+cam")), (long, ("recent", "rkv", "thinkv"))) for method in methods}
for (stage, method, budget), s in samples.items():
    what = f"{method} {stage} at {budget} %: {s}"
    assert s["outputs"] == (12 if stage == prefill else 64), what
    assert s["thinnings"] == (1 if stage == prefill else 2), what
    if budget == 100:
        assert s["kl"] == 0 and s["same_percent"] == 100 and s["equal_prefix"] == s["outputs"], what
        assert s["cells"] == s["of"], what
        continue
    assert s["kl"] > 0 and 0 <= s["same_percent"] <= 100 and 0 <= s["equal_prefix"] <= s["outputs"], what
    if method == "thinkv":
        assert s["cells"] < s["of"], what
    else:
        assert s["cells"] == s["budget"], what
    assert s["most_cells"] > s["cells"] and s["drop_ms"] > 0, what
    if method != "recent":
        assert s["select_ms"] > 0, what
# What the end of the text asks for is far behind the last tokens.
recent, snapkv = (samples[prefill, method, 25] for method in ("recent", "snapkv"))
assert snapkv["kl"] < recent["kl"], f"snapkv {snapkv['kl']}, recent {recent['kl']}"
for method in report["methods"]:
    assert method["kept_bytes"] == method["cells"] * report["token_bytes"] and method["kl_95"] is None
assert table.rstrip().splitlines()[-1] == report["warning"]
assert "comes later" in report["warning"] and "prefix" in report["warning"] and "batch" in report["warning"]
PY

# Without a long output a shorter text will do.
head -n 12 "$work/text.txt" >"$work/short.txt"
"${select[@]}" "$work/short.txt" --budget 50 --long 0 --tokens 4 --json "$work/short.json" >/dev/null
python3 - "$work/short.json" <<'PY'
import json, sys

samples = json.load(open(sys.argv[1], encoding="utf-8"))["documents"][0]["samples"]
assert [s["method"] for s in samples] == ["recent", "snapkv", "snapkv+cam"]
assert all(2 * s["cells"] in (s["of"], s["of"] + 1) for s in samples), samples
PY

# refused WORDS ARGUMENTS...: the command fails and says so.
refused() {
  local words="$1" status=0
  shift
  "${select[@]}" "${sizes[@]}" "$@" >"$work/out" 2>&1 || status=$?
  if [ "$status" -ne 0 ] && [ "$status" -lt 128 ] && grep -qF -- "$words" "$work/out"; then return; fi
  echo "select $*: status $status, wanted a failure that says '$words'; it said:"
  cat "$work/out"
  return 1
}

head -c 200 "$work/text.txt" >"$work/tiny.txt"
refused "is too short" "$work/tiny.txt"
refused "$work/none.txt: cannot be read" "$work/none.txt"
refused "--budget" "$work/text.txt" --budget 0
refused "--documents is 2, there are 1 documents" "$work/text.txt" --documents 2
refused "not a GGUF file" "$work/text.txt" --model "$work/text.txt"
sizes=(--long 64 --every 64)
refused "--every is 64, must be less than the 64 of --long" "$work/text.txt"
sizes=(--context 8190 --tokens 12)
refused "--context is 8190 and --tokens is 12, together more than the model's context" "$work/text.txt"
sizes=(--context 256 --tokens 1 --long 0)
refused "text.txt: --budget 3 keeps 8 of 255 tokens of the context, fewer than the 20 that always stay" "$work/text.txt" --budget 3
