"""Changes of the configuration while users are active."""

import os
import pathlib
import re
import shutil
import threading

import pytest
import requests

from processes import ROOT

# A reload takes up to half a second of processor time in a debug build, so `make soak` tests more of them.
BAD = int(os.environ.get("MOONGATE_RELOADS", "300"))
GOOD = BAD // 10


@pytest.fixture
def gateway(new_gateway):
    """Keeps one file of test cases, because they take most of a reload."""
    smallest = min((ROOT / "config/tests").iterdir(), key=lambda file: file.stat().st_size)
    shutil.copy(smallest, new_gateway.config / "tests")
    return new_gateway.start()


def resident(process):
    """Resident memory in KiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text()).group(1))


def reload(gateway):
    # Cases run at a low priority, so a reload takes long while other tests keep the processor busy.
    return requests.post(f"{gateway.admin}/policy/reload", timeout=120)


def test_reloads_fail_no_request(gateway, number):
    token = gateway.register(number)["session"]["token"]
    answers, ended = [], threading.Event()

    def visit():
        with requests.Session() as session:
            # A pause between requests, so that reloads get processor time.
            while not ended.wait(0.05):
                answers.append(
                    session.get(
                        f"{gateway.url}/", headers={"Authorization": f"Bearer {token}"}, timeout=20, allow_redirects=False
                    ).status_code
                )

    visitors = [threading.Thread(target=visit) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    try:
        seen = set()
        for count in range(GOOD):
            gateway.edit("routes.lua", lambda text: text + f"-- change {count}\n")
            told = reload(gateway)
            assert told.status_code == 200, told.text
            seen.add(told.json()["active"])
    finally:
        ended.set()
        for visitor in visitors:
            visitor.join(30)
    assert len(seen) == GOOD
    assert len(answers) > 2 * GOOD and set(answers) == {200}, {status: answers.count(status) for status in set(answers)}


def test_bad_reloads_leave_memory_flat(gateway):
    before = gateway.policy()["active"]
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("window =", "windw =", 1))
    for _ in range(100):
        assert reload(gateway).status_code == 422
    memory = resident(gateway.server.process)
    for _ in range(BAD - 100):
        assert reload(gateway).status_code == 422
    # KiB; at most 18 for each reload.
    assert resident(gateway.server.process) - memory < 18 * (BAD - 100)
    shown = gateway.policy()
    assert shown["active"] == before
    assert re.search(
        r"windw.*window",
        shown["candidate_refused"]["problems"][0]["path"] + shown["candidate_refused"]["problems"][0]["message"],
    )
    # An unchanged bad folder is reported once.
    refusals = [line for line in gateway.server.output.splitlines() if "refused (1 problem)" in line]
    assert len([line for line in refusals if "is still refused" not in line]) == 1
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("windw =", "window =", 1))
    assert reload(gateway).status_code == 200
    assert gateway.policy()["candidate_refused"] is None
