"""External test suites against the running gateway on loopback. `make soak` installs and runs them; each is bounded
to minutes."""

import json
import re
import subprocess

import pytest

from local_gateway import LocalGateway
from test_http2 import routed
from test_tls import certificate, speak_tls
from wire import Upstream

SIZE = 1024 * 1024


@pytest.fixture(scope="module")
def upstream():
    upstream = Upstream(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + b"x" * SIZE)
    yield upstream
    upstream.close()


def running(folder, upstream, *tls):
    gateway = LocalGateway(folder)
    routed(gateway, upstream.port)
    if tls:
        speak_tls(gateway, *tls)
    return gateway


@pytest.fixture(scope="module")
def plain(tmp_path_factory, upstream):
    gateway = running(tmp_path_factory.mktemp("gateway"), upstream)
    try:
        yield gateway.start()
    finally:
        gateway.stop()


@pytest.fixture(
    scope="module", params=[("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), ("rsa:2048",)], ids=["ECDSA", "RSA"]
)
def secure(request, tmp_path_factory, upstream):
    folder = tmp_path_factory.mktemp("gateway")
    gateway = running(folder, upstream, *certificate(folder, "one", request.param))
    try:
        yield gateway.start()
    finally:
        gateway.stop()


# Findings of testssl that concern the tests' certificate, which is self-signed and short-lived.
OF_THE_CERTIFICATE = re.compile(r"cert_|OCSP|DNS_CAArecord|certs_|security_headers|HSTS")


def test_testssl(secure, tmp_path):
    """Protocols, cipher suites, key exchange, and known attacks on TLS."""
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            "testssl",
            "--quiet",
            "--color",
            "0",
            "--warnings",
            "off",
            "--ip",
            "127.0.0.1",
            "--nodns",
            "none",
            "--jsonfile",
            str(report),
            "-p",
            "-s",
            "-f",
            "-U",
            f"localhost:{secure.ports[0]}",
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    findings = json.loads(report.read_text())
    assert len(findings) > 30, done.stdout[-3000:]
    bad = [
        finding
        for finding in findings
        if finding["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL", "FATAL")
        and not OF_THE_CERTIFICATE.search(finding["id"])
    ]
    assert not bad, json.dumps(bad, indent=1)
    known = {finding["id"]: finding["finding"] for finding in findings}
    assert (
        known["TLS1_2"].startswith("offered")
        and known["TLS1_3"].startswith("offered")
        and known["TLS1_1"].startswith("not offered")
    )


@pytest.mark.parametrize(
    "attack",
    [
        ("-H", "-i", "5"),
        ("-B", "-i", "5", "-s", "100000"),
        ("-X", "-r", "200", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "1"),
        ("-R",),
    ],
    ids=["slow heads", "slow bodies", "slow readers", "ranges"],
)
def test_slowhttptest(plain, attack):
    """1,000 concurrent slow clients for as long as the gateway keeps them. Meanwhile, all other clients are served
    within ten seconds."""
    done = subprocess.run(
        ["slowhttptest", "-c", "1000", "-r", "250", "-l", "60", "-p", "10", *attack, "-u", f"{plain.url}/open/x"],
        capture_output=True,
        text=True,
        timeout=180,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    available = re.findall(r"service available:\s+(YES|NO)", said)
    assert available and "NO" not in available, said[-3000:]


def test_h2load(secure):
    done = subprocess.run(
        [
            "h2load",
            "-n",
            "20000",
            "-c",
            "20",
            "-m",
            "100",
            f"https://127.0.0.1:{secure.ports[0]}/api/auth/phone/format?input=99999",
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert "20000 succeeded, 0 failed, 0 errored" in done.stdout, done.stdout + done.stderr
