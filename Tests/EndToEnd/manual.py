"""What config/README.md shows, as files: a block's first line names its file."""

import re

from house import ROOT

MANUAL = (ROOT / "config" / "README.md").read_text()


def block(name):
    """The text of the block for this file, as it stands in the manual."""
    found = re.findall(rf"^```\w+\n((?:<\?php )?(?:#|//|--) {re.escape(name)}\b.*?)^```$", MANUAL, re.M | re.S)
    assert len(found) == 1, f"{len(found)} blocks for {name} in config/README.md"
    return found[0]
