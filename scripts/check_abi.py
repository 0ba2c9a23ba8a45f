#!/usr/bin/env python3
"""The library's ABI is the one in tests/abi/libkvartet.abi, and each change of that file since the last release is
named in changes/abi/. Before 1.0 nothing is frozen, but nothing changes unnoticed.
Usage: check_abi.py LIBRARY [--update] [--root ROOT]     LIBRARY has debug information; --update writes the file"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import releases

BASELINE = "tests/abi/libkvartet.abi"
ABIDW = ["abidw", "--drop-private-types", "--exported-interfaces-only", "--no-corpus-path", "--no-comp-dir-path",
         "--no-show-locs", "--no-elf-needed", "--no-parameter-names", "--type-id-style", "hash"]
ABIDIFF = ["abidiff", "--leaf-changes-only", "--harmless", "--no-show-locs"]
# abidiff's exit status is a sum of: 1 an error, 2 wrong arguments, 4 a change, 8 an incompatible change.
FAILED = 3
FUNCTION = re.compile(r"\[[ACD]\] '(?:function|method|variable) ([^']*)'")
SYMBOL = re.compile(r"\[[ACD]\] (\w+)$", re.MULTILINE)
TYPE = re.compile(r"^\s*'(?:struct|union|enum|class|typedef) (\w+)[^']*'(?: at \S+)? changed", re.MULTILINE)


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def dump(library, headers):
    """The ABI as XML, free of what depends on the place of the build."""
    outcome = run([*ABIDW, "--headers-dir", str(headers), str(library)])
    if outcome.returncode != 0 or "<function-decl" not in outcome.stdout:
        sys.exit(f"{library}: abidw found no function: is it built with -g?\n{outcome.stderr.strip()}")
    return re.sub(r" path='[^']*/(lib/[^']*)'", r" path='\1'", outcome.stdout)


def compare(before, after):
    """abidiff's report of two ABIs as XML; empty when they are equal."""
    with tempfile.TemporaryDirectory(prefix="kvt-abi-") as work:
        names = []
        for name, text in (("before.abi", before), ("after.abi", after)):
            names.append(pathlib.Path(work, name))
            names[-1].write_text(text, encoding="utf-8")
        outcome = run([*ABIDIFF, *map(str, names)])
    if outcome.returncode & FAILED:
        sys.exit(f"abidiff failed: {outcome.stdout}{outcome.stderr}")
    return outcome.stdout.strip() if outcome.returncode else ""


def changed_names(report):
    """The functions and types that a report is about."""
    functions = [match.group(1) for match in map(re.compile(r"(\w+)\s*\(").search, FUNCTION.findall(report)) if match]
    return sorted({*functions, *SYMBOL.findall(report), *TYPE.findall(report)})


def unnamed(root, names):
    """Those that no fragment of changes/abi and no line of the changelog's newest section names, as kvt_x_create or
    as kvt_x_*."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((root / "changes/abi").glob("*.md")))
    changelog = root / "CHANGELOG.md"
    if changelog.is_file():
        text += "".join(changelog.read_text(encoding="utf-8").split("\n## ")[1:2])
    families = tuple(re.findall(r"\b(kvt_\w+_)\*", text))
    return [name for name in names
            if not name.startswith(families) and not re.search(rf"\b{re.escape(name)}(_t)?\b", text)]


def before_now(root):
    """The baseline to which changes have to be named, or None: the last release's, else the one before the last
    change."""
    tag, _ = releases.last_release(root)
    if tag is not None:
        return releases.file_at(root, tag, BASELINE)
    committed = releases.file_at(root, "HEAD", BASELINE)
    if committed is not None and committed != (root / BASELINE).read_text(encoding="utf-8"):
        return committed
    changed = releases.git(root, "log", "-1", "--format=%H", "--", BASELINE).stdout.strip()
    return releases.file_at(root, f"{changed}~1", BASELINE) if changed else None


def require_names(root, report):
    missing = unnamed(root, changed_names(report))
    if missing:
        sys.exit(f"{report}\n\nno changes/abi/<slug>.md names {', '.join(missing)}: say there what changed for callers")


def update(root, now):
    path = root / BASELINE
    if path.is_file():
        report = compare(path.read_text(encoding="utf-8"), now)
        require_names(root, report)
        if not report:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(now, encoding="utf-8")


def check(root, now):
    path = root / BASELINE
    if not path.is_file():
        sys.exit(f"{BASELINE} is missing: run scripts/check_abi.py with --update")
    baseline = path.read_text(encoding="utf-8")
    report = compare(baseline, now)
    if report:
        sys.exit(f"{report}\n\nthe library's ABI is not that of {BASELINE}: if it should be, add changes/abi/<slug>.md "
                 "that names what changed, and run scripts/check_abi.py with --update")
    before = before_now(root)
    if before is not None:
        require_names(root, compare(before, baseline))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    if not options.library.is_file():
        sys.exit(f"no such library: {options.library}")
    now = dump(options.library.resolve(), options.root / "include/kvartet")
    (update if options.update else check)(options.root, now)


main()
