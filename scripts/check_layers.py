#!/usr/bin/env python3
"""Enforces the direction of includes: abi -> node -> plan -> {cache, transfer, route, verify} -> {codec, select}
-> {model, key, net} -> measure -> base. Folders in braces do not know each other; schema is open to all.
include/ knows only itself; kernels/ know only kernels/; tools/ and samples/ use public headers and their own files.
Every run first proves on synthetic trees that violations are found."""
import pathlib
import re
import sys
import tempfile

LAYERS = [["abi"], ["node"], ["plan"], ["cache", "transfer", "route", "verify"], ["codec", "select"],
          ["model", "key", "net"], ["measure"], ["base"]]
FOLDERS = {folder for layer in LAYERS for folder in layer} | {"schema"}
KERNELS = {"common", "cpu", "cuda"}
SOURCES = {".h", ".hpp", ".cuh", ".inc", ".c", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
PUBLIC_SYSTEM = {"stddef.h", "stdint.h"}


def allowed_folders():
    allowed = {"schema": {"schema"}}
    below = {"schema"}
    for layer in reversed(LAYERS):
        for folder in layer:
            allowed[folder] = below | {folder}
        below = below | set(layer)
    return allowed


ALLOWED = allowed_folders()


def includes(path):
    """Yields (line number, name, whether it is quoted)."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) or match.group(2), match.group(1) is not None


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file())


def resolve(root, path, name, quoted):
    """The area an include lands in: ('lib', folder), ('kernels', folder), ('include', ''), ('own', '') or None."""
    if quoted and (path.parent / name).is_file() and "/" not in name:
        return ("own", "")
    first = name.split("/")[0]
    if first == "kvartet":
        return ("include", "")
    if (root / "lib" / name).is_file():
        return ("lib", first)
    if (root / "kernels" / name).is_file():
        return ("kernels", first)
    if quoted and "/" in name and first in FOLDERS:
        return ("lib", first)
    if quoted and "/" in name and first in KERNELS:
        return ("kernels", first)
    return None


def check(root):
    """All violations in a tree, as 'path:line: reason'."""
    found = []

    def report(path, number, reason):
        found.append(f"{path.relative_to(root)}:{number}: {reason}")

    for area in ("include", "lib", "kernels", "tools", "samples"):
        for path in sources(root / area):
            parts = path.relative_to(root / area).parts
            for number, name, quoted in includes(path):
                if ".." in name.split("/"):
                    report(path, number, f"'{name}' climbs out of its folder: include by folder name")
                    continue
                target = resolve(root, path, name, quoted)
                if area == "include":
                    if target is None and name in PUBLIC_SYSTEM and not quoted:
                        continue
                    if target is None or target[0] not in ("own", "include"):
                        report(path, number, f"public headers include <stddef.h>, <stdint.h> and each other, not '{name}'")
                elif target is None or target[0] == "own":
                    continue
                elif area == "lib":
                    folder = parts[0]
                    if len(parts) > 1 and folder not in ALLOWED:
                        report(path, number, f"lib/{folder} has no place in the order of layers")
                    elif target[0] == "lib" and len(parts) > 1 and target[1] not in ALLOWED[folder]:
                        report(path, number, f"lib/{folder} must not know lib/{target[1]} ('{name}')")
                elif area == "kernels" and target[0] != "kernels":
                    report(path, number, f"kernels know nothing of lib or include ('{name}')")
                elif area in ("tools", "samples") and target[0] != "include":
                    if not (root / area / name).is_file():
                        report(path, number, f"{area}/ uses public headers only ('{name}')")
    return found


SELF_TESTS = [
    # (files, how many violations)
    ({"lib/cache/a.h": '#include "codec/b.h"\n#include "base/c.h"\n#include "kvartet/base.h"\n'}, 0),
    ({"lib/cache/a.h": '#include "transfer/b.h"\n'}, 1),
    ({"lib/base/a.cc": '#include <vector>\n  #  include "measure/b.h"\n'}, 1),
    ({"lib/model/a.h": '#include "key/b.h"\n#include "schema/generated/frame_generated.h"\n'}, 1),
    ({"lib/node/a.cc": '#include <net/if.h>\n#include "cache/../abi/x.h"\n#include "plan/b.h"\n'}, 1),
    ({"lib/measure/a.cc": "#include <cache/b.h>\n", "lib/cache/b.h": ""}, 1),
    ({"lib/extra/a.cc": '#include "base/b.h"\n'}, 1),
    ({"kernels/cpu/a.cc": '#include "common/b.h"\n#include "base/c.h"\n#include "kvartet/base.h"\n'}, 2),
    ({"include/kvartet/a.h": '#include <stdint.h>\n#include "kvartet/b.h"\n#include <stdio.h>\n'}, 1),
    ({"include/kvartet/a.h": '#include "base/status.h"\n'}, 1),
    ({"tools/a.cc": '#include "base/b.h"\n#include "own.h"\n#include <kvartet/kvartet.h>\n', "tools/own.h": ""}, 1),
    ({"tools/demo/a.cc": '#include "common/args.h"\n', "tools/common/args.h": ""}, 0),
    ({"samples/a.c": '#include "cpu/rope.h"\n'}, 1),
]


def self_test():
    for files, wanted in SELF_TESTS:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            found = check(root)
            if len(found) != wanted:
                sys.exit(f"check_layers: self-test: {files} gave {found}, wanted {wanted} violations")


def main():
    self_test()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    if not sources(root / "lib"):
        sys.exit(f"check_layers: no sources below {root}/lib")
    found = check(root)
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
