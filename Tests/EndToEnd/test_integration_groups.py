"""How services parse Remote-Groups: the programs of Documentation/integrations/groups.md with the gateway's header."""

import re
import shutil
import subprocess
import sys

import pytest

from manual import block
from processes import ROOT

PAGE = (ROOT / "Documentation" / "integrations" / "groups.md").read_text()
PROGRAMS = {
    "groups.py": [sys.executable, "groups.py"],
    "groups.mjs": ["node", "groups.mjs"],
    "groups.go": ["go", "run", "groups.go"],
    "Groups.java": ["java", "Groups.java"],
    "groups.php": ["php", "groups.php"],
}
NAMES = ["100%", "%2C", "a,b", "night shift", "ops", "x\"y'+z"]


def header(names):
    """The value as encoded by Entitlements.headerValue."""
    return ",".join(name.replace("%", "%25").replace(",", "%2C") for name in sorted(names))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_page(tmp_path, name):
    command = PROGRAMS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / name).write_text(block(name, PAGE))
    for names in (NAMES, ["ops"], []):
        told = subprocess.run([*command, header(names)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert told.returncode == 0, told.stderr
        assert [line for line in told.stdout.split("\n") if line] == sorted(names)


def test_every_program_is_run():
    shown = re.findall(r"^```\w+\n(?:<\?php )?(?:#|//) (\S+)$", PAGE, re.M)
    assert sorted(shown) == sorted(PROGRAMS)
