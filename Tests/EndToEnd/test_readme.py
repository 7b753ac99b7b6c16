"""The commands of README.md, word for word except for the ports."""

import re
import subprocess

import pytest

from house import ROOT


def blocks(heading):
    """The shell blocks under a heading, each with the text block of its expected output, if any."""
    text = (ROOT / "README.md").read_text()
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert section, f"README.md has no section {heading}"
    found = re.findall(r"^```sh\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", section.group(1), re.M | re.S)
    assert found, f"README.md shows no commands under {heading}"
    return found


def test_the_story_by_curl(house):
    script, expected = "set -eu\n", []
    for commands, printed in blocks("By curl"):
        script += house.here(commands) + "echo; echo '-- end of block --'\n"
        expected.append(printed)
    # One shell for all blocks, as for a reader who pastes them.
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stdout + told.stderr
    outputs = told.stdout.split("-- end of block --\n")
    for output, printed in zip(outputs, expected):
        # `…` in README stands for variable text.
        for line in filter(None, map(str.strip, printed.splitlines())):
            pattern = ".*".join(re.escape(part) for part in house.here(line).split("…"))
            assert re.search(pattern, output), f"README says {line!r}; it printed:\n{output}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_commands_exist(page):
    makefile = (ROOT / "Makefile").read_text() + (ROOT / "Packaging" / "packages.mk").read_text()
    targets = re.findall(r"(?:`| {4})make ([a-z-]+)", (ROOT / page).read_text())
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), (
            f"{page} names make {target}, which the Makefile does not have"
        )


def test_the_files_that_contributors_are_sent_to_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:Sources|Tests|config|Plugins)/[\w./*+-]*)`", text) + re.findall(r"\]\(([^)]+)\)", text)
    assert len(paths) > 20
    assert not [path for path in paths if "NAME" not in path and not list(ROOT.glob(path))]
