"""Runs the commands of Documentation/plugins/start.md: creates a provider, tests it, configures it, and signs a person
in through it in a browser."""

import os
import re
import shutil
import subprocess

import pytest
from local_gateway import BIN, ROOT, LocalGateway, wait_for
from reader import Reader
from reader import blocks as reader_blocks
from screens import Screen

# What each language needs, and the file that its author changes.
LANGUAGES = {
    "Python": ("python3", "pigeon_post.py"),
    "Node": ("node", "pigeon_post.mjs"),
    "Go": ("go", "main.go"),
}


def blocks(heading):
    return reader_blocks("Documentation/plugins/start.md", heading)


@pytest.fixture
def reader(tmp_path):
    gateway = LocalGateway(tmp_path)
    yield Reader(gateway)
    gateway.stop()


class Follow:
    """Follows the steps of a section, one block at a time."""

    def __init__(self, reader, heading):
        self.reader, self.left, self.said = reader, blocks(heading), ""

    def to(self, command):
        """Follows all blocks before the block of this command."""
        while self.left[0][1].strip() != command:
            self.next()

    def next(self):
        said = self.reader.does(*self.left.pop(0))
        self.said += said
        return said


@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_minutes(reader, driver, language):
    tool, source = LANGUAGES[language]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    guide = Follow(reader, language)
    guide.to("make run")
    assert " 0 broken" in guide.said and re.search(r"^pigeon_post +\d+ +\d+ ", guide.said, re.M), guide.said
    # Does what `make run` does, on the ports of this gateway.
    guide.left.pop(0)
    gateway = reader.gateway.start()
    screen = Screen(driver, gateway).forget()
    screen.opens("/auth/login?flow=pigeon").at("/auth/step").reads("Pigeon post").is_sound("the first page")
    screen.fills('"field.email"', "asha@example.com").presses("Continue").reads("asha@example.com")
    code = re.search(r"\b\d{8}\b", guide.next()).group()
    screen.enters(code).reads("The gateway proved that you are asha@example.com.")
    assert not guide.left
    # A running gateway replaces a changed program, and keeps the old one if the new one is broken.
    program = gateway.config / "pigeon_post" / source
    build = [text for _, text in blocks(language) if "go build" in text]
    serving = gateway.policy()["active"]
    program.write_text(program.read_text().replace("We send you a code.", "A pigeon brings a code."))
    if build:
        reader.types(build[0].splitlines()[0])
    gateway.wait_generation(serving)
    screen.forget().opens("/auth/login?flow=pigeon").reads("A pigeon brings a code.")
    broken = program.with_name("pigeon_post") if build else program
    draft = broken.with_name("draft")
    draft.write_text("#!/bin/sh\nexit 1\n" if language != "Node" else "import './no-file-of-this-name.mjs';\n")
    draft.chmod(0o755)
    draft.rename(broken)
    wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal")
    screen.forget().opens("/auth/login?flow=pigeon").reads("A pigeon brings a code.")


def test_a_provider_that_verifies_by_itself(reader, driver, number):
    guide = Follow(reader, "A provider that verifies by itself")
    # In the shell of the quick start.
    reader.types(blocks("Python")[0][1].splitlines()[0] + "\n")
    while guide.left:
        guide.next()
    assert " 0 broken" in guide.said, guide.said
    # As its README says: an entry, a policy, and a flow that uses it.
    gateway = reader.gateway
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "  providers = {\n",
            '  providers = {\n    secret_phrase = exec { "./secret_phrase/secret_phrase.py" },\n',
            1,
        ),
    )
    (gateway.config / "policies" / "secret_phrase.lua").write_text('return policy "secret_phrase" {}\n')
    (gateway.config / "flows" / "vault.lua").write_text(
        'return flow "vault" { purpose = "step_up", account = "existing", steps = { { "secret_phrase" } } }\n'
    )
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "  -- Everything else",
            '  { path = "/vault/**", to = "http://127.0.0.1:%s", flow = "vault", require = { passed = "secret_phrase" } },\n  -- Everything else'
            % gateway.ports[2],
        ),
    )
    gateway.start()
    screen = Screen(driver, gateway).forget().belongs_to(number)
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
    """Keeps the builds in one folder, so that the second run is quick."""
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
        # Long texts may be split in the code, and the name of a site stands apart from what it is the end of.
        dead = [key for key in keys if key not in said and not any(part in said for part in (key[:40], key[-40:]))]
        begun = "Continue with "
        dead = [key for key in dead if not (key.startswith(begun) and f'"{key.removeprefix(begun)}"' in said)]
        assert dead == [], folder.name


# The headings that the README of every shipped provider has, in this order. Others may stand between them.
SHAPE = [
    "Set it up",
    "What it asks for",
    "Settings",
    "Limits",
    "Messages",
    "Errors",
    "Security notes",
    "Files",
]


def test_every_shipped_provider_has_its_page():
    index = (ROOT / "Plugins" / "README.md").read_text()
    for folder in sorted((ROOT / "Plugins").iterdir()):
        if folder.is_dir():
            assert f"]({folder.name}/README.md)" in index, f"Plugins/README.md does not link to {folder.name}"
            manual = (folder / "README.md").read_text()
            policy = re.search(r'policy "(\w+)"', (folder / "policy.lua").read_text()).group(1)
            assert manual.startswith(f"# {policy}\n") or manual.startswith(f"# {policy}: "), folder.name
            headings = re.findall(r"^## (.+)$", manual, re.M)
            assert [heading for heading in headings if heading in SHAPE] == SHAPE, folder.name


def test_every_page_lists_the_settings_of_its_provider():
    for folder in sorted(folder for folder in (ROOT / "Plugins").iterdir() if folder.is_dir()):
        source = "".join(file.read_text() for file in [*folder.glob("*.swift"), *folder.glob("*_code.py")])
        declared = set(re.findall(r'SettingField\(\s*(?:name: )?"(\w+)"|\bSetting\("(\w+)"', source))
        declared = {one or other for one, other in declared}
        table = (folder / "README.md").read_text().split("\n## Settings\n")[1].split("\n## ")[0]
        listed = {name for cell in re.findall(r"^\| (`[^|]+) \|", table, re.M) for name in re.findall(r"`(\w+)`", cell)}
        # The gateway's own settings of any site.
        assert listed - {"identify_by", "recheck", "recheck_grace", "label", "icon"} == declared, folder.name


def test_every_page_names_the_refusals_of_its_provider():
    """Those that the provider declares, with the names that the API has."""
    names = {"invalidPIN": "invalid_pin", "noPIN": "no_pin", "alreadySet": "already_set", "invalidCode": "invalid_code"}
    names |= {"invalidPassword": "invalid_password", "oauthFailed": "oauth_failed", "oauthCancelled": "oauth_cancelled"}
    seen = 0
    for folder in sorted(folder for folder in (ROOT / "Plugins").iterdir() if folder.is_dir()):
        source = "".join(file.read_text() for file in folder.glob("*.swift"))
        manual = (folder / "README.md").read_text()
        for reason in re.findall(r"\bOutcome\(\.(\w+),", source):
            seen += 1
            assert f"`{names[reason]}`" in manual.split("\n## Errors\n")[1], f"{folder.name}: {reason}"
    assert seen >= 8
