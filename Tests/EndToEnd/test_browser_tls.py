"""A real browser over TLS: HTTP/2 from the first page to the signed-in one."""

import pytest

import screens
from local_gateway import wait_for
from test_tls import certificate, speak_tls


@pytest.fixture
def browser(tmp_path):
    driver = screens.start(tmp_path / "chromium", full=True, arguments=["--ignore-certificate-errors"])
    yield driver
    driver.quit()


def test_chromium_speaks_http2(browser, new_gateway, tmp_path, monkeypatch):
    cert, key = certificate(tmp_path, "one")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    gateway = new_gateway
    speak_tls(gateway, cert, key)
    access = tmp_path / "access.log"
    gateway.start(MOONGATE_ACCESS_LOG=str(access))
    token = gateway.register("+919876500400")["session"]["token"]
    browser.get(gateway.url + "/")
    wait_for(lambda: "/auth/login" in browser.current_url, "the login page")
    spoken = browser.execute_script(
        "return performance.getEntries().filter(e => e.nextHopProtocol).map(e => e.nextHopProtocol)"
    )
    assert spoken and set(spoken) == {"h2"}, spoken
    browser.add_cookie(
        {"name": "__Host-moongate", "value": token, "path": "/", "secure": True, "httpOnly": True, "sameSite": "Lax"}
    )
    browser.get(gateway.url + "/")
    assert browser.current_url == gateway.url + "/", "signed in, and still led to sign-in"
    text = wait_for(
        lambda: access.exists() and '"protocol":"h2"' in access.read_text() and access.read_text(), "lines of h2"
    )
    assert token not in text
