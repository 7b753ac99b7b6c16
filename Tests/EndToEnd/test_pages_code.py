"""The code page: input, resend, errors, locks, focus, announcements and looks."""

import re

import pytest
import requests

from local_gateway import LocalGateway, wait_for
from screens import Keys, Screen, many, wrong


def hurried(folder, ttl):
    """The same with seconds instead of minutes."""
    gateway = LocalGateway(folder)
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: (
            many(text)
            .replace('{ "60s", "120s" }', '{ "2s", "120s" }')
            .replace('ttl = "10m"', f'ttl = "{ttl}"')
            .replace('{ "15m", "1h", "6h", "24h" }', '{ "3s", "2h" }')
            .replace("max = 5,", "max = 2,")
        ),
    )
    gateway.edit("gateway.lua", lambda text: re.sub(r"risk_budget.*\n", "\n", text))
    gateway.edit("flows/login.lua", lambda text: text.replace('lifetime = "15m"', 'lifetime = "4s"'))
    return gateway.start()


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    gateway = hurried(tmp_path_factory.mktemp("gateway"), "10m")
    yield gateway
    gateway.stop()


@pytest.fixture
def fleeting(driver, tmp_path, look):
    """Codes that expire after eight seconds. A new code can be requested then, regardless of the timer."""
    gateway = hurried(tmp_path, "8s")
    yield Screen(driver, gateway, look).forget()
    gateway.stop()


@pytest.fixture
def hasty(driver, short, look):
    return Screen(driver, short, look).forget()


def boxes(screen):
    return screen.js("return [...document.querySelectorAll('.box')].map(box => box.textContent).join('')")


def state(screen):
    return screen.find("form[data-form=code]").get_attribute("data-state")


def test_page_texts(screen, number):
    screen.asks_code(number, "register")
    shown = f"+91 {number[3:8]} {number[8:]}"
    screen.reads(
        "Verify Phone Number",
        "We've sent a 6-digit code to",
        shown,
        "Edit",
        "Resend",
        "Verify & Continue",
        "Having trouble? Contact us",
    )
    assert "Check your blocked messages and spam" not in screen.text, "while the message may still be on its way"
    assert screen.find("[aria-label='Edit phone number']").is_enabled()
    assert not screen.find("[aria-label='Resend code']").is_enabled()
    assert screen.find("[data-support]").get_attribute("href") == "mailto:help@example.com"


def test_six_boxes_are_one_field(screen, number):
    code = screen.asks_code(number, "register")
    field = screen.driver.switch_to.active_element
    assert field.get_attribute("id") == "code", "focused on arrival"
    assert field.get_attribute("autocomplete") == "one-time-code" and field.get_attribute("inputmode") == "numeric"
    assert field.accessible_name == "Enter verification code, 6 digits"
    assert len(screen.all("main input:not([type=hidden]):not(dialog input)")) == 1
    assert screen.js("return document.querySelectorAll('.box').length") == 6
    bad = wrong(code)
    screen.types("a" + bad[0] + "x-" + bad[1])
    assert boxes(screen) == bad[:2], "digits only, and visible"
    assert (
        screen.js("return [...document.querySelectorAll('.box')].findIndex(box => box.classList.contains('current'))")
        == 2
    )
    screen.types(Keys.BACKSPACE)
    assert boxes(screen) == bad[0]
    assert not screen.find("button.main").is_enabled()
    screen.types(Keys.BACKSPACE)
    screen.types("\u0967\u0968")
    assert boxes(screen) == "12", "digits of another script"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{0:.3} {1}",
        " {}\n",
        "\u200b{0:.3}\u2013{1}\ufeff",
        "{wide}",
        "Your 2 codes: {} is your Moongate verification code\n\n@localhost #{}",
        "{1} is not it; @localhost #{}",
    ],
    ids=["code", "spaced", "with white space", "invisible characters and a dash", "full width", "SMS", "bound line"],
)
def test_pasted_text_with_a_code_fills_the_boxes(screen, number, text):
    code = screen.asks_code(number, "register")
    if text.startswith("{1}"):
        pasted = f"{wrong(code)} is not it\n@localhost #{code}"
    else:
        pasted = text.replace("{0:.3}", code[:3]).replace("{1}", code[3:]).replace("{}", code)
        pasted = pasted.replace("{wide}", "".join(chr(ord(digit) + 0xFEE0) for digit in code))
    screen.pastes("#code", pasted)
    screen.at("/profile-setup")


def test_pasted_text_without_a_code_changes_nothing(screen, number):
    typed = wrong(screen.asks_code(number, "register"))[:3]
    screen.types(typed).pastes("#code", "hello world")
    assert boxes(screen) == typed and screen.find("#code").get_attribute("value") == typed


def test_without_scripts_the_field_shows_the_input(screen, number):
    screen.asks_code(number, "register")
    screen.driver.execute_cdp_cmd("Network.enable", {})
    screen.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    screen.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/code.js"]})
    try:
        screen.driver.refresh()
        screen.find("#code").send_keys("482")
        screen.waits(
            lambda: screen.js("return getComputedStyle(document.querySelector('#code')).color") != "rgba(0, 0, 0, 0)",
            "what was typed",
        )
    finally:
        screen.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        screen.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})


def test_a_complete_code_is_sent_by_itself(screen, number):
    code = screen.asks_code(number, "register")
    screen.slow(700)
    try:
        screen.types(wrong(code))
        assert boxes(screen) == wrong(code) and screen.find("button.main").is_enabled()
        screen.waits(lambda: screen.all("button.main .spinner"), "work in progress")
        assert "Verifying…" in screen.find("button.main").text
        assert not screen.find("button.main").is_enabled()
        assert screen.js("return document.querySelector('#code').readOnly && document.querySelector('.back').inert"), (
            "boxes and back are off"
        )
        assert screen.find("[data-countdown]"), "the timer continues"
    finally:
        screen.slow(0)
    screen.reads("Invalid code. Please try again.")


def test_a_digit_taken_back_in_time_sends_nothing(screen, number):
    code = screen.asks_code(number, "register")
    screen.types(wrong(code))
    screen.types(Keys.BACKSPACE)
    screen.js("return new Promise(done => setTimeout(done, 700))")
    assert state(screen) == "open" and boxes(screen) == wrong(code)[:5]


def test_resend(hasty, number):
    hasty.asks_code(number, "register")
    hasty.listens()
    hasty.matches(r"Resend code in 00:0[12]")
    # The server's time applies, regardless of the browser's clock.
    line = hasty.find("[data-late]")
    place, shown = line.location, line.is_displayed()
    hasty.reads("Didn't receive code?", "Check your blocked messages and spam").hears(
        "You can ask for another code now."
    )
    assert not shown and line.location == place, "its place is reserved"
    assert hasty.find("[aria-label='Resend code']").is_enabled()
    hasty.presses("Resend now").reads("Code sent!").hears("New code sent.")
    hasty.matches(r"Resend code in (02:00|01:5\d)")
    assert not hasty.find("[data-late]").is_displayed()
    hasty.driver.refresh()
    hasty.at("/auth/verify")
    hasty.matches(r"Resend code in 01:5\d")


def test_after_the_third_resend(driver, tmp_path, number, look):
    """A countdown to the next resend, for both links; the last code still works."""
    gateway = LocalGateway(tmp_path)
    gateway.edit("policies/phone_otp.lua", lambda text: many(text).replace('{ "60s", "120s" }', '{ "1s" }'))
    try:
        screen = Screen(driver, gateway.start(), look).forget()
        screen.asks_code(number, "register")
        screen.waits(lambda: len(gateway.outbox()) == 1, "the first code")
        for sent in (2, 3, 4):
            screen.presses("Resend now", "[data-slot=timer]")
            screen.waits(lambda: len(gateway.outbox()) == sent, "another code")
            # The page ignores the link until its answer has come, which is after the code.
            busy = "return document.querySelector('[data-form=resend]').dataset.busy"
            screen.waits(lambda: not screen.js(busy), "the answer")
        for _ in range(2):
            screen.matches(r"Resend code in (15:00|14:[45]\d)")
            assert "Resend now" not in screen.text and not screen.find("[aria-label='Resend code']").is_enabled()
            screen.driver.refresh()
            screen.at("/auth/verify")
        screen.is_sound("no more codes")
        # A forced request gets the same message, and nothing is sent.
        screen.js("const link = document.querySelector('[data-sync=resend-link]'); link.disabled = false; link.click()")
        screen.reads("Too many attempts. Try again in 15 minutes.")
        assert len(gateway.outbox()) == 4
        screen.find("#code").send_keys(gateway.code(number))
        screen.at("/profile-setup")
    finally:
        gateway.stop()


def test_a_clock_that_is_wrong(screen, number):
    screen.asks_code(number, "register")
    screen.driver.execute_cdp_cmd("Page.enable", {})
    added = screen.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "Date.now = () => 0"})
    try:
        screen.driver.refresh()
        screen.at("/auth/verify")
        screen.matches(r"Resend code in (00:[45]\d|01:00)")
    finally:
        screen.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


def test_wrong_code(screen, number):
    code = screen.moves().asks_code(number, "register")
    screen.listens()
    screen.types(wrong(code))
    screen.reads("Invalid code. Please try again. 4 tries left.").hears("Error. Invalid code. Please try again.")
    assert state(screen) == "wrong" and boxes(screen) == ""
    moves = screen.js(
        "return document.querySelector('.row').getAnimations().map(animation => [animation.animationName, animation.effect.getTiming().duration])"
    )
    assert moves == [["shake", 600]]
    red = "return getComputedStyle(document.querySelectorAll('.box')[2]).borderColor"
    screen.waits(lambda: screen.js(red) == "rgb(234, 84, 85)", "red boxes", 2)
    assert screen.driver.switch_to.active_element.get_attribute("id") == "code"
    screen.waits(lambda: not screen.all(".problem"), "the sentence to go", 5)
    assert state(screen) == "open"
    screen.types(code)
    screen.at("/profile-setup")


def test_expired_code(fleeting, number):
    fleeting.asks_code(number, "register")
    fleeting.reads("This code has expired. Please request a new one.", "00:00")
    assert not fleeting.find("#code").is_enabled() and not fleeting.find("button.main").is_enabled()
    assert fleeting.all("[data-slot=problem] svg"), "the alert icon"
    stressed = fleeting.waits(lambda: fleeting.find("[data-slot=instead] button"), "the way to another code")
    assert "stressed" in stressed.get_attribute("class") and stressed.is_enabled()
    fleeting.is_sound("expired")
    fleeting.presses("Resend now").reads("Code sent!")
    assert fleeting.find("#code").is_enabled()
    fleeting.types(fleeting.gateway.code(number)).at("/profile-setup")


def test_a_flow_that_ends_while_its_page_is_open(hasty, number):
    """The whole sign-in has expired, not only the code."""
    hasty.gateway.register(number)
    code = hasty.asks_code(number)
    flow = hasty.find("form[data-form=code]").get_attribute("data-flow")
    status = "return fetch('/api/auth/flows/' + arguments[0]).then(answer => answer.status)"
    hasty.waits(lambda: hasty.js(status, flow) == 410, "the end of the flow")
    hasty.find("#code").send_keys(code)
    hasty.reads("This sign-in has expired. Please start again.", "Start again").is_sound("expired")
    assert "/auth/login" in next(link for link in hasty.all("main a") if link.text == "Start again").get_attribute(
        "href"
    )
    # There is no code left to ask about when going back.
    hasty.driver.back()
    hasty.at("/auth/login")


def test_too_many_wrong_codes(screen, number):
    code = screen.asks_code(number, "register")
    for left in (4, 3, 2, 1):
        screen.types(wrong(code)).reads(f"Invalid code. Please try again. {left} tr")
    screen.types(wrong(code))
    for _ in range(2):
        screen.reads("Too many attempts. Please try again in 15 minutes.", "Use different phone number")
        screen.matches(r"Try again in (14:5\d|15:00)")
        assert not screen.find("#code").is_enabled() and not screen.find("button.main").is_enabled()
        assert "stressed" in screen.find("[data-support]").get_attribute("class")
        screen.driver.refresh()
        screen.at("/auth/verify")
    screen.is_sound("locked")


def test_the_lock_ends(hasty, number):
    code = hasty.asks_code(number, "register")
    hasty.types(wrong(code)).reads("1 try left.").types(wrong(code)).reads("Too many attempts.")
    # The code has expired in the meantime, but the page has not.
    hasty.waits(lambda: hasty.all("[data-slot=timer] button"), "the end of the lock")
    hasty.presses("Resend now")
    fresh = wait_for(lambda: hasty.gateway.code(number) != code and hasty.gateway.code(number), "another code")
    hasty.waits(lambda: hasty.find("#code").is_enabled(), "the boxes")
    hasty.find("#code").send_keys(fresh)
    hasty.at("/profile-setup")


def test_no_connection(screen, number):
    code = screen.asks_code(number, "register")
    screen.offline()
    screen.types(code)
    screen.reads("Unable to verify. Check your connection.", "Retry")
    assert boxes(screen) == code and screen.find("button.main").is_enabled(), "digits stay"
    assert screen.js("""const box = document.querySelector('.back').getBoundingClientRect();
      return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).closest('.back') !== null"""), (
        "the way back is free"
    )
    screen.is_sound("no connection")
    screen.offline(False)
    screen.presses("Retry").at("/profile-setup")


def test_the_lost_answer_was_a_success(screen, number):
    code = screen.asks_code(number, "register")
    # The request arrives, but its response is lost.
    screen.js("""const real = window.fetch; window.fetch = async (...parts) => {
      window.fetch = real; await real(...parts); throw new TypeError('lost') }""")
    screen.types(code)
    screen.reads("Unable to verify. Check your connection.")
    screen.presses("Retry").at("/profile-setup")


def test_right_code(screen, number):
    screen.gateway.register(number)
    code = screen.asks_code(number)
    screen.listens()
    screen.js("""window.seen = []; new MutationObserver(() => seen.push([document.querySelector('button.main').textContent,
      document.querySelector('form[data-form=code]').dataset.state])).observe(document.querySelector('form[data-form=code]'), {subtree: true, childList: true,
      attributes: true}); addEventListener('pagehide', () => sessionStorage.setItem('seen', JSON.stringify(seen)))""")
    screen.types(code)
    screen.at("/home")
    assert ["Verified ✓", "done"] in screen.js("return JSON.parse(sessionStorage.getItem('seen'))")
    screen.driver.back()
    screen.waits(lambda: screen.path != "/auth/verify", "the way back over a page that is done")


def test_page_after_the_right_code(screen, number):
    screen.opens("/auth/register?return_to=%2Freports%3Fx%3D1").fills("phone", number)
    screen.waits(lambda: screen.find("button.main").is_enabled(), "a number")
    screen.find("button.main").click()
    screen.at("/auth/verify").types(
        wait_for(lambda: next((e["code"] for e in screen.gateway.outbox() if e["to"] == number), None), "a code")
    )
    screen.at("/profile-setup")
    assert screen.driver.current_url.endswith("?return_to=%2Freports%3Fx%3D1")


def test_back_and_edit(screen, number, other_number):
    screen.asks_code(number, "register")
    screen.types("12")
    screen.driver.back()
    screen.reads("Go back?", "You'll need to request a new verification code").is_sound("the question")
    screen.presses("Cancel", "#leave")
    assert screen.path == "/auth/verify" and boxes(screen) == "12"
    screen.find(".back").click()
    screen.reads("Go back?").presses("Go Back", "#leave").at("/auth/register")

    typed = other_number()
    screen.asks_code(typed, "register")
    screen.presses("Edit phone number").reads("Change number").is_sound("the sheet")
    field = screen.find("#new-contact")
    held = screen.find("#edit [data-phone]").get_attribute("data-code") + field.get_attribute("value").replace(" ", "")
    assert held == typed, "the input is kept, with one country code"
    field.clear()
    other = other_number()
    field.send_keys(other)
    screen.waits(lambda: screen.find("#edit button.main").is_enabled(), "another number")
    screen.find("#edit button.main").click()
    screen.waits(lambda: other[3:8] + " " + other[8:] in screen.text, "the other number")


def test_a_refusal_is_shown_inside_the_sheet(screen, number, other_number):
    screen.gateway.register(number)
    screen.asks_code(number)
    screen.presses("Edit phone number")
    field = screen.find("#new-contact")
    field.clear()
    field.send_keys(other_number())
    screen.waits(lambda: screen.find("#edit button.main").is_enabled(), "another number")
    screen.find("#edit button.main").click()
    screen.waits(
        lambda: "No account found" in screen.find("#edit").text and "Create Account" in screen.find("#edit").text,
        "the way on",
    )
    # Content outside an open dialog is inert, so a live region there is not announced.
    assert screen.js("return document.getElementById('edit').contains(document.getElementById('urgent'))")
    screen.is_sound("refused in the sheet")
    screen.presses("Cancel", "#edit")
    screen.waits(
        lambda: screen.js("return document.getElementById('urgent').parentElement === document.body"),
        "the live region in the page again",
    )


def test_no_support_no_link(driver, tmp_path, number):
    gateway = LocalGateway(tmp_path)
    gateway.edit("gateway.lua", lambda text: text.replace(', support = "mailto:help@example.com"', ""))
    try:
        screen = Screen(driver, gateway.start()).forget()
        screen.asks_code(number, "register")
        assert "Contact us" not in screen.text
    finally:
        gateway.stop()


def test_announcements_and_focus_order(screen, number):
    code = screen.asks_code(number, "register")
    screen.driver.refresh()
    screen.at("/auth/verify").hears(f"Verify Phone Number. We've sent a 6-digit code to +91 {number[3:8]} {number[8:]}")
    screen.listens()
    bad = wrong(code)
    screen.types(bad[0]).hears(f"{bad[0]}. 1 of 6 digits entered")
    screen.types(bad[1:]).hears("All 6 digits entered. Verifying…").hears("Error. Invalid code. Please try again.")
    said, fields = screen.spoken()
    assert "Error. Invalid code. Please try again." in said and fields == ["Enter verification code, 6 digits"], (
        said,
        fields,
    )
    screen.waits(lambda: state(screen) == "open", "the next try")
    screen.types("123456"[: 5 if bad != "123450" else 4])
    screen.js("document.querySelector('.back').focus()")
    order = []
    for _ in range(5):
        active = screen.driver.switch_to.active_element
        order.append(active.accessible_name)
        screen.types(Keys.TAB)
    # Resend and verify are disabled now and therefore skipped.
    assert order[:4] == ["Back", "Edit phone number", "Enter verification code, 6 digits", "Contact us"], order
    screen.waits(lambda: screen.find("#code"), "the field").clear()
    screen.find("#code").send_keys(code)
    screen.at("/profile-setup")


def test_by_keyboard_alone(screen, number):
    """A complete flow with its sheet and dialog, using only the keyboard."""
    active = lambda: screen.driver.switch_to.active_element
    screen.opens("/auth/register")
    screen.types(number[3:])
    screen.waits(lambda: screen.find("button.main").is_enabled(), "a number")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.types(Keys.ENTER)
    screen.at("/auth/verify")
    assert active().get_attribute("id") == "code"
    screen.types(Keys.SHIFT + Keys.TAB + Keys.NULL)
    assert active().accessible_name == "Edit phone number"
    screen.types(Keys.ENTER)
    screen.waits(lambda: active().get_attribute("id") == "new-contact", "the sheet's field")
    for _ in range(12):
        screen.types(Keys.TAB)
        assert screen.js(
            "return document.activeElement === document.body || document.getElementById('edit').contains(document.activeElement)"
        ), "kept inside"
    screen.types(Keys.ESCAPE)
    screen.waits(lambda: active().accessible_name == "Edit phone number", "where the sheet was opened")
    screen.types(Keys.SHIFT + Keys.TAB + Keys.NULL)
    assert active().accessible_name == "Back"
    ring = screen.js("return getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid", "the keyboard focus is visible"
    screen.types(Keys.ENTER)
    screen.reads("Go back?")
    screen.types(Keys.ESCAPE)
    screen.waits(lambda: not screen.all("dialog[open]") and active().accessible_name == "Back", "the page again")
    screen.types(Keys.TAB)
    screen.types(Keys.TAB)
    assert active().get_attribute("id") == "code"
    screen.types(
        wait_for(
            lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen and e["code"]), None),
            "a code",
        )
    )
    screen.at("/profile-setup").opens("/auth/pin?flow=pin_set")
    screen.types("482915").reads("Confirm passcode").types("482915").at("/home")


def test_calm_red_flash_instead_of_a_shake(screen, number):
    code = screen.looks(calm=True).asks_code(number, "register")
    screen.types(wrong(code)).reads("Invalid code")
    assert screen.js("return document.querySelector('.row').getAnimations().length") == 0
    assert screen.js("return document.querySelectorAll('.box')[1].getAnimations()[0].animationName") == "flash"


def test_large_text(screen, number):
    screen.looks((320, 800)).asks_code(number, "register")
    screen.js("document.documentElement.style.fontSize = '200%'")
    assert screen.js("return document.documentElement.scrollWidth") <= 320
    tops = screen.js(
        "return [...document.querySelectorAll('.box')].map(box => Math.round(box.getBoundingClientRect().top))"
    )
    assert len(set(tops)) <= 2


def test_events(screen, number):
    code = screen.asks_code(number, "register")
    screen.types(wrong(code)).reads("Invalid code")
    screen.waits(lambda: state(screen) == "open", "the next try", 6)
    screen.presses("Edit phone number").presses("Cancel", "#edit")
    screen.find("#code").send_keys(code)
    screen.at("/profile-setup")

    def told():
        lines = requests.get(f"{screen.gateway.admin}/events?limit=200", timeout=10).json()
        return {line["detail"]["name"]: line for line in lines if line.get("kind") == "client"}

    names = {
        "screen_view",
        "otp_digit_entered",
        "otp_auto_verify_triggered",
        "otp_verification_failed",
        "otp_verification_success",
        "edit_phone_tapped",
    }
    seen = wait_for(lambda: names <= set(told()) and told(), "the events")
    assert seen["otp_verification_success"]["detail"]["attempts"] == "2"
    assert number not in str(seen) and code not in str(seen)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(320, 720), (1280, 800)], ids=["phone", "laptop"])
def test_sizes_and_colours(screen, number, size, dark):
    code = screen.looks(size, dark).asks_code(number, "register")
    screen.is_sound("default")
    look = screen.js("""const box = document.querySelectorAll('.box')[3], style = getComputedStyle(box), button = document.querySelector('button.main');
      return [box.offsetWidth, box.offsetHeight, style.borderRadius, style.borderWidth, button.offsetHeight, getComputedStyle(document.body).backgroundColor]""")
    assert look == [
        48 if size[0] > 360 else 44,
        56,
        "12px",
        "2px",
        52,
        "rgb(30, 30, 30)" if dark else "rgb(255, 255, 255)",
    ], look
    screen.types(wrong(code)).reads("Invalid code")
    assert screen.js("return getComputedStyle(document.querySelector('button.main')).backgroundColor") != ""
    screen.is_sound("wrong")
