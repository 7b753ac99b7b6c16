"""Unusual browsers, users and operators: nothing breaks and no input is lost."""

import re
import struct
import zlib

import pytest
import requests

from local_gateway import LocalGateway
from screens import Screen, many, wrong

PIN = "482915"
# A browser that stores nothing for a site.
NO_STORAGE = """for (const name of ['localStorage', 'sessionStorage'])
  Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })"""
CLOCK = """{ const Real = Date, off = %d;
  window.Date = class extends Real { constructor(...given) { given.length ? super(...given) : super(Real.now() + off) } static now() { return Real.now() + off } } }"""
DAY = 86_400_000


@pytest.fixture
def browser(screen, request):
    """A user whose browser runs this script before each page."""
    screen.driver.execute_cdp_cmd("Page.enable", {})
    added = screen.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": request.param})
    yield screen
    screen.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


@pytest.mark.parametrize(
    "browser", [NO_STORAGE, CLOCK % DAY, CLOCK % -DAY], indirect=True, ids=["no storage", "a day ahead", "a day behind"]
)
def test_browser_without_cookies_or_with_a_wrong_clock(browser, number):
    code = browser.asks_code(number, "register")
    browser.matches(r"Resend code in (00:[345]\d|01:00)")
    browser.find("#code").send_keys(wrong(code))
    browser.reads("Invalid code. Please try again.")
    browser.find("#code").send_keys(code)
    browser.at("/profile-setup").opens("/auth/pin?flow=pin_set").keys(PIN).reads("Confirm passcode").keys(PIN).at(
        "/home"
    )
    browser.opens("/auth/pin?return_to=/home").keys(PIN).at("/home")
    browser.opens("/auth/account").reads("This device").presses("Sign out").at("/auth/login")
    assert browser.errors() == []


def reachable(screen):
    """The unreachable controls, with the element that covers each of them after scrolling."""
    return screen.js("""
      const inside = document.querySelector('dialog[open]') ?? document;
      return [...inside.querySelectorAll('a[href], button, input:not([type=hidden])')].filter(one => one.checkVisibility({visibilityProperty: true}) && !one.disabled)
        .filter(one => {
          one.scrollIntoView({block: 'center'});
          const box = one.getBoundingClientRect();
          const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
          return !(top && (one.contains(top) || top.contains(one) || one.labels?.[0]?.contains(top)));
        }).map(one => one.outerHTML.slice(0, 100))""")


def test_at_400_percent(screen, number, other_number):
    """A window of 1280 x 800 at 400 % has 320 x 200 (WCAG 2.2, 1.4.10)."""
    screen.looks((320, 200), calm=True).opens("/auth/login").is_sound("sign in")
    assert reachable(screen) == []
    screen.find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    assert reachable(screen.is_sound("the countries")) == []
    screen.presses("Cancel", "dialog[open]").opens("/auth/register?with=email")
    assert reachable(screen.is_sound("register")) == []
    screen.asks_code(number, "register")
    assert reachable(screen.is_sound("code")) == []
    screen.find(".back").click()
    screen.reads("Go back?")
    assert reachable(screen.is_sound("the question")) == []
    screen.belongs_to(other_number())
    for path in ("/auth/account", "/auth/pin?flow=pin_set", "/auth/logout", "/auth/error?code=denied"):
        assert reachable(screen.opens(path).is_sound(path)) == [], path


def test_a_name_of_300_characters(screen, number):
    """The page accepts a hundred characters; a longer name is refused with a message, and other input is kept."""
    email = f"asha{number[-5:]}@example.org"
    screen.opens("/auth/register?with=email").fills("last_name", "Rao").fills("email", email).fills(
        "password", "correct horse battery"
    )
    assert screen.find("#first_name").get_attribute("maxlength") == "100"
    screen.js(
        "const field = document.getElementById('first_name'); field.maxLength = 1000; field.value = 'x'.repeat(300)"
    )
    screen.find("button.main").click()
    screen.waits(lambda: screen.all("main .problem"), "the refusal")
    assert screen.path == "/auth/register" and screen.find("#email").get_attribute("value") == email
    screen.is_sound("a name that is too long").fills("first_name", "W" * 100).fills("password", "correct horse battery")
    screen.find("button.main").click()
    screen.at("/auth/email").opens("/auth/account").reads("W" * 100)
    for size in ((320, 720), (390, 844), (1280, 800)):
        screen.looks(size).is_sound("the longest name")


def picture(width, height):
    """A PNG of one color."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x0d\x73\x77" * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def test_unreadable_brand_colours_and_a_logo_of_4000_px(driver, tmp_path):
    gateway = LocalGateway(tmp_path)
    gateway.edit("policies/phone_otp.lua", many)
    (gateway.config / "logo.png").write_bytes(picture(4000, 1000))

    def brand(colour):
        return lambda text: re.sub(
            r"brand = \{.*\}", f'brand = {{ name = "Umbrella", logo = "logo.png", primary = "{colour}" }}', text
        )

    gateway.edit("gateway.lua", brand("#ffffff"))
    try:
        screen = Screen(driver, gateway.start()).forget()
        for colour in ("#ffffff", "#000000", "#7f7f7f", "#ffff00", "#0000ff"):
            if colour != "#ffffff":
                active = gateway.policy()["active"]
                gateway.edit("gateway.lua", brand(colour))
                gateway.wait_generation(active)
            for dark in (False, True):
                for path in ("/auth/login", "/auth/error?code=denied"):
                    screen.looks(dark=dark, calm=True).opens(path).is_sound(f"{colour}, {'dark' if dark else 'light'}")
        logo = screen.opens("/auth/login").find("img.logo")
        assert screen.js(
            "return [arguments[0].naturalWidth, arguments[0].offsetWidth, arguments[0].offsetHeight, getComputedStyle(arguments[0]).objectFit]",
            logo,
        ) == [4000, 80, 80, "contain"]
        assert screen.errors() == []
    finally:
        gateway.stop()


def test_two_tabs_in_two_languages(screen, number):
    """New content of a page has the language of that page; input in the other language is kept."""
    code = screen.asks_code(number, "register")
    first = screen.driver.current_window_handle
    screen.driver.switch_to.new_window("tab")
    try:
        screen.opens("/auth/login?language=hi")
        assert screen.js("return document.documentElement.lang") == "hi"
        screen.driver.switch_to.window(first)
        screen.find("#code").send_keys(wrong(code))
        screen.reads("Invalid code. Please try again.", "Verify Phone Number")
        assert not re.search("[\u0900-\u097f]", screen.says("main")), "both languages on one page"
        # A newly opened page has the last chosen language and the same task.
        screen.driver.refresh()
        screen.settles()
        assert screen.js("return document.documentElement.lang") == "hi"
        screen.find("#code").send_keys(code)
        screen.at("/profile-setup")
    finally:
        for handle in [handle for handle in screen.driver.window_handles if handle != first]:
            screen.driver.switch_to.window(handle)
            screen.opens("/auth/login?language=en")
            screen.driver.close()
        screen.driver.switch_to.window(first)


def test_a_script_has_no_language_that_there_is_not(shipped):
    """Attack: a header with an invalid language, to inject content into the page."""
    for tag in ("xx", "<b>", "hi; Path=/", "../hi"):
        page = requests.get(
            shipped.url + "/auth/login", headers={"Accept": "text/html", "Moongate-Language": tag}, timeout=10
        ).text
        assert '<html lang="en"' in page, tag
    assert (
        '<html lang="hi"'
        in requests.get(
            shipped.url + "/auth/login", headers={"Accept": "text/html", "Moongate-Language": "hi"}, timeout=10
        ).text
    )
