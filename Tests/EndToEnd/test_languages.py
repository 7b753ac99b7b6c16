"""The built-in languages and the drafts, one of them right-to-left: all pages are complete in each, and messages are in the user's language."""

import base64
import re

import pytest
import requests

from local_gateway import ROOT, LocalGateway, wait_for
from mail_server import MailServer
from screens import LAPTOP, PHONE, Screen, many, start, wrong

ALL = ["en", "hi", *sorted(file.stem for file in (ROOT / "Documentation/languages").glob("*.words"))]
# The scripts of languages that have their own; Latin letters in them are names.
SCRIPTS = {"hi": "ऀ-ॿ", "ar": "؀-ۿ", "bn": "ঀ-৿", "ta": "஀-௿", "te": "ఀ-౿"}
NAMES = {
    "Moongate",
    "Google",
    "SMS",
    "QR",
    "ABCDE",
    "FGH23",
    "OTP",
    "PIN",
    "Chrome",
    "Linux",
    "HTTP",
    "UTC",
    "application",
    "json",
    "example",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A gateway that offers all languages."""
    gateway = LocalGateway(tmp_path_factory.mktemp("world"))
    gateway.offers(*ALL)
    gateway.edit("policies/phone_otp.lua", many)
    yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A browser without scripts."""
    driver = start(tmp_path_factory.mktemp("plain"), scripts=False)
    yield driver
    driver.quit()


def overlaps(screen):
    """Texts, fields and buttons that overlap."""
    return screen.js("""
      const shown = [...document.querySelectorAll('main h1, main .subtitle, main label, main button, main a, main input, main .help, footer a, footer summary')]
        .filter(one => one.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !one.closest('.unseen, dialog, .pad, .boxes, .field, .splash, [inert]'));
      const found = [];
      for (const [at, one] of shown.entries()) for (const other of shown.slice(at + 1)) {
        // The eye lies in its field, on purpose.
        if (one.contains(other) || other.contains(one) || (one.closest('.eyed') && one.closest('.eyed') === other.closest('.eyed'))) continue;
        const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 2) found.push([one.outerHTML.slice(0, 90), other.outerHTML.slice(0, 90), Math.round(wide), Math.round(high)]);
      }
      return found""")


def is_whole(screen, tag, what):
    """No accessibility problem, no overlap, nothing truncated, and no English left in a language with its own
    script."""
    screen.is_sound(f"{tag} {what}")
    assert (
        screen.js("return document.documentElement.lang + ' ' + document.dir")
        == f"{tag} {'rtl' if tag == 'ar' else 'ltr'}"
    )
    assert overlaps(screen) == [], f"{tag} {what}"
    cut = screen.js("""return [...document.querySelectorAll('main button, main a.button')].filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
      .map(one => one.outerHTML.slice(0, 120))""")
    assert cut == [], f"{tag} {what}"
    if tag in SCRIPTS:
        said = screen.js("""
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), texts = [];
          while (walker.nextNode()) {
            const one = walker.currentNode.parentElement;
            if (one.checkVisibility() && !one.closest('.languages, bdi, body [dir=ltr], [dir=auto], time, script, style, template')) texts.push(walker.currentNode.data);
          }
          return texts.join('\\n')""")
        # Values inserted into sentences are names or decision references.
        english = [
            word
            for word in re.findall(r"[A-Za-z]{3,}", re.sub("\u2068[^\u2069]*\u2069|dc_\\S+", "", said))
            if word not in NAMES
        ]
        assert english == [], f"{tag} {what}: {english}\n{said}"
        assert re.search(f"[{SCRIPTS[tag]}]", said)


@pytest.mark.parametrize("tag", ALL[2:])
def test_every_page_is_whole(driver, world, number, tag):
    """At 320 px in dark mode and as a card, with a code, a refusal and the account's pages."""
    screen = Screen(driver, world).forget().looks(PHONE, dark=True)
    screen.opens(f"/auth/login?language={tag}")
    for size, dark in ((PHONE, True), (LAPTOP, False)):
        screen.looks(size, dark=dark)
        for path in ("/auth/login", "/auth/login?with=email", "/auth/register?with=email", "/auth/error?code=denied"):
            screen.opens(path)
            is_whole(screen, tag, f"{path} {size}")
    screen.looks(PHONE)
    code = screen.asks_code(number, "register")
    is_whole(screen, tag, "code")
    screen.types(wrong(code)).waits(lambda: screen.all(".problem"), "the refusal")
    is_whole(screen, tag, "wrong code")
    order = screen.js("return [...document.querySelectorAll('.box')].map(box => box.getBoundingClientRect().left)")
    assert order == sorted(order) and len(order) == 6, "digits run from left to right in every language"
    screen.waits(lambda: screen.find("form[data-form=code]").get_attribute("data-state") == "open", "the next try")
    screen.types(code).waits(lambda: screen.path == "/profile-setup", "the end")
    for path in (
        "/auth/account",
        "/auth/account/delete",
        "/auth/pin?flow=pin_set",
        "/auth/verify?flow=change_phone",
        "/auth/verify?flow=change_email",
        "/auth/step?flow=totp_set",
        "/auth/logout",
    ):
        screen.opens(path)
        is_whole(screen, tag, path)
    screen.opens("/auth/verify?flow=change_phone").find(".country").click()
    screen.waits(lambda: screen.all("dialog[open] [role=option]"), "the countries")
    screen.is_sound(f"{tag} countries")
    if tag in SCRIPTS:
        assert re.search(f"[{SCRIPTS[tag]}]", screen.says("[role=option] .name")), (
            "countries have their names in the language"
        )
    assert screen.errors() == []


def test_metrics_run_from_left_to_right_in_arabic(driver, world, number):
    screen = Screen(driver, world).forget().looks(PHONE).opens("/auth/login?language=ar")
    # The number field as it is read: country code, then number.
    country, field = (
        screen.js("return document.querySelector(arguments[0]).getBoundingClientRect().left", one)
        for one in (".country", "#phone")
    )
    assert country < field
    # Back links point to the right.
    code = screen.asks_code(number, "register")
    back = screen.find(".back")
    assert back.rect["x"] > PHONE[0] / 2 and "matrix(-1" in screen.js(
        "return getComputedStyle(arguments[0].querySelector('svg')).transform", back
    )
    sent_to = screen.find(".number")
    assert screen.js("return getComputedStyle(arguments[0]).direction", sent_to) == "ltr" and sent_to.text.startswith(
        "+91"
    )
    screen.types(code).waits(lambda: screen.path == "/profile-setup", "the end")
    screen.opens("/auth/pin?flow=pin_set").waits(lambda: screen.all(".pad button"), "the pad")
    one, two, three = (
        next(key for key in screen.all(".pad button") if key.get_attribute("textContent") == digit).rect["x"]
        for digit in "123"
    )
    assert one < two < three
    # The name of a device, a time and a number keep their order inside an Arabic line.
    screen.opens("/auth/account")
    assert screen.says(".places bdi")
    assert screen.js("return getComputedStyle(document.querySelector('.rows .value')).unicodeBidi") == "isolate"


def test_a_name_of_another_direction_keeps_to_itself(driver, world, number):
    """An Arabic name on an English page, and an English one on an Arabic page, do not change the direction of their
    surroundings."""
    screen = Screen(driver, world).forget().looks(PHONE)
    screen.opens("/auth/register?with=email&language=en").fills("first_name", "عائشة").fills(
        "last_name", "(الزهراء) Rao"
    )
    first = screen.find("#first_name")
    assert screen.js("return getComputedStyle(arguments[0]).direction", first) == "rtl"
    choose(screen, "العربية", "ar")
    assert screen.find("#first_name").get_attribute("value") == "عائشة"
    screen.is_sound("an Arabic name in Arabic")
    token = world.register(number)["session"]["token"]
    screen.opens("/auth/error?code=not_found")
    screen.driver.add_cookie({"name": "moongate", "value": token, "path": "/", "httpOnly": True, "sameSite": "Lax"})
    screen.opens("/auth/account?language=en")
    values = screen.js("return [...document.querySelectorAll('.rows .value')].map(one => one.dir)")
    assert values and set(values) == {"auto"}


def choose(screen, name, tag):
    """Chooses a language in the menu at the foot of the page."""
    screen.find(".languages summary").click()
    screen.waits(lambda: screen.find(".languages details").get_attribute("open") is not None, "the menu")
    screen.presses(name, ".languages").waits(lambda: screen.js("return document.documentElement.lang") == tag, name)
    return screen


@pytest.mark.parametrize("scripted", [True, False], ids=["scripts", "no scripts"])
def test_the_menu_of_languages(driver, plain, world, scripted):
    """One line at the foot with all languages by their own names, with and without scripts; input is kept."""
    screen = Screen(driver if scripted else plain, world).forget().looks(PHONE)
    screen.opens("/auth/register?with=email&language=en").fills("first_name", "Asha")
    summary = screen.find(".languages summary")
    assert "English" in summary.text
    summary.click()
    screen.waits(lambda: screen.find(".languages details > div").is_displayed(), "the menu")
    names = [one.text.strip() for one in screen.all(".languages .link") if one.tag_name != "summary"]
    assert names == [
        "English",
        "हिन्दी",
        "العربية",
        "বাংলা",
        "Deutsch",
        "Español",
        "Français",
        "Português",
        "தமிழ்",
        "తెలుగు",
    ]
    assert [one.get_attribute("lang") for one in screen.all(".languages .link") if one.tag_name != "summary"] == ALL
    box = screen.js(
        "const box = document.querySelector('.languages details > div').getBoundingClientRect(); return [box.left, box.right, innerWidth]"
    )
    assert box[0] >= 0 and box[1] <= box[2], box
    screen.is_sound("the menu")
    screen.presses("العربية", ".languages").waits(lambda: screen.js("return document.dir") == "rtl", "Arabic")
    assert screen.find("#first_name").get_attribute("value") == "Asha" and "Asha" not in screen.driver.current_url
    assert "العربية" in screen.says(".languages summary")
    summary = screen.find(".languages summary")
    summary.click()
    screen.waits(lambda: screen.find(".languages details > div").is_displayed(), "the menu in Arabic")
    box = screen.js(
        "const box = document.querySelector('.languages details > div').getBoundingClientRect(); return [box.left, box.right, innerWidth]"
    )
    assert box[0] >= 0 and box[1] <= box[2], box
    screen.is_sound("the menu in Arabic")
    assert screen.says(".languages [aria-current]") == "العربية"


def test_the_first_language_is_for_everyone_else(tmp_path):
    gateway = LocalGateway(tmp_path)
    gateway.offers("de", "fr")
    try:
        gateway.start()
        page = requests.get(
            gateway.url + "/auth/login", headers={"Accept": "text/html", "Accept-Language": "ja"}, timeout=10
        )
        assert (
            page.headers["Content-Language"] == "de"
            and "Willkommen zurück!" in page.text
            and "<details" not in page.text
        )
        page = requests.get(
            gateway.url + "/auth/login", headers={"Accept": "text/html", "Accept-Language": "en, fr;q=0.5"}, timeout=10
        )
        assert page.headers["Content-Language"] == "fr", "English is not offered"
    finally:
        gateway.stop()


# Messages.


def asks(gateway, number, language, flow="login", **headers):
    """Requests a code for the number in a language. Returns the flow and the newest message."""
    wanted = {"headers": {"Accept-Language": language, **headers}}
    seen = {entry["id"] for entry in gateway.outbox()}
    flow = gateway.api("POST", "/flows", {"flow": flow}, **wanted).json()["id"]
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp", "phone": number}, **wanted)
    assert begun.status_code == 200, begun.text
    sent = wait_for(
        lambda: next((entry for entry in gateway.outbox() if entry["id"] not in seen and entry["code"]), None), "the code"
    )
    return flow, sent, wanted


def test_messages_are_in_the_language_of_the_person(world, number):
    # Without an account, the language of the request applies.
    flow, sent, wanted = asks(world, number, "xx, ar-EG;q=0.9, en;q=0.1", "register")
    assert sent["text"].startswith(sent["code"] + " هو رمز التحقق") and "{" not in sent["text"]
    assert sent["text"].splitlines()[-1] == f"@localhost #{sent['code']}", "the line read by phones is unchanged"
    done = world.api("POST", f"/flows/{flow}/submit", {"code": sent["code"]}, **wanted)
    assert done.status_code == 200 and done.json()["account"]["is_new_user"], done.text
    device = done.json()["device_token"]

    # Attack: an attacker signs in with a language that the owner cannot read.
    seen = {entry["id"] for entry in world.outbox()}
    agent = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 <script>alert(1)</script>"
    flow, sent, wanted = asks(world, number, "de", **{"User-Agent": agent})
    assert "رمز التحقق" in sent["text"], "the owner's language, not the one that was asked for"
    assert world.api("POST", f"/flows/{flow}/submit", {"code": sent["code"]}, **wanted).status_code == 200
    notice = wait_for(
        lambda: next((e for e in world.outbox() if e["id"] not in seen and not e["code"]), None), "the notice"
    )
    assert "سجّل أحدهم الدخول إلى حسابك من جهاز جديد" in notice["text"]
    assert (
        "Chrome على Android" in notice["text"].replace("\u2068", "").replace("\u2069", "")
        and "script" not in notice["text"]
    )
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", notice["text"]) and "http" not in notice["text"]

    # A trusted device can change the language.
    flow, sent, wanted = asks(world, number, "de", **{"Moongate-Device": device})
    assert "ist Ihr Bestätigungscode für Moongate" in sent["text"]
    assert world.api("POST", f"/flows/{flow}/submit", {"code": sent["code"]}, **wanted).status_code == 200
    seen = {entry["id"] for entry in world.outbox()}
    flow, sent, wanted = asks(world, number, "ar")
    assert "ist Ihr Bestätigungscode für Moongate" in sent["text"], "German is offered from now on"
    data = world.api("GET", "/account/export", headers={"Authorization": f"Bearer {done.json()['session']['token']}"})
    assert data.status_code != 200 or data.json()["account"]["language"] == "de"


def pixels(screen, png, points):
    """The colors of points in a picture."""
    return screen.driver.execute_async_script(
        """
      const [png, points, done] = arguments, image = new Image();
      image.onload = () => {
        const canvas = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height});
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        done(points.map(([x, y]) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3)));
      };
      image.src = 'data:image/png;base64,' + png""",
        base64.b64encode(png).decode(),
        points,
    )


@pytest.mark.parametrize("tag,direction", [("en", "ltr"), ("ar", "rtl")])
def test_mail_looks_like_the_service(driver, tmp_path, number, tag, direction):
    """A card in the brand's color, light and dark, narrow and wide, with the code in large type; and the same text
    without HTML."""
    gateway = LocalGateway(tmp_path)
    gateway.offers(*ALL)
    gateway.edit(
        "gateway.lua",
        lambda text: re.sub(r"brand = \{.*\}", 'brand = { name = "Umbrella & Söhne", primary = "#b01e68" }', text),
    )
    with MailServer(tmp_path, None, auth=False) as server:
        gateway.edit(
            "gateway.lua",
            lambda text: text.replace(
                "email_code = { mail = outbox() }",
                f'email_code = {{ mail = smtp {{ url = "{server.url}", from = "no-reply@example.com" }} }}',
            ),
        )
        try:
            gateway.start()
            token = gateway.register(number)["session"]["token"]
            own = {"headers": {"Authorization": f"Bearer {token}", "Accept-Language": tag}}
            # An account that was registered without a language has none yet.
            flow = gateway.api("POST", "/flows", {"flow": "change_email"}, **own).json()["id"]
            begun = gateway.api(
                "POST",
                f"/flows/{flow}/begin",
                {"provider": "email_code", "email": f"mail{number[-4:]}@example.com"},
                **own,
            )
            assert begun.status_code == 200, begun.text
            _, mail = server.mail(1)
        finally:
            gateway.stop()
    text, page = (mail.get_body((kind,)).get_content() for kind in ("plain", "html"))
    code = re.search(r"\b\d{6}\b", text).group()
    assert f'<html lang="{tag}" dir="{direction}">' in page
    words = lambda said: " ".join(said.split())
    for line in re.split(r"\r?\n\r?\n", text):
        assert words(line).replace("&", "&amp;") in words(re.sub(r"<br>|</?strong[^>]*>", "", page)), line
    assert "http" not in page and "<img" not in page and "url(" not in page, "opening the mail loads nothing"
    file = tmp_path / "mail.html"
    file.write_text(page)
    screen = Screen(driver, gateway)
    grounds = {}
    for dark in (False, True):
        for size in (PHONE, LAPTOP):
            screen.looks(size, dark=dark).driver.get(file.as_uri())
            screen.is_sound(f"mail {tag} {size} {'dark' if dark else 'light'}")
            strong = screen.find("strong.code")
            assert (
                strong.text == code
                and float(screen.js("return parseFloat(getComputedStyle(arguments[0]).fontSize)", strong)) >= 28
            )
            card = screen.find(".card").rect
            picture = screen.driver.get_screenshot_as_png()
            (tmp_path / f"mail-{tag}-{size[0]}-{'dark' if dark else 'light'}.png").write_bytes(picture)
            middle = card["x"] + card["width"] / 2
            ground, edge, paper = pixels(screen, picture, [[4, 4], [middle, card["y"] + 2], [middle, card["y"] + 12]])
            grounds[dark] = (ground, paper)
            assert edge == [0xB0, 0x1E, 0x68], "the brand's colour"
    assert min(grounds[False][0] + grounds[False][1]) > 230 and max(grounds[True][0] + grounds[True][1]) < 60, grounds
