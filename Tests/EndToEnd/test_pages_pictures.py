"""Compares the look of a dozen states with the last approved one: a picture is averaged into squares of 15 px, whose
colors are stored as hexadecimal digits in `pictures/`. Small rendering differences are within the tolerance; a
button with another color, size or position is not.

After an intended change: run `pytest Tests/EndToEnd/test_pages_pictures.py --renew-pictures`, review the pictures in
.build-e2e/pictures, and commit the files.
"""

import base64
import pathlib

import pytest

from screens import LAPTOP, wrong

FOLDER = pathlib.Path(__file__).resolve().parent / "pictures"
SEEN = pathlib.Path(__file__).resolve().parent.parent.parent / ".build-e2e" / "pictures"
SQUARE = 15
# The allowed difference of a square, of sixteen levels, and the allowed percentage of squares beyond it.
LEVELS, SHARE = 1, 1.0
# Only fonts that every test machine has, and nothing that moves, blinks or shows the time.
SAME = """
  * { font-family: "Noto Sans", "Noto Sans Devanagari", "Noto Sans Arabic" !important; caret-color: transparent !important; }
  time, .timer, .spinner, .place strong { visibility: hidden !important; }
"""
AVERAGE = """
  const [data, square, done] = arguments;
  const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
  createImageBitmap(new Blob([bytes], { type: 'image/png' })).then(picture => {
    const canvas = new OffscreenCanvas(picture.width, picture.height), pen = canvas.getContext('2d');
    pen.drawImage(picture, 0, 0);
    const lines = [];
    for (let top = 0; top < picture.height; top += square) {
      let line = '';
      for (let left = 0; left < picture.width; left += square) {
        const { data } = pen.getImageData(left, top, Math.min(square, picture.width - left), Math.min(square, picture.height - top));
        for (let channel = 0; channel < 3; channel += 1) {
          let sum = 0;
          for (let at = channel; at < data.length; at += 4) sum += data[at];
          line += Math.min(15, Math.round(sum / (data.length / 4) / 17)).toString(16);
        }
      }
      lines.push(line);
    }
    done(lines);
  });
"""


def fingerprint(screen, more=""):
    """The squares of the page, line by line, and the picture."""
    screen.js(
        "const sheet = new CSSStyleSheet(); sheet.replaceSync(arguments[0]); document.adoptedStyleSheets = [sheet]",
        SAME + more,
    )
    screen.finishes().js("scrollTo(0, 0)")
    picture = screen.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    return screen.driver.execute_async_script(AVERAGE, picture, SQUARE), picture


def differences(one, other):
    """The percentage of squares beyond the tolerance; 100 if the sizes differ."""
    if [len(line) for line in one] != [len(line) for line in other]:
        return 100.0
    squares = [(a[at : at + 3], b[at : at + 3]) for a, b in zip(one, other) for at in range(0, len(a), 3)]
    far = [1 for a, b in squares if any(abs(int(x, 16) - int(y, 16)) > LEVELS for x, y in zip(a, b))]
    return 100 * len(far) / len(squares)


def login(screen, number):
    screen.opens("/auth/login")


def login_invalid(screen, number):
    screen.opens("/auth/login").find("#phone").send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.reads("valid 10-digit")


def by_email(screen, number):
    screen.opens("/auth/login?with=email")


def register(screen, number):
    screen.opens("/auth/register?with=email")


def code(screen, number):
    screen.asks_code(number, "register")


def code_wrong(screen, number):
    sent = screen.asks_code(number, "register")
    # Keep the message visible.
    screen.js(
        "window.setTimeout = (real => (work, wait, ...more) => wait === 3000 ? 0 : real(work, wait, ...more))(setTimeout)"
    )
    screen.find("#code").send_keys(wrong(sent))
    screen.reads("Invalid code")


def passcode(screen, number):
    screen.belongs_to(number).opens("/auth/pin?flow=pin_set").keys("482")


def account(screen, number):
    screen.belongs_to(number).opens("/auth/account")


def refused(screen, number):
    screen.opens("/auth/error?code=denied")


def hindi(screen, number):
    screen.opens("/auth/login?language=hi")


def countries(screen, number):
    screen.opens("/auth/login").find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")


PHONE, DARK, WIDE = (
    {"size": (390, 844), "calm": True},
    {"size": (390, 844), "calm": True, "dark": True},
    {"size": LAPTOP, "calm": True},
)
STATES = {
    "login": (login, PHONE),
    "login-dark": (login, DARK),
    "login-laptop": (login, WIDE),
    "login-forced": (login, {**PHONE, "forced": True}),
    "login-invalid": (login_invalid, PHONE),
    "login-email": (by_email, PHONE),
    "register-email": (register, PHONE),
    "code": (code, PHONE),
    "code-dark": (code, DARK),
    "code-wrong": (code_wrong, PHONE),
    "passcode": (passcode, PHONE),
    "account": (account, PHONE),
    "error": (refused, PHONE),
    "login-hi": (hindi, PHONE),
    "countries": (countries, PHONE),
}


@pytest.mark.parametrize("name, look", [(name, look) for name, (_, look) in STATES.items()], ids=STATES)
def test_it_looks_as_it_did(screen, name, request):
    # The same digits in every picture.
    STATES[name][0](screen, f"+91987654{list(STATES).index(name):04}")
    lines, picture = fingerprint(screen)
    SEEN.mkdir(parents=True, exist_ok=True)
    (SEEN / f"{name}.png").write_bytes(base64.b64decode(picture))
    file = FOLDER / f"{name}.txt"
    if request.config.getoption("--renew-pictures"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
    share = differences(file.read_text().split(), lines)
    assert share <= SHARE, (
        f"{name}: {share:.1f} of 100 squares are not as they were; look at {SEEN / name}.png. Where it is meant: --renew-pictures"
    )


@pytest.mark.parametrize("look", [PHONE], ids=["phone"])
@pytest.mark.parametrize(
    "change",
    [
        "main button.main { background: #6a3fb5 !important }",
        "main button.main { margin-top: 3rem !important }",
        "main h1 { visibility: hidden }",
        "main .field { border-radius: 0; border: 4px solid }",
        "main > form { padding: 0 1rem }",
        "html { font-size: 110% }",
        "main .or { display: none }",
    ],
)
def test_a_change_is_seen(screen, change):
    """Changes that the tolerance must not hide."""
    screen.opens("/auth/login")
    before, _ = fingerprint(screen)
    again, _ = fingerprint(screen)
    after, _ = fingerprint(screen, change)
    assert differences(before, again) <= SHARE / 4 and differences(before, after) > SHARE, (
        differences(before, again),
        differences(before, after),
    )


@pytest.mark.parametrize("look", [PHONE, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    "path", ["/auth/login", "/auth/login?with=email", "/auth/register?with=email", "/auth/verify", "/auth/account"]
)
def test_page_is_visible_before_its_scripts_run(screen, number, path):
    """On a slow connection, the country code is shown, and nothing changes its color or place when the scripts
    arrive. (The passcode pad is drawn by its script; its place is reserved, and its fields appear after three
    seconds.)"""
    if path == "/auth/verify":
        screen.asks_code(number, "register")
        path = screen.driver.current_url.removeprefix(screen.gateway.url)
    elif "login" not in path and "register" not in path:
        screen.belongs_to(number)
    screen.driver.execute_cdp_cmd("Network.enable", {})
    screen.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*.js"]})
    try:
        screen.driver.get(screen.gateway.url + path)
        before, _ = fingerprint(screen)
    finally:
        screen.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    after, _ = fingerprint(screen.opens(path))
    assert differences(before, after) <= SHARE, f"{differences(before, after):.1f} of 100 squares change"
    screen.driver.get_log("browser")
