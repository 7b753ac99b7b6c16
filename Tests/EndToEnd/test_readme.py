"""The commands of README.md, word for word except for the ports."""

import re

import pytest

from processes import ROOT
from reader import Reader


def test_the_story_by_curl(gateway):
    Reader(gateway).follows("README.md", "By curl")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_commands_exist(page):
    makefile = (ROOT / "Makefile").read_text() + (ROOT / "Packaging" / "packages.mk").read_text()
    targets = re.findall(r"(?:`| {4})make ([a-z0-9-]+)", (ROOT / page).read_text())
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), (
            f"{page} names make {target}, which the Makefile does not have"
        )


def test_the_files_that_contributors_are_sent_to_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:Sources|Tests|config|Plugins)/[\w./*+-]*)`", text) + re.findall(r"\]\(([^)#]+)\)", text)
    assert len(paths) > 20
    assert not [path for path in paths if "NAME" not in path and not list(ROOT.glob(path))]
