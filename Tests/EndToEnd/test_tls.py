"""The gateway speaks TLS itself, where gateway.lua names a certificate."""

import subprocess

import pytest
import requests

from house import problem


def certificate(folder, name):
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def files(tmp_path):
    return certificate(tmp_path, "one")


def speak_tls(house, cert, key):
    house.edit("gateway.lua", lambda text: text.replace("public_url = \"http://", f'tls = {{ cert = "{cert}", key = "{key}" }},\n  public_url = "https://', 1))
    house.url = house.url.replace("http://", "https://")


def test_sessions_by_tls(empty_house, files, monkeypatch):
    cert, key = files
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    house = empty_house
    speak_tls(house, cert, key)
    house.start()
    token = house.register("+919876500001")["session"]["token"]
    answer = requests.get(f"{house.url}/echo", headers={"Cookie": f"__Host-moongate={token}"}, timeout=10)
    assert answer.status_code == 200
    headers = {header["name"].lower(): header["value"] for header in answer.json()["headers"]}
    assert headers["x-forwarded-proto"] == "https" and "cookie" not in headers
    # The plain name is no cookie of ours here: any page of the host's http side could set it.
    problem(requests.get(f"{house.url}/echo", headers={"Cookie": f"moongate={token}"}, timeout=10), 401, "unauthenticated")
    page = requests.get(f"{house.url}/auth/login", headers={"Accept": "text/html"}, timeout=10)
    assert page.status_code == 200
    for cookie in page.headers.get("Set-Cookie", "").split(", __"):
        assert not cookie or ("Secure" in cookie and "__Host-" in "__" + cookie)
    with pytest.raises(requests.ConnectionError):
        requests.get(house.url.replace("https://", "http://") + "/auth/login", timeout=10)


def test_a_key_of_another_certificate_is_told_at_the_start(empty_house, files, tmp_path):
    cert, _ = files
    _, other = certificate(tmp_path, "two")
    speak_tls(empty_house, cert, other)
    gateway = empty_house.serve()
    assert gateway.process.wait(30) == 1
    gateway.reader.join(5)
    assert "cannot be used together" in gateway.output and "PRIVATE" not in gateway.output
