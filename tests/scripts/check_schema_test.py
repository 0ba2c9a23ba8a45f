#!/usr/bin/env python3
"""scripts/check_schema.py on throw-away repositories."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_schema.py"
SCHEMA = """namespace test;
table Thing {{
  size:{size} (id: 0);
{more}}}
root_type Thing;
"""


class CheckSchemaTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvt-schema-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "origin")
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("uint")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false",
                        "-c", "tag.gpgsign=false", *arguments], cwd=self.root, check=True, capture_output=True)

    def write(self, size, more=""):
        path = self.root / "lib/schema/thing.fbs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCHEMA.format(size=size, more=more), encoding="utf-8")

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "state")

    def check(self, root=None):
        outcome = subprocess.run([sys.executable, SCRIPT, root or self.root], capture_output=True, text=True,
                                 check=False)
        return outcome.returncode, outcome.stdout + outcome.stderr

    def test_without_a_tag_there_is_no_release_yet(self):
        self.write("string")
        self.assertEqual(self.check(), (0, "note: schemas were not compared: no release yet\n"))

    def test_a_changed_type_fails(self):
        self.git("tag", "v0.1.0")
        self.write("string")
        status, text = self.check()
        self.assertEqual(status, 1)
        self.assertIn("thing.fbs is no evolution of that of v0.1.0", text)
        self.assertIn("size", text)

    def test_an_added_field_passes(self):
        self.git("tag", "v0.1.0")
        self.write("uint", "  colour:ubyte (id: 1);\n")
        self.assertEqual(self.check(), (0, "the schemas conform to those of v0.1.0\n"))

    def test_a_removed_file_fails(self):
        self.git("tag", "v0.1.0")
        (self.root / "lib/schema/thing.fbs").unlink()
        status, text = self.check()
        self.assertEqual(status, 1)
        self.assertIn("thing.fbs was in v0.1.0 and is gone", text)

    def test_only_the_last_tag_counts(self):
        self.git("tag", "v0.1.0")
        self.write("string")
        self.commit()
        self.git("tag", "v0.2.0")
        self.assertEqual(self.check()[0], 0)

    def clone(self, *arguments):
        copy = self.root.parent / "clone"
        self.git("clone", "-q", "--depth", "1", *arguments, f"file://{self.root}", str(copy))
        return copy

    def test_a_shallow_clone_without_tags_says_so(self):
        self.git("tag", "v0.1.0")
        self.write("string")
        self.commit()
        status, text = self.check(self.clone())
        self.assertEqual(status, 0)
        self.assertIn("a shallow clone without tags", text)

    def test_a_shallow_clone_uses_the_tags_it_has(self):
        self.git("tag", "v0.9.0")
        self.commit()
        self.git("tag", "v0.10.0")
        self.write("string")
        self.commit()
        copy = self.clone()
        self.git("-C", str(copy), "fetch", "-q", "--depth", "1", "--tags")
        status, text = self.check(copy)
        self.assertEqual(status, 1)
        self.assertIn("v0.10.0", text)


unittest.main()
