#!/usr/bin/env python3
"""Prints 'N passed N skipped N failed' for a JUnit file that ctest wrote, and the failed names on stderr."""
import sys
import xml.etree.ElementTree as xml


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: count_tests.py REPORT.xml")
    try:
        suite = xml.parse(sys.argv[1]).getroot()
    except (OSError, xml.ParseError) as error:
        sys.exit(f"count_tests: {sys.argv[1]}: {error}")
    passed = skipped = failed = 0
    for case in suite.iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status in ("notrun", "disabled") and case.find("failure") is None:
            skipped += 1
            print(f"kvartet: skipped: {case.get('name')}", file=sys.stderr)
        else:
            failed += 1
            print(f"kvartet: FAILED: {case.get('name')}", file=sys.stderr)
    print(passed, "passed", skipped, "skipped", failed, "failed")


main()
