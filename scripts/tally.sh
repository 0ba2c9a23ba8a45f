# shellcheck shell=bash
# Counts of passed and failed parts, and the one closing line.

PASSED=0
FAILED=0
SKIPPED=0
FAILURES=()

# tally_add N passed N skipped N failed
tally_add() {
  PASSED=$((PASSED + $1))
  SKIPPED=$((SKIPPED + $3))
  FAILED=$((FAILED + $5))
}

tally_fail() {
  FAILED=$((FAILED + 1))
  FAILURES+=("$1")
  printf 'kvartet: FAILED: %s\n' "$1"
}

# tally_run WHAT COMMAND...: one part; its output is shown when it fails, its lines that begin with "note: " always.
tally_run() {
  local what="$1" output
  shift
  if output="$("$@" 2>&1 </dev/null)"; then
    PASSED=$((PASSED + 1))
    [ -z "${VERBOSE:-}" ] || printf 'kvartet: ok: %s\n' "$what"
    sed -n 's/^note: /kvartet: note: /p' <<<"$output"
  else
    printf '%s\n' "$output" | tail -n 60
    tally_fail "$what"
  fi
}

tally_end() {
  local failure skipped=""
  for failure in "${FAILURES[@]}"; do printf 'kvartet: FAILED: %s\n' "$failure"; done
  [ "$SKIPPED" -eq 0 ] || skipped=", $SKIPPED skipped"
  printf '%d passed, %d failed%s\n' "$PASSED" "$FAILED" "$skipped"
  [ "$FAILED" -eq 0 ] && [ "$PASSED" -gt 0 ]
}
