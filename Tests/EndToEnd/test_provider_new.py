"""`moongate provider new` creates a provider that passes its own tests and the conformance suite, in every language.

Building the Swift package from scratch takes minutes, so it runs only with MOONGATE_NEW_PROVIDER=1.
Tests/moongateTests/ProviderNewTests checks its files."""

import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest
from processes import ROOT

MOONGATE = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build" / "debug")) / "moongate"
# For each language: required programs, the file to test, the build command, and the test command.
LANGUAGES = {
    "python": ("python3", "pigeon_post.py", None, ["python3", "-m", "unittest"]),
    "node": ("node", "pigeon_post.mjs", None, ["node", "--test"]),
    "go": ("go", "pigeon_post", ["go", "build"], ["go", "test", "-count=1", "./..."]),
}


def moongate(*words, folder=None):
    return subprocess.run([MOONGATE, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("shape", ["code", "full"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_program_passes(tmp_path, tmp_path_factory, language, shape):
    tool, program, build, tests = LANGUAGES[language]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    cache = tmp_path_factory.getbasetemp() / "go-cache"
    environment = {
        **os.environ,
        "MOONGATE": str(MOONGATE),
        "GOCACHE": str(cache),
        "GOPATH": str(cache / "path"),
        "GOPROXY": "off",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    made = moongate("provider", "new", "pigeon_post", "--language", language, "--shape", shape, "--into", tmp_path)
    assert made.returncode == 0 and "Next:" in made.stdout, made.stdout + made.stderr
    folder = tmp_path / "pigeon_post"
    if build:
        subprocess.run(build, cwd=folder, env=environment, check=True)
    before = sorted(folder.rglob("*"))
    # The subject beside it is used by default.
    told = moongate("provider", "test", f"./{program}", folder=folder)
    assert told.returncode == 0 and " 0 broken" in told.stdout, told.stdout + told.stderr
    assert ("✓ concurrency" if shape == "full" else "✓ delivery") in told.stdout and "✓ secrets" in told.stdout, (
        told.stdout
    )
    assert [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts] == before, (
        "nothing is left of the trial"
    )
    tested = subprocess.run(tests, cwd=folder, env=environment, capture_output=True, text=True)
    assert tested.returncode == 0 and "skip" not in (tested.stdout + tested.stderr).replace("skipped 0", ""), (
        tested.stdout + tested.stderr
    )


def test_a_new_swift_package_builds_and_passes(tmp_path_factory):
    if os.environ.get("MOONGATE_NEW_PROVIDER") != "1":
        pytest.skip("builds packages from nothing, for minutes: set MOONGATE_NEW_PROVIDER=1")
    scratch = tmp_path_factory.mktemp("new")
    for name, shape in [("pigeon_post", "code"), ("secret_phrase", "full")]:
        made = moongate("provider", "new", name, "--shape", shape, "--moongate", ROOT, "--into", scratch)
        assert made.returncode == 0 and f"gateway provider test {name}" in made.stdout, made.stdout + made.stderr
        subprocess.run(["swift", "test", "--scratch-path", scratch / "tests"], cwd=scratch / name, check=True)
        # SwiftPM creates a folder for every possible module.
        built = {path.parent.name for path in (scratch / "tests" / "debug").glob("*.build/*.o")}
        assert "MoongateConformance.build" in built and not built & {"MoongateCore.build", "NIOCore.build"}, (
            "its tests build without the gateway"
        )
    source = scratch / "secret_phrase" / "Sources" / "SecretPhrase" / "SecretPhrase.swift"
    source.write_text(source.read_text() + "\n")
    begun = time.monotonic()
    subprocess.run(
        ["swift", "build", "--build-tests", "--scratch-path", scratch / "tests"],
        cwd=scratch / "secret_phrase",
        check=True,
    )
    assert time.monotonic() - begun < 120
    gateway = [
        "swift",
        "run",
        "--package-path",
        "gateway",
        "--scratch-path",
        scratch / "gateway",
        "gateway",
        "provider",
    ]
    tested = subprocess.run(
        [*gateway, "test", "secret_phrase"], cwd=scratch / "secret_phrase", capture_output=True, text=True
    )
    assert tested.returncode == 0 and " 0 broken" in tested.stdout, tested.stdout + tested.stderr
    listed = subprocess.run(
        [*gateway, "list"], cwd=scratch / "secret_phrase", capture_output=True, text=True, check=True
    )
    assert listed.stdout.splitlines()[-1].startswith("secret_phrase") and "phone_otp" in listed.stdout


@pytest.mark.parametrize("language", ["swift", *LANGUAGES])
def test_nothing_is_overwritten(tmp_path, language):
    command = ["provider", "new", "pigeon_post", "--language", language, "--moongate", ROOT, "--into", tmp_path]
    assert moongate(*command).returncode == 0
    again = moongate(*command)
    assert again.returncode == 2 and "is not overwritten" in again.stderr


# The number of rules that apply to each included provider, with its subject.json if there is one. The report names the
# others.
JUDGED = {"phone_otp": 10, "email_code": 10, "pin": 17, "password": 21, "google_oauth": 6, "totp": 18, "passkey": 18}


def test_every_shipped_provider_is_judged():
    listed = json.loads(moongate("provider", "list", "--json").stdout)
    assert {one["name"] for one in listed} == set(JUDGED)


@pytest.mark.parametrize("name", JUDGED)
def test_the_shipped_providers_hold_the_suite(name):
    subjects = [
        file.parent / "subject.json"
        for file in (ROOT / "Plugins").glob("*/policy.lua")
        if f'policy "{name}"' in file.read_text()
    ]
    words = [word for file in subjects if file.exists() for word in ("--subject", file)]
    tested = moongate("provider", "test", name, *words)
    assert tested.returncode == 0 and f"\n{JUDGED[name]} held, 0 broken" in tested.stdout, tested.stdout


def test_an_unknown_provider_is_bad_usage():
    tested = moongate("provider", "test", "nobody")
    assert tested.returncode == 2 and "It has phone_otp, email_code" in tested.stderr


def test_an_app_is_tried_by_a_subject_file(tmp_path):
    subject = tmp_path / "subject.json"
    subject.write_text("""{ "sets_up": true, "one_time": true, "lifetime": "60s",
      "right": { "code": { "totp_of": "key" } }, "wrong": { "code": { "totp_of": "key", "offset": -120 } } }""")
    tested = subprocess.run(
        [MOONGATE, "provider", "test", "totp", "--subject", subject, "--json"], capture_output=True, text=True
    )
    report = json.loads(tested.stdout)
    assert tested.returncode == 0 and report["findings"] == [] and "messages" not in report
    held = {rule["rule"] for rule in report["rules"] if rule["verdict"] == "held"}
    assert {"proof", "expiry", "concurrency", "whole_answer", "once", "hashing", "counted"} <= held


def test_one_rule_is_run_and_traced():
    traced = subprocess.run(
        [MOONGATE, "provider", "test", "pin", "--rule", "whole_answer", "--trace"], capture_output=True, text=True
    )
    assert traced.returncode == 0 and "1 held, 0 broken, 0 not applying" in traced.stdout
    assert "→ submit(purpose: .prove" in traced.stdout and "‹answer›" in traced.stdout and "739154" not in traced.stdout
    shown = subprocess.run(
        [MOONGATE, "provider", "test", "pin", "--rule", "whole_answer", "--trace", "--show-secrets"],
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0 and "739154" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--rule", "whole_anser"], "There is no rule `whole_anser`; did you mean `whole_answer`?"),
        (["--trace"], "--trace needs one rule"),
        (["--rule", "proof", "--show-secrets"], "--show-secrets needs a trace"),
    ],
)
def test_unrunnable_program_is_reported(arguments, told):
    tested = subprocess.run([MOONGATE, "provider", "test", "pin", *arguments], capture_output=True, text=True)
    assert tested.returncode not in (0, 1) and told in tested.stderr and tested.stdout == ""
