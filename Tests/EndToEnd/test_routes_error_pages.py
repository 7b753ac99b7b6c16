"""`error_pages`: the gateway's refusals on a route by the operator's own templates."""

import re
import socket
import subprocess
import threading

import pytest
import requests
from selenium.webdriver.common.by import By

import screens
from local_gateway import BIN, LocalGateway, free_port, problem, wait_for
from services import Handler, HTTPService

HTML = {"Accept": "text/html"}
TEMPLATES = {
    "403.mustache": "{{<layout}}{{$content}}<h1>Not for you: {{status}} {{code}}</h1><p>{{sentence}}</p>"
    "<p>{{signedInAs}} {{reference}}</p>{{/content}}{{/layout}}",
    "error.mustache": '<!doctype html><html lang="{{frame.language}}"><style nonce="{{nonce}}">h1 { color: rgb(1, 2, 3) }'
    '</style><h1>{{status}} {{title}}</h1><p>{{sentence}} {{decision}} {{retryAfter}} <a href="{{home}}">Home</a></p>'
    '<style>h1 { color: rgb(4, 5, 6) }</style><script>document.title = "ran"</script></html>',
}


class Service(Handler):
    def do_GET(self):
        body = b"<h1>A page of the service</h1>"
        self.send_response(404 if self.path == "/own/404" else 503 if self.path == "/own/503" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class SilentService:
    """Accepts connections and never answers."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.held = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                self.held.append(self.socket.accept()[0])
            except OSError:
                return


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    service, silent = HTTPService(Service), SilentService()
    gateway.closed = free_port()
    folder = gateway.config / "pages/errors"
    folder.mkdir(parents=True)
    for name, text in TEMPLATES.items():
        (folder / name).write_text(text)
    route = '{{ path = "/{}/**", to = "http://127.0.0.1:{}", error_pages = "errors"{} }},'
    routes = [
        route.format("down", gateway.closed, ", allow = true"),
        route.format("slow", silent.port, ', allow = true, timeout = "1s"'),
        route.format("own", service.port, ", allow = true"),
        route.format("closed", service.port, ", decide = function(f) return deny 'office_hours' end"),
        route.format("in", service.port, ""),
        f'{{ path = "/plain/**", to = "http://127.0.0.1:{gateway.closed}", allow = true }},',
    ]
    gateway.edit("routes.lua", lambda _: "return routes {\n" + "\n".join(routes) + "\n}\n")
    gateway.edit(
        "accounts.lua",
        lambda text: text.replace(
            "return accounts {", 'return accounts {\n  reasons = { office_hours = "Come back <b>tomorrow</b>." },', 1
        ),
    )
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500350")["session"]["token"]
        yield gateway
    finally:
        gateway.stop()
        service.end()
        silent.socket.close()


def get(gateway, path, method="GET", **headers):
    return requests.request(method, gateway.url + path, headers={**HTML, **headers}, allow_redirects=False, timeout=20)


@pytest.mark.parametrize("path, status, title", [("/down/x", 502, "502"), ("/slow/x", 504, "504")])
def test_failing_service_has_the_operators_page(world, path, status, title):
    answer = get(world, path)
    assert answer.status_code == status and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f"<h1>{title} " in answer.text and re.search(r"dc_[A-Za-z0-9_-]+", answer.text)
    assert f'href="{world.url}"' in answer.text and '<html lang="en">' in answer.text
    nonce = re.search(r'<style nonce="([A-Za-z0-9_-]{22})">', answer.text)[1]
    policy = answer.headers["Content-Security-Policy"]
    assert f"style-src 'self' 'nonce-{nonce}';" in policy and policy.startswith("default-src 'none'; ")
    assert answer.headers["X-Frame-Options"] == "DENY" and answer.headers["Cache-Control"] == "no-store"
    assert nonce not in get(world, path).text
    hindi = get(world, path, **{"Accept-Language": "hi"})
    assert '<html lang="hi">' in hindi.text and "<h1>" in hindi.text and hindi.text != answer.text


def test_refused_user_has_the_page_of_the_status(world):
    bearer = {"Authorization": f"Bearer {world.token}"}
    answer = get(world, "/closed/x", **bearer)
    assert answer.status_code == 403
    assert "<h1>Not for you: 403 office_hours</h1>" in answer.text and "/auth/assets/" in answer.text
    # The sentence of a policy is text, whatever it contains.
    assert "<p>Come back &lt;b&gt;tomorrow&lt;/b&gt;.</p>" in answer.text
    # A form without a session.
    answer = get(world, "/in/x", "POST")
    assert answer.status_code == 401 and "<h1>401 " in answer.text


def test_programs_and_head_requests(world):
    problem(get(world, "/down/x", Accept="application/json"), 502, "upstream_unavailable")
    problem(get(world, "/down/x", Accept="*/*"), 502, "upstream_unavailable")
    page, head = get(world, "/down/x"), get(world, "/down/x", "HEAD")
    assert head.status_code == 502 and head.content == b""
    # The decision and the nonce have the same length on both.
    assert head.headers["Content-Length"] == page.headers["Content-Length"] == str(len(page.content))


def test_services_and_other_routes_keep_their_pages(world):
    for path, status in (("/own/", 200), ("/own/404", 404), ("/own/503", 503)):
        answer = get(world, path)
        assert answer.status_code == status and answer.text == "<h1>A page of the service</h1>"
    plain = get(world, "/plain/x")
    assert plain.status_code == 502 and "Reference: dc_" in plain.text and "nonce" not in plain.text
    assert "nonce" not in plain.headers["Content-Security-Policy"]
    nowhere = get(world, "/nowhere")
    assert nowhere.status_code == 404 and "<h1>404 " not in nowhere.text
    sign_in = get(world, "/in/x")
    assert sign_in.status_code == 302 and "/auth/login" in sign_in.headers["Location"]


def test_browser_applies_only_what_the_page_may_do(world, driver):
    driver.get(world.url + "/down/x")
    wait_for(lambda: driver.find_elements(By.TAG_NAME, "h1"), "the page")
    colour = driver.execute_script("return getComputedStyle(document.querySelector('h1')).color")
    assert colour == "rgb(1, 2, 3)", "the style with the nonce, and no other"
    assert driver.title != "ran", "no script runs"


def test_changed_template_applies_without_a_restart(world):
    file = world.config / "pages/errors/error.mustache"
    before = world.policy()["active"]
    file.write_text("<h1>{{status}} is the new page</h1>")
    world.wait_generation(before)
    assert get(world, "/down/x").text == "<h1>502 is the new page</h1>"
    # A mistake changes nothing, and is reported with its line.
    file.write_text("<h1>{{status}}</h1>\n{{sentense}}\n")
    refused = wait_for(lambda: world.policy().get("candidate_refused"), "the mistake")
    assert refused["problems"][0]["file"] == "pages/errors/error.mustache", refused
    assert refused["problems"][0]["line"] == 2 and "did you mean `sentence`?" in refused["problems"][0]["message"]
    assert get(world, "/down/x").text == "<h1>502 is the new page</h1>"
    check = subprocess.run(
        [BIN / "moongate", "check", "--config", world.config], capture_output=True, text=True, timeout=120
    )
    assert check.returncode != 0
    mistake = "pages/errors/error.mustache:2: unknown name `sentense`; did you mean `sentence`?"
    assert mistake in check.stdout + check.stderr
    file.write_text(TEMPLATES["error.mustache"])
    wait_for(lambda: "<h1>502 " in get(world, "/down/x").text, "the first page again")
