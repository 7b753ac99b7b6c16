"""`moongate-provider new` creates a provider that passes its own tests and the conformance suite, in every language.
`moongate provider` runs the same program.

Building the Swift package from scratch takes minutes, so it runs only with MOONGATE_NEW_PROVIDER=1.
Tests/MoongateProviderToolsTests/ProviderNewTests checks its files."""

import json
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from processes import ROOT

MOONGATE = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build" / "debug")) / "moongate"
TOOLS = MOONGATE.with_name("moongate-provider")
# For each language: required programs, the file to test, the build command, and the test command.
LANGUAGES = {
    "python": ("python3", "pigeon_post.py", None, ["python3", "-m", "unittest"]),
    "node": ("node", "pigeon_post.mjs", None, ["node", "--test"]),
    "go": ("go", "pigeon_post", ["go", "build"], ["go", "test", "-count=1", "./..."]),
}


def moongate(*words, folder=None, program=MOONGATE):
    return subprocess.run([program, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=120)


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
    made = moongate(
        "new", "pigeon_post", "--language", language, "--shape", shape, "--into", tmp_path, program=TOOLS
    )
    assert made.returncode == 0 and "Next:" in made.stdout, made.stdout + made.stderr
    folder = tmp_path / "pigeon_post"
    if build:
        subprocess.run(build, cwd=folder, env=environment, check=True)
    before = sorted(folder.rglob("*"))
    # The subject beside it is used by default.
    told = moongate("test", f"./{program}", folder=folder, program=TOOLS)
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
JUDGED = {
    "phone_otp": 10,
    "email_code": 10,
    "pin": 17,
    "password": 21,
    "google_oauth": 6,
    "ldap": 6,
    "totp": 18,
    "passkey": 18,
}


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


@pytest.mark.parametrize("arguments", [["test", "email_code"], ["test", "nobody"], ["test", "--help"], ["new"]])
def test_both_spellings_are_the_same(arguments):
    run, forwarded = (moongate(*arguments, program=TOOLS), moongate("provider", *arguments))
    assert (run.returncode, run.stdout, run.stderr) == (forwarded.returncode, forwarded.stdout, forwarded.stderr)
    assert run.stdout + run.stderr and "moongate-provider" in moongate("provider", "--help").stdout


def test_the_gateway_has_no_conformance_suite():
    def mentions(program):
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as code:
            return code.find(b"MoongateConformance") >= 0

    assert mentions(TOOLS) and not mentions(MOONGATE)


def test_only_the_program_beside_it_is_run(tmp_path):
    """Attack: a program of the same name in the current folder or in PATH is run by an operator."""
    other = tmp_path / "moongate-provider"
    other.write_text("#!/bin/sh\necho stolen\n")
    other.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    alone = tmp_path / "alone" / "moongate"
    alone.parent.mkdir()
    shutil.copy(MOONGATE, alone)
    for program, told in ((MOONGATE, "It has phone_otp"), (alone, f"{alone.parent}/moongate-provider cannot be run")):
        run = subprocess.run(
            [program, "provider", "test", "nobody"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert run.returncode == 2 and told in run.stderr and "stolen" not in run.stdout, run.stderr


def test_a_signal_ends_it(tmp_path):
    """The process that `moongate` becomes takes signals while the tested program is silent."""
    silent = tmp_path / "silent.py"
    silent.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\ncat >/dev/null\n")
    silent.chmod(0o755)
    running = subprocess.Popen([MOONGATE, "provider", "test", silent], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < end:
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == -signal.SIGTERM
    finally:
        running.kill()
