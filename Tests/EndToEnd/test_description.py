"""openapi.json against the running gateway with schemathesis: all responses must match the description."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

# `make soak` sets a longer time.
SECONDS = int(os.environ.get("MOONGATE_API_SECONDS", "25"))
EXAMPLES = int(os.environ.get("MOONGATE_API_EXAMPLES", "8"))
PHASES = os.environ.get("MOONGATE_API_PHASES", "fuzzing")
CONFIGURATION = pathlib.Path(__file__).with_name("schemathesis.toml")
# After these operations the client is signed out, and all further responses would be 401.
ENDINGS = ["signOut", "logout", "endSession"]


@pytest.mark.parametrize(
    "choice", ["--exclude-operation-id", "--include-operation-id"], ids=["signed in", "signing out"]
)
def test_responses_match_the_description(gateway, number, choice):
    token = gateway.register(number)["session"]["token"]
    program = pathlib.Path(sys.executable).parent / "schemathesis"
    told = subprocess.run(
        [
            program,
            "--config-file",
            CONFIGURATION,
            "run",
            f"{gateway.url}/api/auth/openapi.json",
            "--url",
            gateway.url,
            "--seed",
            "1",
            "--phases",
            PHASES,
            "--max-examples",
            str(EXAMPLES),
            "--max-time",
            str(SECONDS),
            "--generation-database",
            "none",
            "--no-color",
            "-H",
            f"Authorization: Bearer {token}",
            *(word for ending in ENDINGS for word in (choice, ending)),
        ],
        cwd=gateway.config,
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
    )
    assert told.returncode == 0, told.stdout[:6000] + told.stderr[-2000:]
    tested = re.search(r"Tested: (\d+)", told.stdout)
    assert tested and int(tested.group(1)) > 0, "nothing was tried: " + told.stdout[-3000:]
    assert gateway.server.process.poll() is None


def test_the_admin_listener_matches_its_description(new_gateway):
    """With a token, as on an address that other machines can reach. (Wrong tokens are limited, so schemathesis must
    not try any.) An upgrade replaces the process: see test_upgrade.py."""
    gateway = new_gateway
    token = "0123456789abcdef-the-operators-token"
    gateway.edit(
        "gateway.lua",
        lambda text: re.sub(
            r"\n  admin = .*", f'\n  admin = {{ address = "127.0.0.1:{gateway.ports[1]}", token = env "ADMIN" }},', text
        ),
    )
    gateway.start(ADMIN=token)
    told = subprocess.run(
        [
            pathlib.Path(sys.executable).parent / "schemathesis",
            "--config-file",
            CONFIGURATION,
            "run",
            f"{gateway.admin}/openapi.json",
            "--url",
            gateway.admin,
            "--seed",
            "1",
            "--phases",
            PHASES,
            "--max-examples",
            str(EXAMPLES),
            "--max-time",
            str(SECONDS),
            "--generation-database",
            "none",
            "--no-color",
            "--exclude-checks",
            "ignored_auth",
            "--exclude-path",
            "/upgrade",
            "-H",
            f"Authorization: Bearer {token}",
        ],
        cwd=gateway.config,
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
    )
    assert told.returncode == 0, told.stdout[:6000] + told.stderr[-2000:]
    tested = re.search(r"Tested: (\d+)", told.stdout)
    assert tested and int(tested.group(1)) > 0, "nothing was tried: " + told.stdout[-3000:]
    assert gateway.server.process.poll() is None
