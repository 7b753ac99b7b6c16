"""Service workers in a real browser: none controls the sign-in pages, and those of services work."""

import socketserver
import threading

import pytest

import screens
from local_gateway import wait_for

WORKER = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.url.endsWith("/hello")) return event.respondWith(new Response("from the worker"));
  if (event.request.url.includes("/pub/seen")) return;
  event.respondWith((async () => {
    const text = await event.request.clone().text();
    await fetch("/pub/seen", { method: "POST", body: `${event.request.url} ${text}` });
    return fetch(event.request);
  })());
});
"""
REGISTER = """
const [script, options, done] = arguments;
navigator.serviceWorker.register(script, options).then(
  (registration) => done(registration.scope), (error) => done(`refused: ${error.name}`));
"""


class Handler(socketserver.StreamRequestHandler):
    """A service that answers every request for a script with a worker, and widens its scope."""

    def handle(self):
        line = self.rfile.readline().decode()
        length = 0
        while field := self.rfile.readline().decode().strip():
            name, _, value = field.partition(":")
            length = int(value) if name.lower() == "content-length" else length
        body = self.rfile.read(length).decode()
        path = line.split()[1]
        if path == "/pub/seen":
            self.server.seen.append(body)
        is_script = path.endswith(".js")
        text = WORKER if is_script else "<!doctype html><title>service</title>from the service"
        kind = "text/javascript" if is_script else "text/html"
        head = f"Content-Type: {kind}\r\nService-Worker-Allowed: /\r\nContent-Length: {len(text)}\r\nConnection: close"
        self.wfile.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n{text}".encode())


@pytest.fixture
def service():
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.seen = []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def site(new_gateway, service):
    to = f"http://127.0.0.1:{service.server_address[1]}"
    new_gateway.edit(
        "routes.lua",
        lambda _: f"""return routes {{
          {{ path = "/trusted.js", to = "{to}", allow = true, service_worker = true }},
          {{ path = "/**", to = "{to}", allow = true }},
        }}""",
    )
    return new_gateway.start()


@pytest.fixture
def browser(tmp_path):
    driver = screens.start(tmp_path / "chromium", full=True)
    yield driver
    driver.quit()


def test_no_service_worker_reads_the_sign_in_page(browser, site, service):
    """Attack: a service on the host of the sign-in pages installs a service worker over them."""
    browser.get(f"{site.url}/pub/page")
    for script, options in [
        ("/pub/sw.js", {"scope": "/"}),
        ("/pub/sw.js", {"scope": "/auth/"}),
        ("/sw.js", {}),
        ("/sw.js?v=2", {"scope": "/auth/"}),
    ]:
        told = browser.execute_async_script(REGISTER, script, options)
        assert told.startswith("refused: "), f"{script} {options}: {told}"
    browser.get(f"{site.url}/auth/login")
    assert browser.find_element("css selector", "input[name=phone]")
    assert browser.execute_script("return navigator.serviceWorker.controller") is None
    assert service.seen == []


def test_service_workers_of_services_work(browser, site, service):
    """In the folder of the service, on another host, and on a route that allows it."""
    hello = "return fetch('hello').then((answer) => answer.text())"
    other = site.url.replace("localhost", "app.localhost")
    for page, script, scope in [
        (f"{site.url}/pub/page", "/pub/sw.js", f"{site.url}/pub/"),
        (f"{other}/page", "/sw.js", f"{other}/"),
        (f"{site.url}/page", "/trusted.js", f"{site.url}/"),
    ]:
        browser.get(page)
        assert browser.execute_async_script(REGISTER, script, {}) == scope
        wait_for(lambda: browser.execute_script("return !!navigator.serviceWorker.controller"), "the worker")
        assert browser.execute_script(hello) == "from the worker"
    # The operator has allowed the last one to see the sign-in pages.
    browser.get(f"{site.url}/auth/login")
    assert any("/auth/login" in text for text in service.seen)
