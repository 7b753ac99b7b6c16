"""usage: documents.py FOLDER   copies the pages for operators and authors of providers into FOLDER, and writes links to
what a package does not have, such as sources, as plain text."""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The guides lead to the pages of the providers, and those to their policies and to the protocol of programs.
PATTERNS = ("SECURITY.md", "Plugins/README.md", "Plugins/exec.schema.json", "Plugins/*/README.md", "Plugins/*/policy.lua")


def main():
    folder = Path(sys.argv[1])
    shutil.copytree(ROOT / "Documentation", folder / "Documentation", dirs_exist_ok=True)
    for file in (file for pattern in PATTERNS for file in ROOT.glob(pattern)):
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    for page in folder.rglob("*.md"):
        page.write_text(within_package(page, page.read_text()))


def within_package(page, text):
    """The text of a page without the addresses of links that lead nowhere."""
    # Code is no link. Every character keeps its place.
    masked = re.sub(
        r"^ *```.*?^ *```$|(`+)(?!`).+?(?<!`)\1(?!`)", lambda code: "x" * len(code[0]), text, flags=re.M | re.S
    )
    written, end = [], 0
    for link in re.finditer(r"\[([^\[\]]*)\]\(([^)#\s]+)(?:#[^)\s]*)?\)", masked):
        address = link[2]
        if "://" in address or address.startswith("mailto:") or (page.parent / address).exists():
            continue
        written += [text[end : link.start()], text[link.start(1) : link.end(1)]]
        end = link.end()
    return "".join([*written, text[end:]])


if __name__ == "__main__":
    main()
