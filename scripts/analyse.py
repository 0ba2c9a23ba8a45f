#!/usr/bin/env python3
"""Runs clang's thread-safety analysis and clang-tidy over lib/ and kernels/ with the flags of a configured build.
A file is analysed again only when it, a header of the tree, or the rules changed: results that were clean are
remembered in BUILD/analysed. Usage: analyse.py BUILD [-j JOBS]"""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLANG = "clang++-14"
TIDY = "clang-tidy-14"
# gcc-only options that clang refuses or warns about.
DROP = re.compile(r"^(-fno-gnu-unique|-fconcepts|-fanalyzer|-Wno-(maybe-uninitialized|stringop.*|psabi|restrict))$")
THREAD_SAFETY = ["-fsyntax-only", "-Wthread-safety", "-Wno-unknown-warning-option", "-Werror=thread-safety"]


def entries(build):
    """(source, arguments) of the project's own C++ files, the launcher and outputs removed."""
    seen = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        try:
            area = source.relative_to(ROOT).parts[0]
        except ValueError:
            continue
        if area not in ("lib", "kernels") or source.suffix not in (".cc", ".cpp"):
            continue
        words = shlex.split(entry["command"])
        while not pathlib.Path(words[0]).name.startswith(("g++", "c++", "clang")):
            words.pop(0)
        arguments, skip = [], False
        for word in words[1:]:
            if skip:
                skip = False
            elif word in ("-o", "-MF", "-MT", "-MQ"):
                skip = True
            elif word in ("-c", "-MD", "-MMD") or DROP.match(word) or word == str(source):
                pass
            else:
                arguments.append(word)
        seen[source] = (entry["directory"], arguments)
    return sorted(seen.items())


def fingerprint(source, arguments):
    """Changes when the source, any header of the tree, the rules or the tools change."""
    digest = hashlib.sha256(repr((str(source), arguments, THREAD_SAFETY)).encode())
    digest.update(source.read_bytes())
    digest.update(COMMON)
    return digest.hexdigest()


def common_digest():
    digest = hashlib.sha256()
    for path in [ROOT / ".clang-tidy", pathlib.Path(__file__)]:
        digest.update(path.read_bytes())
    for area in ("include", "lib", "kernels"):
        for path in sorted((ROOT / area).rglob("*.h")):
            digest.update(path.read_bytes())
    for tool in (CLANG, TIDY):
        digest.update(subprocess.run([tool, "--version"], check=True, capture_output=True).stdout)
    return digest.digest()


def analyse(source, directory, arguments):
    """The findings as text; empty when there is none."""
    runs = [
        [CLANG, *arguments, *THREAD_SAFETY, str(source)],
        [TIDY, "--quiet", str(source), "--", *arguments, "-Wno-everything"],
    ]
    found = ""
    for run in runs:
        result = subprocess.run(run, cwd=directory, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            found += result.stdout + result.stderr
    return found


# Writes a guarded member without its lock: the analysis must refuse it.
UNGUARDED = """#include "base/mutex.h"
struct Counter {
  kvt::Mutex mu;
  int value ABSL_GUARDED_BY(mu) = 0;
  void Add() { ++value; }
};
void Use(Counter& counter) { counter.Add(); }
"""


def self_test(directory, arguments):
    run = [CLANG, *arguments, *THREAD_SAFETY, "-x", "c++", "-"]
    result = subprocess.run(run, cwd=directory, input=UNGUARDED, capture_output=True, text=True, check=False)
    if result.returncode == 0 or "requires holding mutex" not in result.stderr:
        sys.exit(f"analyse: self-test: an unguarded write was not found\n{result.stderr}")


def main():
    global COMMON
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-j", dest="jobs", type=int, default=1)
    options = parser.parse_args()
    COMMON = common_digest()
    memory = options.build / "analysed"
    memory.mkdir(exist_ok=True)
    todo = []
    files = entries(options.build.resolve())
    if not files:
        sys.exit(f"analyse: {options.build}/compile_commands.json names no file of lib/ or kernels/")
    self_test(*next(flags for source, flags in files if "lib" in source.relative_to(ROOT).parts))
    for source, (directory, arguments) in files:
        mark = memory / fingerprint(source, arguments)
        if not mark.exists():
            todo.append((source, directory, arguments, mark))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(analyse, source, directory, arguments): (source, mark)
                for source, directory, arguments, mark in todo}
        for job in concurrent.futures.as_completed(jobs):
            source, mark = jobs[job]
            if job.result():
                failed += 1
                print(f"{source.relative_to(ROOT)}:\n{job.result()}")
            else:
                mark.touch()
    print(f"analyse: {len(files)} files, {len(todo)} analysed, {failed} with findings")
    sys.exit(1 if failed else 0)


COMMON = b""
if __name__ == "__main__":
    main()
