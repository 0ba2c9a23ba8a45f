"""What the last release held, for checks that compare the tree with it. A release is a tag of this repository."""
import subprocess


def git(root, *arguments):
    """The outcome of a git command in `root`; output is text."""
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def last_release(root):
    """(tag, "") or (None, why there is none to compare with)."""
    described = git(root, "describe", "--tags", "--abbrev=0")
    if described.returncode == 0:
        return described.stdout.strip(), ""
    tags = git(root, "tag", "--list", "--sort=-version:refname").stdout.split()
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() != "true":
        return None, "no release in the history of HEAD" if tags else "no release yet"
    # The history between the tag and HEAD was not fetched.
    if tags:
        return tags[0], ""
    return None, "a shallow clone without tags; 'git fetch --depth 1 --tags' fetches them"


def file_at(root, revision, path):
    """The text of a file at a revision, or None when it was not there."""
    shown = git(root, "show", f"{revision}:{path}")
    return shown.stdout if shown.returncode == 0 else None


def files_at(root, revision, folder):
    """The names of the files right below a folder at a revision."""
    listed = git(root, "ls-tree", "--name-only", revision, f"{folder}/")
    return [line.rsplit("/", 1)[-1] for line in listed.stdout.splitlines()]
