"""openapi.json against the running gateway, by a stranger's program (schemathesis): whatever is sent, what comes back is as described."""

import os
import pathlib
import re
import subprocess
import sys

# `make soak` says more.
SECONDS = int(os.environ.get("MOONGATE_API_SECONDS", "25"))
EXAMPLES = int(os.environ.get("MOONGATE_API_EXAMPLES", "8"))
PHASES = os.environ.get("MOONGATE_API_PHASES", "fuzzing")
# What a schema cannot say: a number that is well formed need not be anybody's, and a right session is one that was not signed out just before.
LEFT_OUT = "positive_data_acceptance,use_after_free,ensure_resource_availability"


def test_it_answers_as_it_says(house, number):
    token = house.register(number)["session"]["token"]
    program = pathlib.Path(sys.executable).parent / "schemathesis"
    told = subprocess.run(
        [program, "run", f"{house.url}/api/auth/openapi.json", "--url", house.url, "--seed", "1", "--phases", PHASES, "--max-examples",
         str(EXAMPLES), "--max-time", str(SECONDS), "--exclude-checks", LEFT_OUT, "--generation-database", "none", "--no-color",
         "-H", f"Authorization: Bearer {token}"],
        cwd=house.config, capture_output=True, text=True, timeout=SECONDS + 120)
    assert told.returncode == 0, told.stdout[-6000:] + told.stderr[-2000:]
    tested = re.search(r"Tested: (\d+)", told.stdout)
    assert tested and int(tested.group(1)) > 0, "nothing was tried: " + told.stdout[-3000:]
    assert house.gateway.process.poll() is None
