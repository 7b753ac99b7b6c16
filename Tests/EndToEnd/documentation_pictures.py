"""Makes the pictures in Documentation/images: `make pictures`. test_documentation_pictures.py tells when one is out of
date. Look at a new picture before you commit it."""

import base64
import contextlib
import difflib
import html
import pathlib
import re
import sys
import tempfile

from local_gateway import LocalGateway, wrong
from processes import ROOT
from screens import Screen, start

FOLDER = ROOT / "Documentation" / "images"
NUMBER = "+919999999999"
# Fonts that every machine with the tests' packages has.
FONT = '* { font-family: "Noto Sans", sans-serif !important; caret-color: transparent !important; }'
LAYOUT = """<!doctype html><style>
body { margin: 0; padding: 24px; display: flex; gap: 24px; align-items: center; background: #eef2f2; }
pre { margin: 0; padding: 18px; width: 540px; box-sizing: border-box; border-radius: 12px; background: #14232b;
  color: #d7e3e6; font: 13px/1.6 "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
del { color: #ff9b9b; text-decoration: none; } ins { color: #8ee6a8; text-decoration: none; } i { color: #8aa4ab; }
img { width: 330px; border-radius: 12px; }
</style><pre>%s</pre><img src="data:image/png;base64,%s">"""


def sign_in(screen):
    """The page that an unauthenticated browser sees."""
    screen.looks((820, 790)).opens("/auth/login")


def stricter(gateway):
    """Allows two wrong codes in place of five; returns the change and what the gateway logged about it."""
    active = gateway.policy()["active"]
    before = gateway.edit(
        "policies/phone_otp.lua", lambda text: re.sub(r"(verify = \{[^}]*?max = )5", r"\g<1>2", text, count=1)
    )
    after = (gateway.config / "policies/phone_otp.lua").read_text()
    gateway.wait_generation(active)
    changed = [
        re.sub(r"^([-+]) +", r"\1 ", line)
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        if re.match(r"[-+] ", line)
    ]
    logged = re.findall(r"^.*generation .*active.*$", gateway.log, re.M)
    return changed, logged[-1:]


def policy_change(screen):
    """The code page under a stricter limit: the second wrong code locks the number."""
    screen.change = stricter(screen.gateway)
    code = wrong(screen.looks((390, 700)).asks_code(NUMBER, "register"))
    screen.enters(code).reads("Invalid code")
    screen.find("#code").clear()
    screen.enters(code).reads("Too many")


# Each picture: what makes it, and text that the page must still show.
PICTURES = {
    "sign-in": (sign_in, ["Send OTP", "Create Account", "Continue with Google"]),
    "policy-change": (policy_change, ["Too many"]),
}


def shoot(screen):
    screen.js("const s = new CSSStyleSheet(); s.replaceSync(arguments[0]); document.adoptedStyleSheets = [s]", FONT)
    screen.finishes()
    return screen.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]


def beside(screen, picture, folder):
    """The change of the policy beside the picture of the page."""
    changed, logged = screen.change
    lines = ["<i># config/policies/phone_otp.lua</i>"]
    for line in changed:
        kind = "del" if line.startswith("-") else "ins"
        lines.append(f"<{kind}>{html.escape(line)}</{kind}>")
    lines.append("")
    # Without the time, which differs from run to run.
    lines += ["<i>" + html.escape(re.sub(r"^\S+ ", "", line)) + "</i>" for line in logged]
    page = folder / "beside.html"
    page.write_text(LAYOUT % ("\n".join(lines), picture))
    screen.looks((942, 642)).driver.get(page.as_uri())
    screen.waits(lambda: screen.js("return document.images[0].complete"), "the picture")
    return screen.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]


def main():
    FOLDER.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        driver = start(folder / "chromium")
        stack.callback(driver.quit)
        for name in sys.argv[1:] or PICTURES:
            (folder / name).mkdir()
            gateway = LocalGateway(folder / name)
            stack.callback(gateway.stop)
            screen = Screen(driver, gateway.start()).forget()
            PICTURES[name][0](screen)
            picture = shoot(screen)
            if hasattr(screen, "change"):
                picture = beside(screen, picture, folder)
            (FOLDER / f"{name}.png").write_bytes(base64.b64decode(picture))
            print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size} bytes")


if __name__ == "__main__":
    main()
