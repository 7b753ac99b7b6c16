"""Providers with vendor callbacks: a push approval that is answered by a signed webhook while the step waits, and a
site with POST callbacks. Both are programs."""

import hashlib
import hmac
import html
import http.server
import json
import secrets
import threading
import urllib.parse

import pytest
import requests

import screens
from attack import new_email
from local_gateway import LocalGateway, problem, wait_for
from screens import Screen

KEY = b"shared-with-the-vendor"

FRAME = '''#!/usr/bin/env python3
import hashlib, hmac, json, os, secrets, sys
from collections import deque

later = deque()

def lines():
    while True:
        if later:
            yield later.popleft()
        else:
            line = sys.stdin.readline()
            if not line:
                return
            yield json.loads(line)

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def ask(method, **params):
    """Asks the gateway, and puts aside what it says meanwhile."""
    say({"id": "own", "method": method, "params": params})
    while True:
        message = json.loads(sys.stdin.readline())
        if message.get("id") == "own":
            return message["result"]
        later.append(message)

POLICY = """return policy "%s" {
  limits = {
    verify = { on = "verify", per = "email", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
    prompts = { on = "begin", per = "email", max = 20, window = "15m" },
  },
  unknown_account = "reveal",
}"""

SETTINGS = []

def configure(params):
    global SETTINGS
    SETTINGS = params["settings"]
    return {}
'''

RUN = '''
for message in lines():
    if message.get("method") == "shutdown":
        break
    if "id" in message and "method" in message:
        say({"id": message["id"], "result": globals()[message["method"]](message["params"])})
'''

PUSH = '''
def hello(params):
    return {"protocol": 1, "shape": "full", "identifier": "email", "hook": True, "policy": POLICY % params["name"],
            "settings": [{"name": "key", "kind": "secret", "required": True}],
            "outcomes": [{"reason": "declined", "sentence": "You declined on your phone."},
                         {"reason": "timed_out", "sentence": "Nobody approved in time.", "counts": False}],
            "words": {"title": "Approve on your phone", "instruction": "Open the app.",
                      "translations": {"hi": {"Approve on your phone": "अपने फ़ोन पर मंज़ूरी दें"}}}}

def begin(params):
    handle = secrets.token_urlsafe(24)
    with open("prompts.txt", "a") as file:
        file.write(params["identifier"]["value"] + " " + handle + "\\\\n")
    return wait(handle, params["now"] + 8000)

def wait(handle, end):
    return {"wait": {"poll": 1000, "state": json.dumps([handle, end]), "show": [{"kind": "text", "text": "Tap 47 in the app."}]}}

def submit(params):
    handle, end = json.loads(params["state"])
    decision = ask("store.get", key="decision " + handle)["value"]
    if decision == "approved": return {"proved": {"identifiers": [params["identifier"]]}}
    if decision == "declined": return {"refused": "declined"}
    return wait(handle, end) if params["now"] < end else {"refused": "timed_out"}

def hook(params):
    signature = hmac.new(SETTINGS["key"].encode(), params.get("body", "").encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(signature, params["headers"].get("vendor-signature", "")): return {"refused": "unauthenticated"}
    try:
        said = json.loads(params["body"])
        delivery, handle, decision = said["delivery"], said["handle"], said["decision"]
    except (ValueError, KeyError, TypeError):
        return {"refused": "malformed"}
    # A delivery that was there before is the vendor's second try, or somebody's replay: it changes nothing.
    if ask("store.set", key="delivery " + delivery, value="1", expires_in=900, once=True)["stored"]:
        ask("store.set", key="decision " + handle, value=decision, expires_in=900)
    return {"accepted": {}}
'''

SITE = '''
BY_FLOW = 'return policy "%s" { limits = { verify = { on = "verify", per = "flow", max = 5, window = "15m", counts = "failures" } }, unknown_account = "reveal" }'

def hello(params):
    return {"protocol": 1, "shape": "full", "federated": True, "policy": BY_FLOW % params["name"],
            "settings": [{"name": "site", "kind": "text", "required": True}],
            "callback": [{"name": "code", "kind": "text"}, {"name": "user", "kind": "text", "required": False}],
            "outcomes": [{"reason": "oauth_failed", "sentence": "No."}], "presentation": {"kind": "external_site", "button": "Continue with Orchard"},
            "words": {"title": "Orchard"}}

def begin(params):
    from urllib.parse import urlencode
    return {"redirect": {"to": SETTINGS["site"] + "/authorize?" + urlencode(params["callback"])}}

def submit(params):
    if params["fields"]["code"] != "the-grant": return {"refused": "oauth_failed"}
    return {"proved": {"identifiers": [{"kind": "federated", "value": "orchard 4711", "display": "Asha"}]}}
'''

FLOW = (
    'return flow "%s" { account = "any", steps = { { "%s" } }, next = { new = "/profile-setup", returning = "/home" } }'
)


class Site(http.server.BaseHTTPRequestHandler):
    """An external site on another host than the gateway. Its page posts the callback."""

    def do_GET(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        page = (
            f'<!doctype html><form method="post" action="{html.escape(asked.get("address", ""))}">'
            f'<input name="state" value="{html.escape(asked.get("state", ""))}"><input name="code" value="the-grant">'
            '<input name="user" value="{&quot;name&quot;:&quot;Asha&quot;}"></form><script>document.forms[0].submit()</script>'
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    for name, body in (("push", PUSH), ("orchard", SITE)):
        file = gateway.config / f"{name}.py"
        file.write_text(FRAME + body.replace("\\\\n", "\\n") + RUN)
        file.chmod(0o755)
        (gateway.config / "flows" / f"{name}.lua").write_text(FLOW % (name, name))
    entries = (
        f'providers = {{ push = exec {{ "./push.py", key = env "PUSH_KEY" }}, '
        f'orchard = exec {{ "./orchard.py", site = "http://127.0.0.1:{site.server_port}" }},'
    )
    gateway.edit(
        "gateway.lua", lambda text: text.replace("providers = {", entries, 1).replace('"0.1% per 30d"', '"1% per 30d"')
    )
    yield gateway.start(PUSH_KEY=KEY.decode())
    gateway.stop()
    site.shutdown()


def prompt(gateway, email):
    """The handle of the last prompt for the user."""
    lines = [line.split() for line in (gateway.config / "prompts.txt").read_text().splitlines()]
    return next(handle for to, handle in reversed(lines) if to == email)


def hook(gateway, handle, decision, delivery=None, signed=True, **headers):
    body = json.dumps({"delivery": delivery or secrets.token_hex(8), "handle": handle, "decision": decision})
    signature = hmac.new(KEY, body.encode(), hashlib.sha256).hexdigest() if signed else "0" * 64
    return requests.post(
        gateway.url + "/auth/hook/push", body, headers={"Vendor-Signature": signature, **headers}, timeout=20
    )


def begin(gateway, email):
    flow = gateway.flow("push")
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "push", "email": email})
    assert begun.status_code == 200, begun.text
    return flow, begun.json()["step"]


def poll(gateway, flow):
    return gateway.api("POST", f"/flows/{flow}/submit", {})


def polled(gateway, flow):
    """The first poll response that no longer waits."""

    def ends():
        answer = poll(gateway, flow)
        # `requests` treats a refusal as false, so it is wrapped in a tuple.
        return (answer,) if answer.status_code != 200 or answer.json()["step"] is None else None

    return wait_for(ends, "the end of the wait", 20)[0]


def test_approval_signs_in_by_the_api(gateway):
    email = new_email()
    flow, step = begin(gateway, email)
    assert (
        step["fields"] == []
        and step["retry_after"] in (1, 2)
        and step["show"] == [{"kind": "text", "text": "Tap 47 in the app."}]
    )
    assert poll(gateway, flow).json()["status"] == "pending"
    answer = hook(gateway, prompt(gateway, email), "approved")
    assert answer.status_code == 204 and "Set-Cookie" not in answer.headers
    done = polled(gateway, flow).json()
    assert done["status"] == "complete" and done["account"]["email"] == email and done["session"]["token"]
    metrics = requests.get(f"{gateway.admin}/metrics", timeout=10).text
    assert 'moongate_provider_calls_total{provider="push",call="hook",outcome="accepted"}' in metrics
    assert 'moongate_provider_calls_total{provider="push",call="begin",outcome="waiting"}' in metrics


def test_refusal_is_reported_and_counted(gateway):
    email = new_email()
    flow, _ = begin(gateway, email)
    hook(gateway, prompt(gateway, email), "declined")
    refusal = problem(polled(gateway, flow), 401, "declined")
    assert refusal["detail"] == "You declined on your phone." and refusal["attempts_left"] == 4
    problem(poll(gateway, flow), 409, "step_not_open")


def test_unanswered_prompt_expires(gateway):
    email = new_email()
    flow, _ = begin(gateway, email)
    refusal = problem(polled(gateway, flow), 401, "timed_out")
    assert "attempts_left" not in refusal
    # A late approval has no effect.
    hook(gateway, prompt(gateway, email), "approved")
    problem(poll(gateway, flow), 409, "step_not_open")


def test_webhook_is_not_forged_replayed_or_guessed(gateway):
    """Attacks: no signature; a replayed delivery with another decision; another user's handle; ten megabytes; a
    provider without webhooks."""
    email, other = new_email(), new_email()
    flow, _ = begin(gateway, email)
    begin(gateway, other)
    handle = prompt(gateway, email)
    problem(hook(gateway, handle, "approved", signed=False), 401, "unauthenticated")
    hook(gateway, prompt(gateway, other), "approved")
    hook(gateway, "guessed", "approved")
    hook(gateway, handle[:-1] + ("A" if handle[-1] != "A" else "B"), "approved")
    assert poll(gateway, flow).json()["status"] == "pending"
    assert hook(gateway, handle, "declined", delivery="first").status_code == 204
    assert hook(gateway, handle, "approved", delivery="first").status_code == 204
    problem(polled(gateway, flow), 401, "declined")
    assert (
        requests.post(
            gateway.url + "/auth/hook/push",
            "not json",
            headers={"Vendor-Signature": hmac.new(KEY, b"not json", hashlib.sha256).hexdigest()},
            timeout=20,
        ).status_code
        == 400
    )
    try:
        assert requests.post(gateway.url + "/auth/hook/push", b"x" * 10_000_000, timeout=20).status_code == 413
    except requests.exceptions.ConnectionError:
        # The connection is closed while the client is still writing.
        pass
    for name in ("phone_otp", "orchard", "nobody"):
        problem(requests.post(f"{gateway.url}/auth/hook/{name}", "{}", timeout=20), 404, "not_found")
    assert requests.get(gateway.url + "/auth/hook/push", timeout=20).status_code == 405
    assert handle not in gateway.log


def test_approval_signs_in_on_the_page(gateway, driver):
    email = new_email()
    screen = Screen(driver, gateway).forget().opens("/auth/step?flow=push&with=push")
    screen.find('input[name="field.email"]').send_keys(email)
    screen.find("button.main").click()
    screen.waits(
        lambda: "Tap 47 in the app." in screen.text and "Waiting for your approval" in screen.text,
        "the page that waits",
    )
    hook(gateway, prompt(gateway, email), "approved")
    screen.at("/profile-setup")


def test_refusal_is_shown_on_the_page_and_the_step_restarted(gateway, driver):
    email = new_email()
    screen = Screen(driver, gateway).forget().opens("/auth/step?flow=push&with=push&language=hi")
    screen.find('input[name="field.email"]').send_keys(email)
    screen.find("button.main").click()
    screen.waits(
        lambda: "अपने फ़ोन पर मंज़ूरी दें" in screen.text and "आपकी मंज़ूरी का इंतज़ार है" in screen.text,
        "the page that waits, in Hindi",
    )
    hook(gateway, prompt(gateway, email), "declined")
    screen.waits(lambda: "You declined on your phone." in screen.text, "the refusal")
    screen.find('input[name="field.email"]').send_keys(email)
    screen.find("button.main").click()
    screen.waits(lambda: screen.all("form[data-form=wait]"), "the page that waits once more")
    hook(gateway, prompt(gateway, email), "approved")
    screen.at("/profile-setup")


def test_page_comes_back_without_scripts(gateway, tmp_path):
    driver = screens.start(tmp_path / "chromium", scripts=False)
    try:
        email = new_email()
        screen = Screen(driver, gateway).opens("/auth/step?flow=push&with=push")
        screen.find('input[name="field.email"]').send_keys(email)
        screen.find("button.main").click()
        screen.waits(lambda: "Tap 47 in the app." in screen.text, "the page that waits")
        hook(gateway, prompt(gateway, email), "approved")
        screen.at("/profile-setup")
    finally:
        driver.quit()


def test_site_that_posts_people_back_signs_in(gateway, driver):
    """`response_mode=form_post`: the cross-site POST has no cookies; the code is in no URL and no log."""
    screen = Screen(driver, gateway).forget().opens("/auth/step?flow=orchard&with=orchard")
    screen.find("button.main").click()
    screen.presses("Continue").at("/profile-setup")
    assert "the-grant" not in gateway.log
