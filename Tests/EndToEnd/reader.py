"""A reader who follows a page: runs its shell blocks in one shell, writes its files, and compares what is printed."""

import os
import re
import subprocess

from manual import fenced
from processes import BIN, ROOT


def blocks(page, heading=None):
    """The code blocks of a page, or of one of its sections, in order, as (language, text)."""
    text = (ROOT / page).read_text()
    if heading:
        found = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", text, re.M | re.S)
        assert found, f"{page} has no section {heading}"
        text = found[1]
    found = fenced(text)
    assert found, f"{page} shows no blocks under {heading}"
    return found


class Reader:
    """A reader in a clone of the repository, whose configuration is that of a gateway."""

    def __init__(self, gateway):
        self.gateway, self.folder = gateway, gateway.config.parent
        (self.folder / ".build").mkdir(exist_ok=True)
        (self.folder / ".build" / "debug").symlink_to(BIN)
        self.before = "set -eu\n"

    def types(self, commands):
        """Runs commands, and keeps variables, as one open shell does."""
        saved = self.folder / ".variables"
        told = subprocess.run(
            ["bash", "-c", f"{self.before}[ ! -f {saved} ] || . {saved}\n{commands}\ndeclare -p flow code token done "
             f"2>/dev/null >{saved} || true"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            env={name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        )
        assert told.returncode == 0, f"{commands}\n{told.stdout}{told.stderr}"
        self.before += "".join(line + "\n" for line in commands.splitlines() if line.startswith(("export ", "cd ")))
        return told.stdout

    def writes(self, text):
        """Writes a block of Lua into the file that its first line names."""
        where = re.match(r"-- (\S+\.lua)(?:, (\w+))?\n", text)
        assert where, f"no file is named by {text!r}"
        name, table = where.groups()
        file = self.folder / name
        if table:
            before = file.read_text()
            opening = f"{table} = {{\n"
            assert before.count(opening) == 1, f"{name} has no `{opening.strip()}`"
            file.write_text(before.replace(opening, opening + text[where.end() :]))
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def does(self, language, text):
        """Does what a block says; what was printed."""
        text = self.gateway.here(text)
        if language == "sh":
            return self.types(text)
        self.writes(text)
        return ""

    def sees(self, printed, output):
        """Each line of a text block is in the output, in order; `…` stands for what differs from run to run."""
        at = 0
        for line in filter(None, map(str.strip, self.gateway.here(printed).splitlines())):
            pattern = ".*?".join(re.escape(part) for part in line.split("…"))
            found = re.compile(pattern).search(output, at)
            assert found, f"the page says {line!r}; this was printed:\n{output}"
            at = found.start()

    def follows(self, page, heading=None, instead=None):
        """Follows a page. `instead`: what to do in place of single commands."""
        output, done = "", []
        for language, text in blocks(page, heading):
            if language == "text":
                if not text.startswith(("$ ", "# ", "auth.example.com")):
                    self.sees(text, output)
            elif instead and text.strip() in instead:
                instead[text.strip()]()
                done.append(text.strip())
            elif language == "sh" or language == "lua" and re.match(r"-- \S+/\S+\.lua", text):
                output = self.does(language, text)
        assert sorted(done) == sorted(instead or []), "the page has each of these commands"
