"""Addresses that several accounts claim without verification, by the API and on the pages."""

import re
import time

import pytest
import requests

from local_gateway import LocalGateway, problem, wait_for
from screens import Screen, registrations, start

FIRST, SECOND, NEW = "correct horse battery", "another horse battery", "third horse battery"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A browser without scripts."""
    driver = start(tmp_path_factory.mktemp("plain"), scripts=False)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A gateway in which another code can be requested after a second."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"1s"').replace("max = 30", "max = 1000"))
    gateway.edit("policies/password.lua", registrations)
    yield gateway.start()
    gateway.stop()


def register(gateway, address, password):
    answer = gateway.api(
        "POST", "/register", {"email": address, "password": password, "first_name": "Asha", "last_name": "Rao"}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["token"], answer.json()["user"]["id"]


def log_in(gateway, address, password):
    return gateway.api("POST", "/login", {"email": address, "password": password})


def resets(gateway):
    """The sent codes, without registration mails."""
    return [entry["id"] for entry in gateway.outbox()]


def reset(gateway, address):
    flow = gateway.flow("password_reset")
    seen = set(resets(gateway))
    # A registration has just sent a mail.
    wait_for(
        lambda: gateway.api("POST", f"/flows/{flow}/begin", {"email": address}).status_code == 200, "the end of the timer"
    )
    code = wait_for(
        lambda: next(
            (e["code"] for e in gateway.outbox() if e["id"] not in seen and e["to"] == address and e["code"]), None
        ),
        "a code",
    )
    return flow, code


def test_second_registration_does_not_lock_the_owner_out(shared):
    address = "shared@example.com"
    _, first = register(shared, address, FIRST)
    _, second = register(shared, address, SECOND)
    assert first != second
    for _ in range(2):
        assert log_in(shared, address, FIRST).json()["user"]["id"] == first
        assert log_in(shared, address, SECOND).json()["user"]["id"] == second
    refusal = problem(log_in(shared, address, "wrong horse battery"), 401, "invalid_password")
    assert refusal["attempts_left"] == 4, "one counter for both"


def test_a_reset_asks_which_account(shared):
    address = "choice@example.com"
    tokens = [register(shared, address, password) for password in (FIRST, SECOND)]
    flow, code = reset(shared, address)
    view = shared.submit(flow, code).json()
    assert (view["status"], view["choices"], view["account"]) == ("pending", [], None)
    [field] = view["step"]["fields"]
    assert (field["name"], field["kind"], [choice["value"] for choice in field["choices"]]) == (
        "account",
        "choice",
        ["1", "2"],
    )
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", choice[name])
        for choice in field["choices"]
        for name in ("created_at", "last_used_at")
    )
    assert all(account not in str(view) for _, account in tokens), "their owner is not revealed yet"
    assert (
        problem(shared.api("POST", f"/flows/{flow}/submit", {"password": NEW}), 422, "invalid_input")["field"]
        == "account"
    )
    assert (
        problem(shared.api("POST", f"/flows/{flow}/submit", {"account": "3"}), 422, "invalid_input")["field"]
        == "account"
    )
    assert shared.api("POST", f"/flows/{flow}/submit", {"account": "1"}).json()["choices"] == ["password"]
    done = shared.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": NEW}).json()
    assert (
        done["status"] == "complete" and done["account"]["id"] == tokens[0][1] and done["account"]["is_email_verified"]
    )
    for token, _ in tokens:
        assert shared.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    for password in (FIRST, SECOND):
        problem(log_in(shared, address, password), 401, "invalid_password")
    assert log_in(shared, address, NEW).json()["user"]["id"] == tokens[0][1]


def test_nothing_of_an_account_registered_in_the_victims_name_stays(shared):
    """Attack: an account with the attacker's passcode, created before the victim registers."""
    address = "victim@example.com"
    token, account = register(shared, address, FIRST)
    answer = shared.api("POST", "/set-passcode", {"passcode": "482915"}, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    flow, code = reset(shared, address)
    assert shared.submit(flow, code).json()["choices"] == ["password"], "one account: nothing is asked"
    done = shared.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": NEW}).json()
    assert done["account"]["id"] == account and done["account"]["has_pin"] is False
    assert (
        shared.api("GET", "/session", headers={"Authorization": f"Bearer {answer.json()['token']}"}).status_code == 401
    )


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_the_choice_on_a_page(driver, plain, shared, scripts):
    address = f"page{int(scripts)}@example.com"
    accounts = [register(shared, address, password)[1] for password in (FIRST, SECOND)]
    screen = Screen(driver if scripts else plain, shared).forget()
    screen.opens("/auth/login?with=reset")
    wait_for(lambda: {e["to"] for e in shared.outbox()} >= {address}, "the mails of the registrations")
    time.sleep(1.1)  # the resend timer of the mail
    seen = set(resets(shared))
    screen.fills("email", address).presses("Send code").at("/auth/email")
    code = wait_for(
        lambda: next((e["code"] for e in shared.outbox() if e["id"] not in seen and e["code"]), None), "a code"
    )
    if scripts:
        screen.types(code)
    else:
        screen.enters(code)
    screen.at("/auth/choose").reads("Choose your account", "Account 1", "Account 2", "Created on", "Last used on")
    screen.presses("This one is mine: Account 2").reads("New password")
    screen.fills("password", NEW).presses("Save password").at("/home")
    assert log_in(shared, address, NEW).json()["user"]["id"] == accounts[1]
    problem(log_in(shared, address, FIRST), 401, "invalid_password")


def test_the_choice_in_hindi_and_only_for_its_browser(shared):
    address = "hindi@example.com"
    for password in (FIRST, SECOND):
        register(shared, address, password)
    browser = requests.Session()
    browser.headers["Origin"] = shared.url
    api = f"{shared.url}/api/auth/flows"
    flow = browser.post(api, json={"flow": "password_reset"}, timeout=10).json()["id"]
    seen = set(resets(shared))
    wait_for(
        lambda: browser.post(f"{api}/{flow}/begin", json={"email": address}, timeout=10).status_code == 200,
        "the end of the timer",
    )
    code = wait_for(
        lambda: next((e["code"] for e in shared.outbox() if e["id"] not in seen and e["code"]), None), "a code"
    )
    assert browser.post(f"{api}/{flow}/submit", json={"code": code}, timeout=10).status_code == 200
    page = browser.get(
        f"{shared.url}/auth/choose?id={flow}", headers={"Accept": "text/html", "Accept-Language": "hi"}, timeout=10
    )
    assert (
        requests.get(f"{shared.url}/auth/choose?id={flow}", headers={"Accept": "text/html"}, timeout=10).status_code
        == 404
    )
    assert page.status_code == 200 and "अपना खाता चुनें" in page.text and "खाता 2" in page.text
    page = requests.get(f"{shared.url}/auth/choose?id=fl_{'x' * 43}", headers={"Accept": "text/html"}, timeout=10)
    assert page.status_code == 404


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_the_account_page_signs_out_elsewhere_exports_and_deletes(driver, plain, shared, number, other_number, scripts):
    phone = other_number()
    shared.register(phone)
    screen = Screen(driver if scripts else plain, shared).forget()
    address = f"end{int(scripts)}@example.com"
    token, account = register(shared, address, FIRST)
    screen.opens("/auth/login?with=email").fills("email", address).fills("password", FIRST).presses("Sign in").at(
        "/home"
    )
    screen.opens("/auth/account").presses("Sign out everywhere else").reads("Signed out everywhere else.")
    assert shared.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert "Sign out everywhere else" not in screen.text, "there is no other session"
    cookies = {cookie["name"]: cookie["value"] for cookie in screen.driver.get_cookies()}
    file = requests.get(f"{shared.url}/auth/account/export", cookies=cookies, timeout=10)
    assert (
        file.status_code == 200
        and file.headers["Content-Disposition"].startswith("attachment")
        and file.json()["account"]["id"] == account
    )
    screen.presses("Delete account").at("/auth/account/delete").reads("Delete your account?", "This cannot be undone.")
    screen.presses("Delete account").at("/auth/login")
    problem(log_in(shared, address, FIRST), 401, "invalid_password")
    assert requests.get(f"{shared.admin}/accounts/{account}", timeout=10).status_code == 404
