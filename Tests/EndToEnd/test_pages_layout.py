"""Layout of the pages: no shifts between states, large text, small windows, an open keyboard, and forced colors."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from screens import LAPTOP, wrong

RED, GREEN = "rgb(234, 84, 85)", "rgb(40, 199, 111)"
SMALL = (320, 568)


def calm(screen, size=(390, 844), dark=False):
    """Disables animations, which move elements."""
    return screen.looks(size, dark, calm=True)


def top(screen, selector="button.main"):
    return screen.js("return document.querySelector(arguments[0]).getBoundingClientRect().top", selector)


def scrolls(screen):
    return screen.js("return document.documentElement.scrollHeight - innerHeight")


def stay(screen, waits):
    """Stops timers of these lengths, so that a transient state can be examined."""
    screen.js(
        "window.setTimeout = (real => (work, wait, ...more) => arguments[0].includes(wait) ? 0 : real(work, wait, ...more))(setTimeout)",
        waits,
    )


def test_toasts_are_on_top(screen, number):
    calm(screen).asks_code(number, "register")
    screen.offline().types("123456").reads("Unable to verify. Check your connection.", "Retry")
    # The window of a phone with an open keyboard.
    for height in (844, 544):
        calm(screen, (390, height))
        box = screen.js("return document.querySelector('.toast').getBoundingClientRect().toJSON()")
        assert 0 <= box["top"] < 100 and box["bottom"] < 200, box
    assert screen.js("return getComputedStyle(document.querySelector('.toast')).backgroundColor") == "rgb(179, 40, 42)"
    assert screen.all(".toast svg"), "the icon"
    screen.is_sound("a toast").offline(False)


def test_links_are_underlined_where_they_are_pointed_at_or_reached(screen, number):
    line = "return getComputedStyle(arguments[0]).textDecorationLine"
    screen.asks_code(number, "register")
    edit = screen.find("[data-edit]")
    assert screen.js(line, edit) == "none"
    ActionChains(screen.driver).move_to_element(edit).perform()
    assert screen.js(line, edit) == "underline", "hover"
    ActionChains(screen.driver).move_to_element(screen.find("h1")).perform()
    assert screen.js(line, edit) == "none"
    # With the keyboard, because pointer focus is not drawn.
    screen.types(Keys.SHIFT + Keys.TAB + Keys.NULL)
    reached = screen.driver.switch_to.active_element
    assert "link" in reached.get_attribute("class").split() and screen.js(line, reached) == "underline", "focus"


def test_nothing_moves_and_every_box_is_red(screen, number):
    code = calm(screen).asks_code(number, "register")
    before = top(screen), top(screen, "[data-slot=timer]")
    for said in ("4 tries left", "3 tries left", "2 tries left", "1 try left", "Too many attempts"):
        screen.find("#code").send_keys(wrong(code))
        screen.reads(said)
        # During a lock, a link replaces the button.
        button = "[data-slot=instead] a" if said.startswith("Too many") else "button.main"
        assert (top(screen, button), top(screen, "[data-slot=timer]")) == before, said
        if said == "4 tries left":
            borders = "return [...document.querySelectorAll('.box')].map(box => getComputedStyle(box).borderColor)"
            screen.finishes().waits(
                lambda: set(screen.js(borders)) == {RED}, "six red boxes, the current one among them", 2
            )


def test_boxes_turn_green_with_a_check(screen, number):
    code = screen.looks((390, 844)).asks_code(number, "register")
    stay(screen, [400])
    screen.types(code).reads("Verified ✓")
    assert len(screen.all(".box svg path")) == 6
    # Check the style, which remains after the animation.
    turns = screen.js(
        "return [...document.querySelectorAll('.box path')].map(path => getComputedStyle(path)).map(style => [style.animationName, style.animationDelay])"
    )
    assert turns == [["draw", f"{delay / 1000:g}s"] for delay in (0, 40, 80, 120, 160, 200)], turns
    borders = "return [...document.querySelectorAll('.box')].map(box => getComputedStyle(box).borderColor)"
    screen.finishes().waits(lambda: set(screen.js(borders)) == {GREEN}, "six green boxes", 2)


def test_a_button_at_work_keeps_its_colour(screen, number):
    code = calm(screen).asks_code(number, "register")
    colour = "return getComputedStyle(document.querySelector('button.main')).backgroundColor"
    screen.slow(1500).types(wrong(code))
    screen.waits(lambda: screen.all("button.main .spinner"), "work in progress")
    assert screen.js(colour) == "rgb(13, 115, 119)"
    screen.slow(0).reads("Invalid code")


def test_sizes(screen, number):
    calm(screen).asks_code(number, "register")
    look = screen.js("""const heading = getComputedStyle(document.querySelector('h1')), box = document.querySelector('.box').getBoundingClientRect();
      return [document.querySelector('.emblem svg').getBoundingClientRect().width, heading.fontWeight, heading.fontSize, box.width]""")
    assert look == [64, "600", "26px", 48], look


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_phone_field_is_one(screen, dark):
    calm(screen, dark=dark).opens("/auth/login")
    before = top(screen)
    ring = screen.js("return getComputedStyle(document.querySelector('.field')).boxShadow")
    assert (
        ring != "none" and screen.js("return getComputedStyle(document.querySelector('#phone')).boxShadow") == "none"
    ), "one ring for all of it"
    screen.find("#phone").send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.reads("Please enter a valid 10-digit mobile number")
    assert top(screen) == before, "Send does not move"
    assert screen.js("return getComputedStyle(document.querySelector('.field')).borderColor") == RED
    assert screen.all("[data-slot=problem] svg"), "the icon"
    assert "For a number in another country" not in screen.text, "the error replaces the help text"
    screen.is_sound("a wrong number")


def test_a_wrong_field_is_red_while_it_has_the_focus(screen):
    calm(screen).opens("/auth/login?with=email").fills("email", "asha@example.org").fills("password", "not this one")
    before = top(screen)
    screen.find("button.main").click()
    screen.reads("Incorrect email or password").waits(
        lambda: screen.driver.switch_to.active_element.get_attribute("id") == "password", "the focus"
    )
    assert screen.js("return getComputedStyle(document.activeElement).outlineColor") == RED
    assert top(screen) == before, "Sign in does not move"


def test_text_at_twice_its_size(screen, number):
    calm(screen).opens("/auth/login")
    screen.js("document.documentElement.style.fontSize = '200%'")
    screen.find("#phone").send_keys("9876543210")
    screen.waits(lambda: screen.find("#phone").get_attribute("value") == "98765 43210", "the spaces")
    room = screen.js("""const field = document.querySelector('#phone'), style = getComputedStyle(field), canvas = document.createElement('canvas').getContext('2d');
      canvas.font = style.font; return [field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight), canvas.measureText(field.value).width]""")
    assert room[0] >= room[1], room
    screen.belongs_to(number).opens("/auth/pin?flow=pin_set")
    screen.js("document.documentElement.style.fontSize = '200%'")
    sides = screen.js(
        "return [...document.querySelectorAll('.pad button, .dots')].filter(part => part.checkVisibility())"
        ".map(part => part.getBoundingClientRect()).flatMap(box => [box.left, box.right])"
    )
    assert sides and min(sides) >= 0 and max(sides) <= 390, sides


def test_the_whole_pad_in_a_small_window(screen, number):
    screen.belongs_to(number)
    for path in ("/auth/pin?flow=pin_set", "/auth/pin?return_to=/home"):
        calm(screen, SMALL).opens(path)
        bottom = screen.js(
            "return Math.max(...[...document.querySelectorAll('.pad button')].map(key => key.getBoundingClientRect().bottom))"
        )
        assert bottom <= SMALL[1], (path, bottom)
        screen.is_sound(path)
        if "pin_set" in path:
            screen.keys("482915").reads("Confirm passcode").keys("482915").at("/home")
    screen.presses("Forgot Passcode?").presses("Send Reset Code", "dialog[open]").reads(
        "Enter reset code from SMS"
    ).settles()
    bottom = screen.js(
        "return Math.max(...[...document.querySelectorAll('.pad button')].map(key => key.getBoundingClientRect().bottom))"
    )
    assert bottom <= SMALL[1], ("the code of a reset", bottom)


def test_keys_stay_when_it_is_locked(screen, number):
    screen.belongs_to(number).opens("/auth/pin?flow=pin_set")
    screen.keys("482915").reads("Confirm passcode").keys("482915").at("/home")
    calm(screen).opens("/auth/pin?return_to=/home")
    before = top(screen, ".pad")
    for said in ("4 tries", "3 tries", "2 tries", "1 try", "Too many attempts"):
        screen.keys("111222").reads(said)
        assert top(screen, ".pad") == before, said


def test_keys_stay_where_they_are(screen, number):
    calm(screen.belongs_to(number)).opens("/auth/pin?flow=pin_set")
    before = top(screen, ".pad")
    screen.keys("111111").reads("Confirm passcode").slow(1200).keys("111111")
    screen.waits(lambda: screen.all(".pad .spinner"), "work in progress")
    assert top(screen, ".pad") == before and screen.js("return document.querySelector('.pad').inert")
    screen.slow(0).reads("too easy to guess")
    assert top(screen, ".pad") == before and not screen.js("return document.querySelector('.pad').inert")


def test_the_readers_own_colours(screen, number):
    code = calm(screen).asks_code(number, "register")
    screen.looks((390, 844), forced=True)
    screen.types(wrong(code)[:3])
    assert screen.js("return matchMedia('(forced-colors: active)').matches")
    assert screen.js("return getComputedStyle(document.querySelector('#code')).color") == "rgba(0, 0, 0, 0)", (
        "the digits stand in the boxes alone"
    )
    edge = screen.js(
        "const style = getComputedStyle(document.querySelector('button.main')); return [style.borderTopStyle, style.borderTopWidth]"
    )
    assert edge == ["solid", "1px"], edge
    rings = screen.js("return [...document.querySelectorAll('.box')].map(box => getComputedStyle(box).outlineStyle)")
    assert rings == ["none", "none", "none", "solid", "none", "none"], "where one is"


def test_a_card_where_there_is_room(screen, number, other_number):
    for path in (
        "/auth/login",
        "/auth/login?with=email",
        "/auth/login?with=code",
        "/auth/login?with=reset",
        "/auth/register",
        "/auth/register?with=email",
        "/auth/logout",
        "/auth/error?code=denied",
    ):
        calm(screen, LAPTOP).opens(path)
        card = screen.js(
            "const style = getComputedStyle(document.querySelector('main')); return [document.querySelector('main').offsetWidth, style.borderRadius]"
        )
        assert card == [440, "20px"] and scrolls(screen) <= 0, (path, card, scrolls(screen))
        calm(screen).opens(path)
        card = screen.js(
            "const style = getComputedStyle(document.querySelector('main')); return [document.querySelector('main').offsetWidth, style.borderRadius]"
        )
        assert card == [390, "0px"] and scrolls(screen) <= 0, (path, card, scrolls(screen))
    calm(screen, LAPTOP).asks_code(number, "register")
    assert scrolls(screen) <= 0
    screen.belongs_to(other_number()).opens("/auth/account")
    assert screen.js("return getComputedStyle(document.querySelector('main')).borderRadius") == "0px", (
        "the account is a page of its own kind"
    )
    screen.opens("/auth/step?flow=totp_set").reads("An app on your phone shows a new code every 30 seconds.").presses(
        "Set up"
    ).waits(lambda: screen.all(".qr"), "the QR code")
    for size in (LAPTOP, (390, 844)):
        assert scrolls(calm(screen, size)) <= 0, ("the QR code", size)
    screen.opens("/auth/pin?flow=pin_set").keys("482915").reads("Confirm passcode").keys("482915").at("/home").opens(
        "/auth/pin?return_to=/home"
    ).keys("111222").reads("Incorrect")
    for size in (LAPTOP, (390, 844)):
        assert scrolls(calm(screen, size)) <= 0, ("the passcode", size)


def test_large_text_stays_within_questions_and_lists(screen, number):
    """With text at twice its size, dialogs show their answers, words are not broken, and no link covers a label."""

    def outside(selector):
        screen.js("document.documentElement.style.fontSize = '200%'")
        return screen.js(
            """const edge = document.querySelector('dialog[open]').getBoundingClientRect();
          return [...document.querySelectorAll(arguments[0])].filter((one) => one.getBoundingClientRect().right > edge.right + 1 || one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)""",
            selector,
        )

    calm(screen).opens("/auth/login").find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    assert outside("dialog[open] .code") == []
    screen.js("document.documentElement.style.fontSize = ''")
    screen.presses("Cancel", "dialog[open]").fills("phone", number).waits(
        lambda: screen.find("main button.main").is_enabled(), "a number that can be sent"
    )
    screen.presses("Send OTP").reads("No Account Found")
    assert outside("dialog[open] .choices > *") == []
    screen.opens("/auth/login?with=email").js("document.documentElement.style.fontSize = '200%'")
    label, link, field = (
        screen.js(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left, box.right, box.top, box.bottom]",
            one,
        )
        for one in ("label[for=password]", ".secret-field > a", "#password")
    )
    assert link[3] <= field[2] + 1, "off its field"
    assert screen.js(
        "const label = document.querySelector('label[for=password]'); return label.scrollWidth <= label.clientWidth && label.getClientRects().length === 1"
    ), label


# A word of a title, or a time, that is split over two lines.
BROKEN = """return [...document.querySelectorAll(arguments[0])].flatMap(element => {
  const text = element.firstChild.data;
  return [...text.matchAll(/[^ ]+/g)].filter(({ 0: word, index }) => {
    const range = document.createRange();
    range.setStart(element.firstChild, index);
    range.setEnd(element.firstChild, index + word.length);
    return new Set([...range.getClientRects()].map(box => box.top)).size > 1;
  }).map(found => found[0])
})"""


@pytest.mark.parametrize("size", [(390, 844), SMALL], ids=["390", "320"])
def test_large_text_breaks_no_word_of_a_title_and_no_date(screen, number, size):
    calm(screen.belongs_to(number), size)
    for path in (
        "/auth/step?flow=totp_set",
        "/auth/account/sign-out",
        "/auth/login?with=reset",
        "/auth/account",
        "/auth/error?code=upstream_unavailable",
    ):
        screen.opens(path).js("document.documentElement.style.fontSize = '200%'")
        assert screen.js(BROKEN, "h1, time") == [], path
        assert screen.js("return document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_large_text_keeps_the_buttons_of_a_toast_in_it(screen, number):
    calm(screen).asks_code(number, "register")
    screen.offline().types("123456").reads("Unable to verify. Check your connection.", "Retry")
    for size in ((390, 844), SMALL):
        calm(screen, size).js("document.documentElement.style.fontSize = '200%'")
        outside = screen.js("""const edge = document.querySelector('.toast').getBoundingClientRect();
          return [...document.querySelectorAll('.toast > *')].map(part => part.getBoundingClientRect()).filter(box => box.right > edge.right || box.left < edge.left || box.bottom > edge.bottom)""")
        assert outside == [], size
    screen.offline(False)


@pytest.mark.parametrize("drawn", [False, True], ids=["letters", "flags"])
def test_a_country_has_its_flag_or_its_letters(screen, drawn):
    """On systems without flags, empty boxes would be shown."""
    screen.opens("/auth/login")
    # The tests' fonts have no flags; with flags, the pixels have colors.
    screen.js(
        "CanvasRenderingContext2D.prototype.getImageData = () => ({ data: [0, 0, 0, 0, ...(arguments[0] ? [200, 80, 0, 255] : [9, 9, 9, 255])] })",
        drawn,
    )
    screen.find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    sign = screen.find("[role=option] .flag")
    assert (
        sign.get_attribute("data-flag") == ("🇮🇳" if drawn else "IN")
        and ("letters" in sign.get_attribute("class")) != drawn
    )
    if not drawn:
        screen.is_sound("countries with letters")


def test_a_long_name_breaks_no_link(screen, number):
    screen.belongs_to(number).opens("/auth/account").find("summary").click()
    screen.fills("first_name", "Ravi").fills("last_name", "Iyer-Venkataraghavan Subramaniam").presses(
        "Save name"
    ).reads("Name changed.")
    for size in ((320, 720), (390, 844), LAPTOP):
        high = calm(screen, size).js(
            "return document.querySelector('.entry summary .link').getBoundingClientRect().height"
        )
        assert high < 30, (size, high)


def test_a_phones_keyboard_covers_no_sheet(screen):
    calm(screen).opens("/auth/login")
    assert "interactive-widget=resizes-content" in screen.find("meta[name=viewport]").get_attribute("content")
    screen.find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    box = "return document.querySelector('dialog[open]').getBoundingClientRect().toJSON()"
    height = screen.js(box)["height"]
    screen.types("germ")
    assert screen.js(box)["height"] == height, "same height with one country as with all"
    # Browsers that shrink the page for the keyboard, and those that overlay it.
    calm(screen, (390, 544))
    assert 0 <= screen.js(box)["top"] and screen.js(box)["bottom"] <= 544
    calm(screen)
    screen.js(
        "Object.defineProperty(visualViewport, 'height', {value: 544}); visualViewport.dispatchEvent(new Event('resize'))"
    )
    assert 0 <= screen.js(box)["top"] and screen.js(box)["bottom"] <= 544
