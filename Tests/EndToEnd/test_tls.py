"""TLS in the gateway, with a certificate in gateway.lua."""

import hashlib
import re
import signal
import socket
import ssl
import subprocess
import time

import pytest
import requests

from local_gateway import LocalGateway, problem, wait_for


def certificate(folder, name, kind=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            *kind,
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@pytest.fixture
def files(tmp_path):
    return certificate(tmp_path, "one")


def speak_tls(gateway, cert, key):
    # The demo's Google is removed, because nothing here trusts this certificate.
    gateway.edit("gateway.lua", lambda text: re.sub(r"    google_oauth = \{.*?\n    \},\n", "", text, flags=re.DOTALL))
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "public_url = \"http://", f'tls = {{ cert = "{cert}", key = "{key}" }},\n  public_url = "https://', 1
        ),
    )
    gateway.url = gateway.url.replace("http://", "https://")


def test_sessions_by_tls(new_gateway, files, monkeypatch):
    cert, key = files
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    gateway = new_gateway
    speak_tls(gateway, cert, key)
    gateway.start()
    token = gateway.register("+919876500001")["session"]["token"]
    answer = requests.get(f"{gateway.url}/echo", headers={"Cookie": f"__Host-moongate={token}"}, timeout=10)
    assert answer.status_code == 200
    headers = {header["name"].lower(): header["value"] for header in answer.json()["headers"]}
    assert headers["x-forwarded-proto"] == "https" and "cookie" not in headers
    # The plain name is not a session cookie here: any http page of the host could set it.
    problem(
        requests.get(f"{gateway.url}/echo", headers={"Cookie": f"moongate={token}"}, timeout=10), 401, "unauthenticated"
    )
    page = requests.get(f"{gateway.url}/auth/login", headers={"Accept": "text/html"}, timeout=10)
    assert page.status_code == 200
    for cookie in page.headers.get("Set-Cookie", "").split(", __"):
        assert not cookie or ("Secure" in cookie and "__Host-" in "__" + cookie)
    with pytest.raises(requests.ConnectionError):
        requests.get(gateway.url.replace("https://", "http://") + "/auth/login", timeout=10)


def test_key_of_another_certificate_is_reported_at_the_start(new_gateway, files, tmp_path):
    cert, _ = files
    _, other = certificate(tmp_path, "two")
    speak_tls(new_gateway, cert, other)
    server = new_gateway.serve()
    assert server.process.wait(30) == 1
    server.reader.join(5)
    said = "cannot be used together: the key does not belong to the certificate"
    assert said in server.output and "PRIVATE" not in server.output


def serial(gateway):
    """The fingerprint of the certificate for new connections."""
    with socket.create_connection(("127.0.0.1", gateway.ports[0]), 5) as plain:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain, server_hostname="another.example") as secure:
            return hashlib.sha256(secure.getpeercert(True)).hexdigest()


def put(folder, pair, name="one"):
    """Replaces the files one after the other, like renewal tools."""
    for source, target in zip(pair, (folder / f"{name}.pem", folder / f"{name}.key")):
        draft = folder / "draft"
        draft.write_bytes(source.read_bytes())
        draft.rename(target)


def test_a_new_certificate_is_served_without_a_restart(new_gateway, files, tmp_path):
    gateway = new_gateway
    speak_tls(gateway, *files)
    gateway.start()
    before = serial(gateway)
    # An existing connection continues.
    context = ssl.create_default_context(cafile=str(files[0]))
    with context.wrap_socket(
        socket.create_connection(("127.0.0.1", gateway.ports[0])), server_hostname="localhost"
    ) as old:
        put(tmp_path, certificate(tmp_path, "two"))
        wait_for(lambda: serial(gateway) != before, "the new certificate", 10)
        old.sendall(b"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 401 " in old.recv(4096)
    gateway.server.process.send_signal(signal.SIGHUP)
    assert gateway.policy()["candidate_refused"] is None


def test_broken_pair_is_reported_and_ignored(new_gateway, files, tmp_path):
    gateway = new_gateway
    speak_tls(gateway, *files)
    gateway.start()
    before = serial(gateway)
    original = [file.read_bytes() for file in files]
    _, foreign = certificate(tmp_path, "two")
    files[1].write_bytes(foreign.read_bytes())
    refused = wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal", 10)
    assert refused["problems"][0]["path"] == "tls" and "cannot be used together" in refused["problems"][0]["message"]
    assert serial(gateway) == before
    assert "cannot be used together" in gateway.log and "PRIVATE" not in gateway.log
    # A change of the folder is activated, and the certificate's problem remains.
    old = gateway.policy()["active"]
    gateway.edit("routes.lua", lambda text: text + "\n-- touched\n")
    assert gateway.wait_generation(old)["active"] != old
    wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal", 10)
    for file, content in zip(files, original):
        file.write_bytes(content)
    wait_for(lambda: gateway.policy()["candidate_refused"] is None, "the end of the refusal", 10)
    assert serial(gateway) == before


def test_a_handshake_that_does_not_end(new_gateway, files):
    gateway = new_gateway
    speak_tls(gateway, *files)
    gateway.start()
    with socket.create_connection(("127.0.0.1", gateway.ports[0])) as silent:
        silent.sendall(b"\x16\x03\x01")
        silent.settimeout(13)
        began = time.monotonic()
        assert silent.recv(1) == b""
        assert 8 < time.monotonic() - began < 13
    with socket.create_connection(("127.0.0.1", gateway.ports[0])) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.settimeout(5)
        assert b"HTTP/" not in plain.recv(4096)
    assert serial(gateway)


def test_handshakes_that_do_not_end_have_their_places(new_gateway, files):
    """Attack: connections that send nothing or an incomplete hello. They count like all other connections."""
    gateway = new_gateway
    speak_tls(gateway, *files)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "limits = { connections = 50000 }", "limits = { connections = 100, per_ip = { connections = 4 } }"
        ),
    )
    gateway.start()
    silent = []

    def is_refused():
        one_more = socket.create_connection(("127.0.0.1", gateway.ports[0]))
        one_more.settimeout(0.3)
        try:
            refused = one_more.recv(1) == b""
        except ConnectionResetError:
            refused = True
        except TimeoutError:
            refused = False
        if refused:
            one_more.close()
        else:
            silent.append(one_more)
        return refused

    # One after the other, because two event loops may admit connections in another order than that of connecting.
    for _ in range(4):
        assert not is_refused()
    for connection in silent[2:]:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01")
    wait_for(is_refused, "the four to have their places", 4)
    for connection in silent:
        connection.close()
    wait_for(lambda: not is_refused(), "their places before the time limit of handshakes", 4)
    silent[-1].close()
    assert serial(gateway)


@pytest.mark.parametrize("version,works", [("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)])
def test_versions(new_gateway, files, version, works):
    gateway = new_gateway
    speak_tls(gateway, *files)
    gateway.start()
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.ports[0]}", version, "-cipher", "DEFAULT@SECLEVEL=0"],
        input=b"",
        capture_output=True,
        timeout=20,
    )
    assert (b"Cipher is (NONE)" not in done.stdout and done.returncode == 0) == works, done.stdout[-500:]


@pytest.fixture(
    scope="module",
    params=[("ECDSA", ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")), ("RSA", ("rsa:2048",))],
    ids=["ECDSA", "RSA"],
)
def handshakes(request, tmp_path_factory):
    """A gateway with a certificate of each kind. Returns a function that runs an openssl handshake."""
    kind, key = request.param
    folder = tmp_path_factory.mktemp("gateway")
    gateway = LocalGateway(folder)
    speak_tls(gateway, *certificate(folder, kind, key))

    def handshake(*arguments):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.ports[0]}", *arguments],
            input=b"",
            capture_output=True,
            timeout=20,
        )
        return (done.stdout + done.stderr).decode("utf-8", "replace")

    handshake.kind, handshake.port = kind, gateway.ports[0]
    try:
        gateway.start()
        yield handshake
    finally:
        gateway.stop()


@pytest.mark.parametrize("suite", ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"])
def test_tls12_takes_ephemeral_keys_and_authenticated_encryption(handshakes, suite):
    said = handshakes("-tls1_2", "-cipher", f"ECDHE-{handshakes.kind}-{suite}")
    assert f"Cipher is ECDHE-{handshakes.kind}-{suite}" in said, said


@pytest.mark.parametrize(
    "suite",
    [
        "AES128-SHA",
        "AES256-SHA",
        "AES128-SHA256",
        "AES256-SHA256",
        "AES128-GCM-SHA256",
        "AES256-GCM-SHA384",
        "ECDHE-{}-AES128-SHA",
        "ECDHE-{}-AES256-SHA",
        "ECDHE-{}-AES128-SHA256",
        "ECDHE-{}-AES256-SHA384",
        "DHE-RSA-AES128-GCM-SHA256",
    ],
)
def test_tls12_refuses_every_other_suite(handshakes, suite):
    """Attack: recorded traffic is decrypted with a key that is stolen later; padding oracles of CBC."""
    said = handshakes("-tls1_2", "-cipher", suite.format(handshakes.kind) + ":@SECLEVEL=0")
    assert "Cipher is (NONE)" in said and "alert handshake failure" in said, said


@pytest.mark.parametrize("suite", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_tls13_takes_all_its_suites(handshakes, suite):
    assert f"Cipher is {suite}" in handshakes("-tls1_3", "-ciphersuites", suite)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize("offered", ["smtp", "http/1.0", "h3,ftp", "H2"])
def test_alpn_without_a_supported_protocol_is_refused(handshakes, version, offered):
    """Attack (ALPACA): a browser's connection is redirected between services that share a certificate."""
    said = handshakes(version, "-alpn", offered)
    assert "alert no application protocol" in said and "SSL alert number 120" in said and "Cipher is (NONE)" in said, (
        said
    )


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize(
    "offered,agreed",
    [("h2", "h2"), ("http/1.1", "http/1.1"), ("smtp,http/1.1", "http/1.1"), ("http/1.1,h2", "h2"), (None, None)],
)
def test_alpn_with_a_supported_protocol_or_without_the_extension_succeeds(handshakes, version, offered, agreed):
    said = handshakes(version, *(["-alpn", offered] if offered else []))
    assert (
        f"ALPN protocol: {agreed}" if agreed else "No ALPN negotiated"
    ) in said and "Cipher is (NONE)" not in said, said


def hello(*protocols):
    """The first bytes of a TLS client."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(protocols))
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


def test_alpn_is_read_however_the_hello_is_split(handshakes):
    data = hello("smtp")
    records = b"".join(b"\x16\x03\x01" + (1).to_bytes(2, "big") + data[i : i + 1] for i in range(5, len(data)))
    for pieces in ([data[i : i + 1] for i in range(len(data))], [data[:200], data[200:]], [records]):
        with socket.create_connection(("127.0.0.1", handshakes.port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                client.sendall(piece)
            client.settimeout(5)
            assert client.recv(100) == bytes([21, 3, 3, 0, 2, 2, 120]) and client.recv(100) == b""
    # A supported protocol, in the same pieces, gets a ServerHello.
    data = hello("h2")
    with socket.create_connection(("127.0.0.1", handshakes.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)):
            client.sendall(data[i : i + 1])
        client.settimeout(5)
        assert client.recv(1) == b"\x16"
