#!/usr/bin/env python3
"""Checks of the tracked files that no compiler makes: length, unfinished work, doc links, change fragments.
Usage: check_files.py lengths|unfinished|links|changes|comments|forbidden"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".py", ".sh", ".i", ".go", ".java", ".rs"}
MAX_LINES = 450
MAX_BYTES = 1 << 20
MAX_SAMPLE_LINES = 100
KINDS = {"added", "changed", "fixed", "removed", "abi"}
SLUG = re.compile(r"[a-z0-9][a-z0-9-]{2,60}\.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
# Each public declaration says from which threads, whether it blocks, and since when; declarations that follow one
# another without a blank line share a comment.
DECLARATION = re.compile(r"^KVT_API\b[^;]*;", re.MULTILINE | re.DOTALL)
REQUIRED_WORDS = ("threads", "block", "since")


def tracked():
    output = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [path for name in output.decode().split("\0") if name for path in [ROOT / name] if path.is_file()]


def is_generated(path):
    return "generated" in path.relative_to(ROOT).parts


def is_source(path):
    return path.suffix in SOURCES or (path.suffix == "" and path.read_bytes()[:2] == b"#!")


def lengths():
    for path in tracked():
        if path.stat().st_size > MAX_BYTES:
            yield f"{path}: {path.stat().st_size} bytes; the limit is {MAX_BYTES}"
        if is_source(path) and not is_generated(path):
            lines = path.read_bytes().count(b"\n")
            if lines > MAX_LINES:
                yield f"{path}: {lines} lines; the limit is {MAX_LINES}: split it by idea"
            if path.relative_to(ROOT).parts[0] == "samples" and lines > MAX_SAMPLE_LINES:
                yield f"{path}: {lines} lines; a sample has at most {MAX_SAMPLE_LINES}"
            if path.read_bytes()[-1:] not in (b"\n", b""):
                yield f"{path}: no newline at the end"
    agents = ROOT / "AGENTS.md"
    if len(agents.read_text(encoding="utf-8").splitlines()) >= 100:
        yield f"{agents}: 100 lines or more"


def unfinished():
    for path in tracked():
        if not is_source(path) or is_generated(path):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if UNFINISHED.search(line):
                yield f"{path}:{number}: unfinished work is an issue, not a comment"


def anchors(path):
    """The anchors that a Markdown file's headings make."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"#+\s+(.*)", line)
        if match:
            text = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
            found.add(text.replace(" ", "-"))
    return found


def links():
    for path in tracked():
        if path.suffix != ".md":
            continue
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            goal = (path.parent / name).resolve() if name else path
            if not goal.exists():
                yield f"{path}: link to '{target}': no such file"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
                yield f"{path}: link to '{target}': no such heading"


def changes():
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        if parts[0] != "changes" or parts == ("changes", "README.md"):
            continue
        if len(parts) != 3 or parts[1] not in KINDS or not SLUG.fullmatch(parts[2]):
            yield f"{path}: wanted changes/<{'|'.join(sorted(KINDS))}>/<slug>.md"
            continue
        lines = path.read_text(encoding="utf-8").strip().splitlines()
        if not lines or lines[0].startswith("#") or not lines[-1].rstrip().endswith("."):
            yield f"{path}: wanted sentences for users, without a heading, that end with a full stop"
    if "## " not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"{ROOT / 'CHANGELOG.md'}: no section"


def comments():
    for path in sorted((ROOT / "include" / "kvartet").glob("*.h")):
        text = path.read_text(encoding="utf-8")
        for match in DECLARATION.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            before = text[: match.start()].rsplit("\n\n", 1)[-1]
            comment = before[max(before.rfind("/*"), 0):].lower() if "*/" in before else ""
            missing = [word for word in REQUIRED_WORDS if word not in comment]
            if missing:
                name = re.search(r"(kvt_\w+)\s*\(", match.group(0))
                yield f"{path}:{number}: {name.group(1) if name else 'declaration'}: its comment lacks {', '.join(missing)}"


# What the library must not do in its host's process, and locks that ThreadSanitizer does not see.
FORBIDDEN = [
    (re.compile(r"absl/synchronization|absl::(Mutex|CondVar|Notification)\b"), "use kvt::Mutex and kvt::CondVar"),
    (re.compile(r"std::(mutex|shared_mutex|recursive_mutex|lock_guard|scoped_lock|unique_lock)\b"), "use kvt::Mutex"),
    (re.compile(r"(?<![\w.>])(std::)?(signal|sigaction|setlocale|exit|_exit|abort|atexit)\s*\("), "a library leaves the process alone"),
    (re.compile(r"(?<![\w.>])(std::)?((printf|puts)\s*\(|(cerr|cout)\b)"), "a library logs to its sink only"),
]


def forbidden():
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        if parts[0] not in ("lib", "kernels") or path.suffix not in SOURCES or is_generated(path):
            continue
        if parts == ("lib", "base", "mutex.h"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = re.sub(r"//.*|\"(\\.|[^\"\\])*\"", "", line)
            for pattern, advice in FORBIDDEN:
                if pattern.search(line if "include" in line else code):
                    yield f"{path}:{number}: {advice}: {line.strip()}"


CHECKS = {check.__name__: check for check in (lengths, unfinished, links, changes, comments, forbidden)}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        sys.exit(f"usage: check_files.py {'|'.join(CHECKS)}")
    found = [line.replace(f"{ROOT}/", "") for line in CHECKS[sys.argv[1]]()]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
