#!/usr/bin/env python3
"""Keeps the C in the documentation equal to programs that are compiled and run.

A fence in a Markdown file that follows a line `<!-- snippet: FILE [PART] -->` shows docs/snippets/FILE, or the part of it
between the comments /* [PART] */ and /* [/PART] */, without the common indent.
Usage: extract_snippets.py --check|--update"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
SNIPPETS = ROOT / "docs" / "snippets"
FENCE = re.compile(r"<!-- snippet: (\S+?)(?: (\S+))? -->\n```c\n(.*?)```\n", re.DOTALL)
ANY_C_FENCE = re.compile(r"^```c\n", re.MULTILINE)


def shown(name, part):
    text = (SNIPPETS / name).read_text(encoding="utf-8")
    if part is None:
        return text
    found = re.search(rf"/\* \[{re.escape(part)}\] \*/\n(.*?)[ \t]*/\* \[/{re.escape(part)}\] \*/", text, re.DOTALL)
    if not found:
        sys.exit(f"docs/snippets/{name}: no part '{part}'")
    return textwrap.dedent(found.group(1))


def main():
    if sys.argv[1:] not in (["--check"], ["--update"]):
        sys.exit(__doc__)
    failed = False
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(ROOT)

        def replace(match):
            name, part = match.group(1), match.group(2)
            label = name if part is None else f"{name} {part}"
            return f"<!-- snippet: {label} -->\n```c\n{shown(name, part)}```\n"

        updated = FENCE.sub(replace, text)
        if len(FENCE.findall(text)) != len(ANY_C_FENCE.findall(text)):
            print(f"{where}: a C fence without a snippet line: nobody compiles it")
            failed = True
        if updated != text and sys.argv[1] == "--check":
            print(f"{where}: a fence differs from its snippet: run docs/extract_snippets.py --update")
            failed = True
        elif updated != text:
            path.write_text(updated, encoding="utf-8")
            print(f"{where}: updated")
    sys.exit(1 if failed else 0)


main()
