#!/bin/bash
# The symbols that libkvartet exports are those of tests/abi/symbols.txt, all prefixed kvt_, and the SONAME is right.
# Usage: check_symbols.sh STAGE [--update]
set -euo pipefail
root="$(dirname "$(dirname "$(readlink -f "$0")")")"
list="$root/tests/abi/symbols.txt"
library="$(find "$1" -name 'libkvartet.so.0' | head -n 1)"
if [ -z "$library" ]; then
  echo "no libkvartet.so.0 below $1"
  exit 1
fi
soname="$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')"
if [ "$soname" != libkvartet.so.0 ]; then
  echo "SONAME of $library is '$soname', wanted libkvartet.so.0"
  exit 1
fi
exported="$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u)"
if foreign="$(grep -v '^kvt_' <<<"$exported")"; then
  printf 'exported without the prefix kvt_:\n%s\n' "$foreign"
  exit 1
fi
if [ "${2:-}" = --update ]; then
  printf '%s\n' "$exported" >"$list"
  exit 0
fi
if ! diff -u "$list" <(printf '%s\n' "$exported"); then
  echo "the exported symbols changed: run scripts/check_symbols.sh build/stage --update, and add changes/abi/<slug>.md"
  exit 1
fi
