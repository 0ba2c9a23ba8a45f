#!/usr/bin/env python3
"""scripts/check_abi.py on a tiny library in a throw-away repository."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_abi.py"
HEADER = """typedef struct kvt_box {
  unsigned size;
} kvt_box_t;
int kvt_open(const kvt_box_t* box);
int kvt_close(int number);
"""
SOURCE = """#include "box.h"
struct hidden { int x; };
int kvt_open(const kvt_box_t* box) { return (int)box->size; }
int kvt_close(int number) { struct hidden h = {number}; return h.x; }
"""


class CheckAbiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvt-abi-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.library = self.root / "build/libbox.so"
        for name in ("include/kvartet", "lib", "changes/abi", "build"):
            (self.root / name).mkdir(parents=True)
        (self.root / ".gitignore").write_text("build/\n", encoding="utf-8")
        (self.root / "CHANGELOG.md").write_text("# Changes\n\n## 0.2\n\n## 0.1\n\nkvt_open is new.\n", encoding="utf-8")
        self.git("init", "-q", "-b", "main")
        self.build(HEADER, SOURCE)
        self.assertEqual(self.check("--update"), (0, ""))
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false",
                        "-c", "tag.gpgsign=false", *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "state")

    def build(self, header, source, *options):
        (self.root / "include/kvartet/box.h").write_text(header, encoding="utf-8")
        (self.root / "lib/box.c").write_text(source, encoding="utf-8")
        subprocess.run(["gcc", *(options or ["-g"]), "-shared", "-fPIC", f"-I{self.root}/include/kvartet", "-o",
                        self.library, self.root / "lib/box.c"], check=True)

    def check(self, *options):
        outcome = subprocess.run([sys.executable, SCRIPT, self.library, "--root", self.root, *options],
                                 capture_output=True, text=True, check=False)
        return outcome.returncode, outcome.stdout + outcome.stderr

    def name(self, text):
        (self.root / "changes/abi/change.md").write_text(text + "\n", encoding="utf-8")

    def assert_refused(self, *words):
        status, text = self.check()
        self.assertEqual(status, 1, text)
        for word in (*words, "--update"):
            self.assertIn(word, text)
        status, text = self.check("--update")
        self.assertEqual(status, 1, text)
        self.assertIn(f"names {words[0]}", text)

    def assert_taken(self):
        self.assertEqual(self.check("--update"), (0, ""))
        self.assertEqual(self.check(), (0, ""))

    def test_the_same_library_passes(self):
        self.assertEqual(self.check(), (0, ""))

    def test_private_types_and_places_do_not_enter(self):
        text = (self.root / "tests/abi/libkvartet.abi").read_text(encoding="utf-8")
        self.assertNotIn("hidden", text)
        self.assertNotIn(str(self.root), text)
        self.build(HEADER, SOURCE.replace("int x;", "int x, y;"))
        self.assertEqual(self.check(), (0, ""))

    def test_a_changed_signature_is_reported(self):
        self.build(HEADER.replace("close(int", "close(long"), SOURCE.replace("close(int number", "close(long number")
                   .replace("{number}", "{(int)number}"))
        self.assert_refused("kvt_close", "parameter 1")
        self.name("`kvt_close` takes a long.")
        self.assert_taken()

    def test_a_grown_struct_is_reported(self):
        self.build(HEADER.replace("unsigned size;", "unsigned size, colour;"), SOURCE)
        self.assert_refused("kvt_box", "colour")
        self.name("`kvt_box_t` has a colour.")
        self.assert_taken()

    def test_a_removed_function_is_reported(self):
        self.build(HEADER.replace("int kvt_close(int number);\n", ""), SOURCE.split("int kvt_close")[0])
        self.assert_refused("kvt_close", "Removed")
        self.name("`kvt_close` is gone.")
        self.assert_taken()

    def test_an_added_function_is_reported(self):
        self.build(HEADER + "int kvt_more(void);\n", SOURCE + "int kvt_more(void) { return 1; }\n")
        self.assert_refused("kvt_more", "Added")
        # That an older section of the changelog names something does not count.
        self.name("`kvt_open` is not it.")
        self.assertEqual(self.check("--update")[0], 1)
        self.name("`kvt_more` is new.")
        self.assert_taken()

    def test_a_family_of_functions_is_named_at_once(self):
        self.build(HEADER + "int kvt_lid_up(void);\nint kvt_lid_down(void);\n",
                   SOURCE + "int kvt_lid_up(void) { return 1; }\nint kvt_lid_down(void) { return 1; }\n")
        self.assert_refused("kvt_lid_down", "kvt_lid_up")
        self.name("`kvt_lid_*` are new.")
        self.assert_taken()

    def test_a_baseline_that_was_changed_by_hand_needs_its_name(self):
        self.build(HEADER + "int kvt_more(void);\n", SOURCE + "int kvt_more(void) { return 1; }\n")
        self.name("`kvt_more` is new.")
        self.assert_taken()
        self.name("Something is new.")
        for commit in (False, True):
            if commit:
                self.commit()
            status, text = self.check()
            self.assertEqual(status, 1)
            self.assertIn("names kvt_more", text)

    def test_changes_count_since_the_last_release(self):
        self.git("tag", "v0.1.0")
        self.build(HEADER + "int kvt_more(void);\n", SOURCE + "int kvt_more(void) { return 1; }\n")
        self.name("`kvt_more` is new.")
        self.assert_taken()
        self.commit()
        self.build(HEADER + "int kvt_most(void);\nint kvt_more(void);\n",
                   SOURCE + "int kvt_more(void) { return 1; }\nint kvt_most(void) { return 1; }\n")
        self.name("`kvt_most` is new.")
        self.assertEqual(self.check("--update"), (0, ""))
        self.assertIn("names kvt_more", self.check()[1])
        self.name("`kvt_more` and `kvt_most` are new.")
        self.commit()
        self.assertEqual(self.check(), (0, ""))
        self.git("tag", "v0.2.0")
        (self.root / "changes/abi/change.md").unlink()
        self.assertEqual(self.check(), (0, ""))

    def test_a_library_without_debug_information_is_refused(self):
        self.build(HEADER, SOURCE, "-g0")
        status, text = self.check()
        self.assertEqual(status, 1)
        self.assertIn("-g", text)


unittest.main()
