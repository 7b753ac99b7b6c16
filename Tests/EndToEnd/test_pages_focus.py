"""Focus and announcements after errors, and locks that apply to one number only."""

import re

import pytest

from local_gateway import LocalGateway
from screens import Keys, Screen, many, wrong
from test_pages_code import hurried


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Locks of three seconds; codes that live for ten minutes."""
    gateway = hurried(tmp_path_factory.mktemp("gateway"), "10m")
    yield gateway
    gateway.stop()


def focus(screen):
    return screen.js(
        "const active = document.activeElement; return active === document.body ? null : active.textContent.trim() || active.id"
    )


def sends(screen):
    screen.waits(lambda: screen.find("main button.main").is_enabled(), "something that can be sent")
    screen.find("main button.main").click()
    return screen


def heard(screen, sentence):
    return [said for said in screen.js("return window.heard") if sentence in said]


def test_after_a_lock(screen, number):
    code = screen.asks_code(number, "register")
    for said in ("4 tries", "3 tries", "2 tries", "1 try", "Too many attempts"):
        screen.find("#code").send_keys(wrong(code))
        screen.reads(said)
    screen.waits(lambda: focus(screen) == "Use different phone number", "the focus on the next thing to do")
    screen.presses("Use different phone number").at("/auth/register")
    assert screen.find("#phone").get_attribute("value") == "", "not the number that is locked"


def test_after_the_expiry(driver, tmp_path, number):
    gateway = hurried(tmp_path, "3s")
    try:
        screen = Screen(driver, gateway).forget()
        screen.asks_code(number, "register")
        screen.reads("This code has expired").waits(
            lambda: focus(screen) == "Resend now", "the focus on the way to another code"
        )
    finally:
        gateway.stop()


def test_announcement_when_a_lock_ends(driver, quick, number):
    screen = Screen(driver, quick).forget()
    code = screen.asks_code(number, "register")
    screen.types(wrong(code)).reads("1 try left.").types(wrong(code)).reads("Too many attempts.").listens()
    screen.waits(
        lambda: screen.find("#code").is_enabled() or screen.all("[data-slot=timer] button"), "the end of the lock"
    )
    screen.hears("You can try again now.")
    assert not heard(screen, "Resend code in"), screen.js("return window.heard")
    assert focus(screen) in ("code", "Resend now")


def test_after_a_send_that_failed(screen, number):
    screen.opens("/auth/register").fills("phone", number)
    screen.offline()
    sends(screen).reads("Unable to send OTP. Check your connection.")
    assert focus(screen) == "Send OTP"
    screen.offline(False)


def test_after_the_question(screen, number):
    screen.opens("/auth/login").fills("phone", number)
    sends(screen).reads("No Account Found").presses("Cancel", "dialog[open]")
    screen.waits(lambda: focus(screen) == "phone", "the number again")


@pytest.mark.parametrize("after", ["another number", "the same number"])
def test_a_hold_is_of_one_number(driver, tmp_path_factory, number, after):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: re.sub(r"(send\s+= \{[^}]*max = )4", r"\g<1>1", many(text)).replace(
            '{ "60s", "120s" }', '{ "1s" }'
        ),
    )
    try:
        screen = Screen(driver, gateway.start()).forget()
        gateway.register(number)
        screen.opens("/auth/login").fills("phone", number)
        sends(screen).reads("Too many attempts. Try again in 15 minutes.")
        field = screen.find("#phone")
        last, other = number[-1], str((int(number[-1]) + 1) % 10)
        field.send_keys(Keys.BACKSPACE + other)
        screen.waits(lambda: screen.find("button.main").is_enabled(), "another number that may be sent")
        assert not screen.all("main .problem")
        if after == "another number":
            gateway.register(number[:-1] + other)
            screen.find("button.main").click()
            screen.waits(
                lambda: "Too many" in screen.text or screen.path == "/auth/verify", "an answer of the server's own"
            )
            return
        field.send_keys(Keys.BACKSPACE + last)
        screen.reads("Too many attempts. Try again in 15 minutes.").matches(r"Try again in (14:\d\d|15:00)")
        assert not screen.find("button.main").is_enabled()
    finally:
        gateway.stop()


def test_the_red_flash_is_of_the_whole_field(screen):
    screen.looks(calm=True).opens("/auth/login").fills("phone", "12345")
    screen.types(Keys.ENTER).reads("Please enter a valid 10-digit mobile number")
    moves = screen.js(
        "return document.querySelector('.field').getAnimations().map(animation => animation.animationName)"
    )
    assert moves == ["flash"], moves
    assert screen.js("return getComputedStyle(document.querySelector('#phone')).outlineStyle") == "none", (
        "nothing lies on it"
    )
