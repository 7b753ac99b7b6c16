"""The limits of a policy file in the running program."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import requests

from local_gateway import problem, wait_for, wrong

VERIFY = 'max = 5, window = "24h"'


def begun(gateway, phone, flow="login"):
    """A flow whose code was sent. Returns its id and the code."""
    flow = gateway.flow(flow)
    answer = gateway.begin(flow, phone)
    assert answer.status_code == 200, answer.text
    return flow, gateway.code(phone)


def lock(gateway, phone, attempts=5):
    flow, code = begun(gateway, phone)
    for left in range(attempts - 1, 0, -1):
        refusal = problem(gateway.submit(flow, wrong(code)), 401, "invalid_code")
        assert refusal["attempts_left"] == left
        assert refusal["detail"] == "Invalid code. Please try again."
    answer = gateway.submit(flow, wrong(code))
    refusal = problem(answer, 429, "too_many_attempts")
    assert answer.headers["Retry-After"] == str(refusal["retry_after"])
    return flow, code, refusal


def test_five_wrong_codes_lock_for_fifteen_minutes(gateway, number):
    gateway.register(number)
    flow, code, refusal = lock(gateway, number)
    assert 895 <= refusal["retry_after"] <= 900
    # The right code gets the same refusal, and so does every other call.
    again = problem(gateway.submit(flow, code), 429, "too_many_attempts")
    assert set(again) == set(refusal)
    problem(gateway.begin(gateway.flow(), f"0{number[3:8]} {number[8:]}"), 429, "too_many_attempts")
    problem(gateway.api("POST", f"/flows/{flow}/resend", {}), 429, "too_many_attempts")
    assert gateway.api("GET", f"/flows/{flow}").json()["step"]["locked_until"]


def test_sigkill_loses_no_lock_and_no_session(gateway, number):
    token = gateway.register(number)["session"]["token"]
    flow, code, _ = lock(gateway, number)
    gateway.restart(signal.SIGKILL)
    refusal = problem(gateway.submit(flow, code), 429, "too_many_attempts")
    assert 840 <= refusal["retry_after"] <= 900
    session = gateway.api("GET", "/session", headers={"Authorization": f"Bearer {token}"})
    assert session.status_code == 200 and session.json()["account"]["phone"] == number
    assert (
        requests.get(f"{gateway.url}/echo", headers={"Authorization": f"Bearer {token}"}, timeout=10).status_code == 200
    )


def test_two_hundred_parallel_wrong_codes_are_five_comparisons(gateway, number):
    gateway.register(number)
    flow, code = begun(gateway, number)
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda _: gateway.submit(flow, wrong(code)), range(200)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(401) == 4, statuses
    assert statuses.count(429) == 196, statuses
    assert all("Retry-After" in answer.headers for answer in answers if answer.status_code == 429)
    assert sorted(answer.json()["attempts_left"] for answer in answers if answer.status_code == 401) == [1, 2, 3, 4]


def test_fifty_parallel_right_codes_are_one_session(gateway, number):
    gateway.register(number)
    flow, code = begun(gateway, number)
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: gateway.submit(flow, code), range(50)))
    assert [answer.status_code for answer in answers].count(200) == 1
    assert {answer.status_code for answer in answers} <= {200, 409}


def test_a_limit_edited_while_it_runs_holds_at_the_next_attempt(gateway, number):
    gateway.register(number)
    before = gateway.policy()["active"]
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: text.replace(VERIFY, 'max = 2, window = "24h"', 1) if VERIFY in text else 1 / 0,
    )
    changed = gateway.wait_generation(before)
    assert changed["candidate_refused"] is None
    _, _, refusal = lock(gateway, number, attempts=2)
    assert refusal["retry_after"] <= 900


def test_a_broken_file_keeps_the_old_generation(gateway, number):
    gateway.register(number)
    before = gateway.policy()["active"]
    good = gateway.edit("policies/phone_otp.lua", lambda text: text.replace("window =", "windw =", 1))
    line = next(index for index, text in enumerate(good.splitlines(), 1) if "window =" in text)
    refused = wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal of the broken file")
    assert gateway.policy()["active"] == before
    shown = str(refused)
    assert "policies/phone_otp.lua" in shown and "windw" in shown and "window" in shown
    assert any(entry.get("line") == line for entry in refused["problems"]), (line, refused)
    # The old generation stays active.
    flow, code = begun(gateway, number)
    assert gateway.submit(flow, code).status_code == 200
    gateway.edit("policies/phone_otp.lua", lambda _: good)
    wait_for(lambda: gateway.policy()["candidate_refused"] is None, "the breakage to be forgotten")
    assert gateway.policy()["active"] == before


def test_reload_by_signal_and_by_the_admin_listener(gateway):
    before = gateway.policy()["active"]
    gateway.edit("policies/phone_otp.lua", lambda text: text + "\n-- changed\n")
    gateway.server.process.send_signal(signal.SIGHUP)
    changed = gateway.wait_generation(before)["active"]
    gateway.edit("policies/phone_otp.lua", lambda text: text + "this is no Lua\n")
    answer = requests.post(f"{gateway.admin}/policy/reload", timeout=20)
    assert answer.status_code == 422 and "policies/phone_otp.lua" in answer.text
    assert gateway.policy()["active"] == changed
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("this is no Lua\n", "-- once more\n"))
    assert requests.post(f"{gateway.admin}/policy/reload", timeout=20).status_code == 200
    assert gateway.policy()["active"] not in (before, changed)


def test_a_lifted_lock_starts_from_zero(gateway, number):
    gateway.register(number)
    flow, code, _ = lock(gateway, number)
    locks = requests.get(f"{gateway.admin}/locks", timeout=10).json()
    assert [(entry["provider"], entry["limit"]) for entry in locks] == [("phone_otp", "verify")]
    assert requests.delete(f"{gateway.admin}/locks/{locks[0]['id']}", timeout=10).status_code in (200, 204)
    assert gateway.submit(flow, code).status_code == 200


def test_resend_waits_and_shows_the_time(gateway, number):
    gateway.register(number)
    flow, _ = begun(gateway, number)
    answer = gateway.api("POST", f"/flows/{flow}/resend", {})
    refusal = problem(answer, 429, "resend_too_soon")
    assert 1 <= refusal["retry_after"] <= 60 and answer.headers["Retry-After"] == str(refusal["retry_after"])
    resend_at = time.mktime(time.strptime(refusal["resend_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert 0 < resend_at - time.time() <= 61
