"""`moongate provider new` makes a package that builds and holds the suite. It is built once more with all that it depends on, which takes
minutes: so it runs only where MOONGATE_NEW_PROVIDER=1 asks for it. What it writes is looked at by Tests/moongateTests/ProviderNewTests."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOONGATE = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build" / "debug")) / "moongate"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    if os.environ.get("MOONGATE_NEW_PROVIDER") != "1":
        pytest.skip("builds a package from nothing, for minutes: set MOONGATE_NEW_PROVIDER=1")
    return tmp_path_factory.mktemp("new")


@pytest.mark.parametrize(("name", "shape"), [("pigeon_post", "code"), ("secret_phrase", "full")])
def test_a_new_provider_builds_and_passes(scratch, name, shape):
    made = subprocess.run(
        [MOONGATE, "provider", "new", name, "--shape", shape, "--moongate", ROOT, "--into", scratch], capture_output=True, text=True, check=True)
    assert f"swift run gateway provider test {name}" in made.stdout
    folder, build = scratch / name, ["--scratch-path", scratch / "build"]
    subprocess.run(["swift", "test", *build], cwd=folder, check=True)
    tested = subprocess.run(["swift", "run", *build, "gateway", "provider", "test", name], cwd=folder, capture_output=True, text=True)
    assert tested.returncode == 0 and " 0 broken" in tested.stdout, tested.stdout
    listed = subprocess.run(["swift", "run", *build, "gateway", "provider", "list"], cwd=folder, capture_output=True, text=True, check=True)
    assert listed.stdout.splitlines()[-1].startswith(name) and "phone_otp" in listed.stdout


def test_nothing_is_overwritten(tmp_path):
    command = [MOONGATE, "provider", "new", "pigeon_post", "--moongate", ROOT, "--into", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2 and "nothing is overwritten" in again.stderr


@pytest.mark.parametrize("name", ["phone_otp", "email_code", "pin", "password", "google_oauth", "totp"])
def test_the_shipped_providers_hold_the_suite(name):
    tested = subprocess.run([MOONGATE, "provider", "test", name], capture_output=True, text=True)
    assert tested.returncode == 0 and " 0 broken" in tested.stdout, tested.stdout


def test_an_unknown_provider_is_bad_usage():
    tested = subprocess.run([MOONGATE, "provider", "test", "nobody"], capture_output=True, text=True)
    assert tested.returncode == 2 and "It has phone_otp, email_code" in tested.stderr
