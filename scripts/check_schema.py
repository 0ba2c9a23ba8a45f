#!/usr/bin/env python3
"""The FlatBuffers schemas still read what the last release wrote: each lib/schema/*.fbs of the last tag has its
evolution in the tree, as flatc --conform sees it. Usage: check_schema.py [ROOT]"""
import pathlib
import subprocess
import sys
import tempfile

import releases

FOLDER = "lib/schema"


def problems(root, tag):
    """What of the tag's schemas the tree breaks, a line each."""
    found = []
    with tempfile.TemporaryDirectory(prefix="kvt-schema-") as work:
        for name in releases.files_at(root, tag, FOLDER):
            if not name.endswith(".fbs"):
                continue
            now = root / FOLDER / name
            if not now.is_file():
                found.append(f"{FOLDER}/{name} was in {tag} and is gone")
                continue
            before = pathlib.Path(work, name)
            before.write_text(releases.file_at(root, tag, f"{FOLDER}/{name}"), encoding="utf-8")
            outcome = subprocess.run(["flatc", "--conform", str(before), str(now)], capture_output=True,
                                     text=True, check=False, cwd=work)
            if outcome.returncode != 0:
                text = (outcome.stdout + outcome.stderr).strip()
                found.append(f"{FOLDER}/{name} is no evolution of that of {tag}: {text}")
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    tag, why = releases.last_release(root)
    if tag is None:
        print(f"note: schemas were not compared: {why}")
        return
    found = problems(root, tag)
    if found:
        print("\n".join(found))
        sys.exit("add fields with new ids only; what is written keeps its meaning")
    print(f"the schemas conform to those of {tag}")


main()
