# shellcheck shell=bash
# Texts for calibration and for measuring quality, copied out of Debian packages into .deps/texts/: installed files
# where they are there, the package's archive where it is not installed or was installed without documentation.

# text_lines LIST: its lines without comments.
text_lines() { grep -vE '^(#|$)' "$ROOT/scripts/texts/$1.txt"; }

lists_are_apart() {
  local twice
  twice="$(for list in "$ROOT"/scripts/texts/*.txt; do
    text_lines "$(basename "$list" .txt)" | cut -d' ' -f1 | sort -u
  done | sort | uniq -d)"
  [ -z "$twice" ] && return
  echo "packages in more than one list of scripts/texts: $twice"
  return 1
}

# from_archive PACKAGE PATH FILE: downloads the package, without installing it, and takes one file out.
from_archive() {
  local archives="$DEPS/dl/texts"
  mkdir -p "$archives" || return 1
  if ! compgen -G "$archives/$1_*.deb" >/dev/null; then
    apt-cache show "$1" >/dev/null 2>&1 || as_root apt-get update -qq || return 1
    (cd "$archives" && apt-get download -q -o APT::Sandbox::User=root "$1") || return 1
  fi
  dpkg-deb --fsys-tarfile "$archives/$1"_*.deb | tar -xO ".$2" >"$3" && [ -s "$3" ] && return
  echo "package $1 has no file $2"
  return 1
}

# from_byte OFFSET FILE: the text of a file, gzip'd or not, without its first OFFSET bytes.
from_byte() {
  zcat -f "$2" | tail -c "+$(($1 + 1))" >"$2.cut" && rm "$2" && mv "$2.cut" "${2%.gz}"
}

# is_utf8 FILE: gzip'd or not.
is_utf8() {
  zcat -f "$1" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1 && return
  echo "$1 is not UTF-8 text: take another file into scripts/texts"
  return 1
}

copy_texts() {
  local package path kind offset file number=0 folder="$DEPS/texts/$1"
  lists_are_apart || return 1
  rm -rf "$folder.new"
  mkdir -p "$folder.new" || return 1
  while read -r package path kind offset; do
    number=$((number + 1))
    file="$(printf '%s/%02d-%s-%s-%s' "$folder.new" "$number" "$kind" "$package" "$(basename "$path")")"
    { [ -s "$path" ] && cp "$path" "$file"; } || from_archive "$package" "$path" "$file" || return 1
    chmod 644 "$file"
    is_utf8 "$file" || return 1
    [ -z "$offset" ] || from_byte "$offset" "$file" || return 1
  done < <(text_lines "$1")
  rm -rf "$folder"
  mv "$folder.new" "$folder"
}

# texts LIST: does nothing when the list is as it was.
texts() {
  local stamp
  stamp="$(sha256sum <"$ROOT/scripts/texts/$1.txt" | cut -d' ' -f1)"
  if has_stamp "texts-$1" "$stamp" && [ -d "$DEPS/texts/$1" ]; then return; fi
  step "texts-$1" "$NETWORK_HINT" copy_texts "$1"
  write_stamp "texts-$1" "$stamp"
}
