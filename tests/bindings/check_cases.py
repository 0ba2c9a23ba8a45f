#!/usr/bin/env python3
"""Fails when a case of cases.toml has no test in a language, or a test there is no case.

Names: TestCamelCase in Go, lowerCamelCase in Java, snake_case in Rust.
"""
import pathlib
import re
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
BINDINGS = HERE.parent.parent / "bindings"


def read_cases():
    cases = tomllib.loads((HERE / "cases.toml").read_text())["case"]
    ids = [case["id"] for case in cases]
    if len(ids) != len(set(ids)) or not all(case.get("what") for case in cases):
        sys.exit("check_cases: an id comes twice, or a case says nothing")
    return ids


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def lower_camel(name):
    return camel(name)[0].lower() + camel(name)[1:]


LANGUAGES = {
    "go": ("go/*_test.go", r"^func Test(\w+)\(t \*testing\.T\)", camel),
    "java": ("java/test/io/kvartet/*.java", r"^  static void (\w+)\(\)", lower_camel),
    "rust": ("rust/kvartet/**/*.rs", r"#\[test\]\s*\n\s*fn (\w+)\(\)", str),
}


def main():
    ids = read_cases()
    wrong = 0
    for language, (files, pattern, spell) in LANGUAGES.items():
        tests = set()
        for path in sorted(BINDINGS.glob(files)):
            tests.update(re.findall(pattern, path.read_text(), re.M))
        expected = {spell(name): name for name in ids}
        for name in sorted(set(expected) - tests):
            print(f"check_cases: {language} has no test {name} for the case {expected[name]}")
            wrong = 1
        for name in sorted(tests - set(expected)):
            print(f"check_cases: {language}'s test {name} is no case of cases.toml")
            wrong = 1
    if not wrong:
        print(f"cases: {len(ids)}, each with a test in {', '.join(LANGUAGES)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
