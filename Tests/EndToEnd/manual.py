"""The code blocks of config/README.md as files. The first line of a block names its file."""

import re

from processes import ROOT

MANUAL = (ROOT / "config" / "README.md").read_text()


def block_under(heading, name):
    """The block under this heading, for a name that occurs more than once."""
    section = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^## |\Z)", MANUAL, re.M | re.S)
    assert section, f"config/README.md has no section {heading}"
    return block(name, section[1])


def block(name, text=MANUAL):
    """The text of the block for this file, unchanged."""
    found = re.findall(rf"^```\w+\n((?:<\?php )?(?:#|//|--) {re.escape(name)}\b.*?)^```$", text, re.M | re.S)
    assert len(found) == 1, f"{len(found)} blocks for {name} in config/README.md"
    return found[0]
