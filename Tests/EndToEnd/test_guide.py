"""The commands of Plugins/README.md, word for word: a provider is created, tested and added, and a user signs in
with it in a browser."""

import os
import re
import shutil
import subprocess

import pytest
from house import BIN, ROOT, House, wait_for
from screens import Screen

GUIDE = (ROOT / "Plugins" / "README.md").read_text()


def section(heading):
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S)
    assert found, f"Plugins/README.md has no section {heading}"
    return found.group(1)


def blocks(heading):
    """The code blocks of the section in order: language and text."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", section(heading), re.M | re.S)
    assert found, f"Plugins/README.md shows no commands under {heading}"
    return found


class Reader:
    """A reader in a clone of the repository with one shell."""

    def __init__(self, house):
        self.house, self.folder = house, house.config.parent
        (self.folder / ".build").mkdir()
        (self.folder / ".build" / "debug").symlink_to(BIN)
        self.before = "set -eu\n"

    def types(self, commands):
        """Runs commands. Exported variables are kept, as in an open shell."""
        told = subprocess.run(
            ["bash", "-c", self.before + commands],
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
        """Writes a block of Lua. Its first line names the file."""
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
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)


@pytest.fixture
def reader(tmp_path):
    house = House(tmp_path)
    yield Reader(house)
    house.stop()


class Follow:
    """Follows a section up to a given command."""

    def __init__(self, reader, heading):
        self.reader, self.left, self.said = reader, blocks(heading), ""

    def to(self, command):
        """All blocks before that of this command."""
        while self.left[0][1].strip() != command:
            self.next()

    def next(self):
        language, text = self.left.pop(0)
        text = self.reader.house.here(text)
        if language == "sh":
            said = self.reader.types(text)
            self.said += said
            return said
        self.reader.writes(text)


def test_ten_minutes(reader, driver):
    guide = Follow(reader, "Ten minutes to a running provider")
    guide.to("make run")
    assert " 0 broken" in guide.said and re.search(r"^pigeon_post +\d+ +\d+ ", guide.said, re.M), guide.said
    # Does what `make run` does, on the ports of this test.
    guide.left.pop(0)
    house = reader.house.start()
    screen = Screen(driver, house).forget()
    screen.opens("/auth/login?flow=pigeon").at("/auth/step").reads("Pigeon post").is_sound("the first page")
    screen.fills('"field.email"', "asha@example.com").presses("Continue").reads("asha@example.com")
    code = re.search(r"\b\d{8}\b", guide.next()).group()
    screen.enters(code).reads("The gateway proved that you are asha@example.com.")
    assert not guide.left
    # A saved change is loaded while it runs; a broken one is not.
    program = house.config / "pigeon_post" / "pigeon_post.py"
    serving = house.policy()["active"]
    program.write_text(program.read_text().replace("We send you a code.", "A pigeon brings a code."))
    house.wait_generation(serving)
    screen.forget().opens("/auth/login?flow=pigeon").reads("A pigeon brings a code.")
    program.write_text("import nothing_of_this_name\n")
    wait_for(lambda: house.policy()["candidate_refused"], "the refusal")
    screen.forget().opens("/auth/login?flow=pigeon").reads("A pigeon brings a code.")


def test_a_provider_that_verifies_by_itself(reader, driver, number):
    guide = Follow(reader, "A provider that verifies by itself")
    # In the shell of the first ten minutes.
    reader.types(blocks("Ten minutes to a running provider")[0][1].splitlines()[0] + "\n")
    while guide.left:
        guide.next()
    assert " 0 broken" in guide.said, guide.said
    # As in its README: an entry, a policy, and a step that uses it.
    house = reader.house
    house.edit(
        "gateway.lua",
        lambda text: text.replace(
            "  providers = {\n",
            '  providers = {\n    secret_phrase = exec { "./secret_phrase/secret_phrase.py" },\n',
            1,
        ),
    )
    (house.config / "policies" / "secret_phrase.lua").write_text('return policy "secret_phrase" {}\n')
    (house.config / "flows" / "vault.lua").write_text(
        'return flow "vault" { purpose = "step_up", account = "existing", steps = { { "secret_phrase" } } }\n'
    )
    house.edit(
        "routes.lua",
        lambda text: text.replace(
            "  -- Everything else",
            '  { path = "/vault/**", to = "http://127.0.0.1:%s", flow = "vault", require = { passed = "secret_phrase" } },\n  -- Everything else'
            % house.ports[2],
        ),
    )
    house.start()
    screen = Screen(driver, house).forget().belongs_to(number)
    # Two rounds: the second phrase must equal the first.
    screen.opens("/auth/account").presses("Choose a secret phrase").at("/auth/step").presses(
        "Choose a secret phrase"
    ).reads("Phrase")
    screen.fills('"field.phrase"', "short").presses("Continue").reads("A phrase has at least 12 characters.")
    screen.fills('"field.phrase"', "ninety-nine quiet pigeons").presses("Continue").reads("Type the phrase once more.")
    screen.fills('"field.phrase"', "ninety-nine quiet penguins").presses("Continue").reads(
        "The two phrases differ.", "Type your secret phrase."
    )
    screen.fills('"field.phrase"', "ninety-nine quiet pigeons").presses("Continue").reads("Type the phrase once more.")
    screen.presses("हिन्दी").reads("वाक्य एक बार फिर लिखें।").presses("English").reads("Type the phrase once more.")
    screen.fills('"field.phrase"', "ninety-nine quiet pigeons").presses("Continue").at("/auth/account")
    # A route that requires it.
    screen.opens("/vault/gold").reads("Type your secret phrase.")
    screen.fills('"field.phrase"', "ninety-nine quiet penguins").presses("Continue").reads(
        "This is not your phrase.", "4 tries left"
    )
    screen.fills('"field.phrase"', "ninety-nine quiet pigeons").presses("Continue").waits(
        lambda: screen.path == "/vault/gold", "the route behind it"
    )


@pytest.mark.skipif(
    "MOONGATE_GUIDE" not in os.environ, reason="builds Moongate once more, which takes minutes: make check-guide"
)
def test_in_swift_outside_this_repository():
    """Uses a fixed folder, so that a second run is fast."""
    folder = ROOT / ".build-e2e" / "guide"
    folder.mkdir(parents=True, exist_ok=True)
    builds = {
        folder / "kept": folder / "lighthouse" / ".build",
        folder / "kept-gateway": folder / "lighthouse" / "gateway" / ".build",
    }
    for kept, build in builds.items():
        if build.exists():
            build.rename(kept)
    shutil.rmtree(folder / "lighthouse", ignore_errors=True)
    script = f'set -eu\nexport PATH="{BIN}:$PATH"\n'
    back = "".join(f"[ ! -d {kept} ] || mv {kept} {build}\n" for kept, build in builds.items())
    for language, text in blocks("In Swift, outside this repository"):
        if language == "sh":
            script += text.replace("cd lighthouse\n", "cd lighthouse\n" + back)
    told = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert told.returncode == 0 and " 0 broken" in told.stdout, told.stdout[-4000:] + told.stderr[-4000:]


def test_every_link_leads_somewhere():
    for page in [ROOT / "Plugins" / "README.md", *sorted((ROOT / "Plugins").glob("*/README.md"))]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), (
                f"{page.relative_to(ROOT)} leads to {target}, which is not there"
            )
        headings = {
            re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
            for line in page.read_text().splitlines()
            if line.startswith("#")
        }
        for anchor in re.findall(r"\]\(#([^)]+)\)", page.read_text()):
            assert anchor in headings, f"{page.relative_to(ROOT)} leads to #{anchor}, which is not there"


def test_english_is_in_the_code():
    """A provider has no en.words: the English texts are the keys of its translations, and it must use each of them."""
    for folder in sorted(folder for folder in (ROOT / "Plugins").iterdir() if folder.is_dir()):
        words = {file.stem: file.read_text() for file in (folder / "words").glob("*.words")}
        assert "en" not in words and "hi" in words, folder.name
        said = "".join(
            file.read_text() for pattern in ("*.swift", "*.py", "policy.lua") for file in folder.glob(pattern)
        )
        keys = [
            line.split(" = ", 1)[0] for line in words["hi"].splitlines() if " = " in line and not line.startswith("#")
        ]
        # Long texts may be split in the code.
        dead = [key for key in keys if key not in said and not any(part in said for part in (key[:40], key[-40:]))]
        assert dead == [], folder.name


def test_every_shipped_provider_has_its_page():
    for folder in sorted((ROOT / "Plugins").iterdir()):
        if folder.is_dir():
            assert f"]({folder.name}/README.md)" in GUIDE, f"Plugins/README.md does not lead to {folder.name}"
            manual = (folder / "README.md").read_text()
            policy = re.search(r'policy "(\w+)"', (folder / "policy.lua").read_text()).group(1)
            for part in (f"# {policy}", "## Files"):
                assert part in manual, f"Plugins/{folder.name}/README.md does not say: {part}"
