"""Pages about groups and tokens in a real browser: why a user may not continue, signing in as another user, and
creating tokens."""

import base64
import re

import pytest
import requests

import album
from local_gateway import wait_for
from screens import Screen
from test_accounts import tool


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = album.for_members(tmp_path_factory.mktemp("members"))
    gateway.edit(
        "routes.lua",
        lambda text: text.replace('path = "/ops/**"', 'path = "/echo/ops/**"').replace(
            'path = "/files/**"', 'path = "/echo/files/**"'
        ),
    )
    try:
        yield gateway.start()
    finally:
        gateway.stop()


@pytest.fixture
def screen(driver, gateway):
    return Screen(driver, gateway).forget()


def test_refused_user_sees_the_reason_and_switches_accounts(gateway, screen, number, other_number):
    member = gateway.register(other_number())
    phone = member["account"]["phone"]
    assert tool(gateway, "group", "add", "ops", member["account"]["id"])[0] == 0
    screen.belongs_to(number).opens("/echo/ops/board?a=1&b=%2F").reads(
        "Your account does not have access to this page."
    )
    assert screen.path == "/echo/ops/board", "no intermediate page"
    assert re.search(rf"You are signed in as [^.]*•{number[-2:]}", screen.text) and number[-6:] not in screen.text, (
        screen.text
    )
    support = screen.find("a[href='mailto:help@example.com']")
    assert support.is_displayed()
    screen.presses("Sign in as someone else").at("/auth/logout")
    # The link alone signs no user out.
    assert gateway.api("GET", "/session", headers={"Authorization": f"Bearer {screen.token}"}).status_code == 200
    screen.find("main form button").click()
    screen.at("/auth/login")
    assert gateway.api("GET", "/session", headers={"Authorization": f"Bearer {screen.token}"}).status_code == 401
    seen = {entry["id"] for entry in gateway.outbox()}
    screen.fills("phone", phone).waits(lambda: screen.find("button.main").is_enabled(), "a number that can be sent")
    screen.find("button.main").click()
    screen.at("/auth/verify")
    screen.enters(
        wait_for(
            lambda: next(
                (entry["code"] for entry in gateway.outbox() if entry["id"] not in seen and entry["code"]), None
            ),
            "a code",
        )
    )
    screen.waits(lambda: screen.driver.current_url == f"{gateway.url}/echo/ops/board?a=1&b=%2F", "where they were going")
    assert member["account"]["id"] in screen.text


def test_person_makes_a_token_sees_its_use_and_removes_it(gateway, screen, number):
    screen.belongs_to(number).opens("/auth/account").presses("New access token").at("/auth/account/tokens")
    screen.fills("name", "Backup of the laptop").find("input[name=expires][value='30']").click()
    screen.presses("Create token").reads("Copy the token now. It is not shown again.", "bearer token")
    secret = screen.says(".secret code")
    assert re.fullmatch(r"mgt_[A-Za-z0-9_-]{43}", secret)
    basic = base64.b64encode(f"any:{secret}".encode()).decode()
    use = lambda: requests.get(f"{gateway.url}/echo/files/x", headers={"Authorization": f"Basic {basic}"}, timeout=10)
    assert use().status_code == 200 and secret not in use().text
    screen.presses("I have copied it").at("/auth/account").reads("Backup of the laptop")
    assert secret not in screen.driver.page_source
    wait_for(lambda: screen.opens("/auth/account") and "127.0.0.0/24" in screen.text, "its last use", 10)
    screen.presses("Remove: Backup of the laptop").reads("Token removed.")
    wait_for(lambda: use().status_code == 401, "its end", 2)
    assert screen.errors() == []
