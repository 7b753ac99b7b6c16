"""Slow clients receive complete responses."""

import concurrent.futures
import pathlib
import socket
import subprocess
import time

import pytest
import requests

from local_gateway import wait_for
from test_http2 import routed
from test_tls import certificate, speak_tls
from wire import Upstream

pytestmark = pytest.mark.alone

SIZE = 8 * 1024 * 1024


@pytest.fixture(params=["http", "https"])
def slow(request, new_gateway, tmp_path):
    upstream = Upstream(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + b"x" * SIZE)
    gateway = new_gateway
    gateway.certificate = None
    if request.param == "https":
        cert, key = certificate(tmp_path, "one")
        gateway.certificate = cert
        speak_tls(gateway, cert, key)
    routed(gateway, upstream.port)
    gateway.start()
    yield gateway
    upstream.close()


@pytest.mark.parametrize("close", ["Connection: close\r\n", ""])
def test_an_answer_is_not_cut_where_the_connection_closes_after_it(slow, close):
    """The gateway has finished long before the client has read the buffered rest."""
    import ssl

    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", slow.ports[0]))
    client = plain
    if slow.certificate:
        client = ssl.create_default_context(cafile=str(slow.certificate)).wrap_socket(
            plain, server_hostname="localhost"
        )
    client.settimeout(20)
    client.sendall(f"GET /open/x HTTP/1.1\r\nHost: localhost\r\n{close}\r\n".encode())
    if not close and not slow.certificate:
        client.shutdown(socket.SHUT_WR)
    got, has_slept = 0, False
    while got < SIZE:
        # Near the end, the rest fits into buffers, and the gateway is done; wait longer than any linger time.
        if SIZE - got < 300_000 and not has_slept:
            has_slept = True
            time.sleep(5)
        data = client.recv(100_000)
        if not data:
            break
        got += len(data)
    assert got >= SIZE
    client.close()


def whole(client):
    """Reads to the end. Returns the length that the head states, and the bytes of the body."""
    got = bytearray()
    while data := client.recv(1_000_000):
        got += data
    client.close()
    head, _, body = got.partition(b"\r\n\r\n")
    return int(bytes(head).lower().partition(b"content-length: ")[2].split()[0]), len(body)


@pytest.mark.parametrize("ends", ["the client's requests", "the gateway"])
def test_an_answer_is_not_cut_by_a_late_end(new_gateway, ends):
    """The last bytes of the answer wait in the gateway, because those before them fill the system's buffers. How many
    fit there is unknown, so the answers have many lengths."""
    system = int(pathlib.Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
    lengths = list(range(50_000, system + 200_000, 40_000))
    upstream = Upstream(
        lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (size := lengths.pop()) + b"x" * size
    )
    routed(new_gateway, upstream.port)
    gateway = new_gateway.start()
    clients = []
    for _ in range(len(lengths)):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", gateway.ports[0]))
        client.settimeout(20)
        client.sendall(b"GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        clients.append(client)
    wait_for(lambda: not lengths, "their requests")
    time.sleep(1)
    if ends == "the gateway":
        gateway.server.process.terminate()
    else:
        for client in clients:
            client.shutdown(socket.SHUT_WR)
    time.sleep(1)
    # All at once, because the gateway waits for them only as long as `drain` says.
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        answers = list(pool.map(whole, clients))
    assert [(length, got) for length, got in answers if got < length] == []
    upstream.close()


def test_curl_by_http2_at_a_limited_rate(slow):
    if not slow.certificate:
        pytest.skip("HTTP/2 is offered by TLS")
    done = subprocess.run(
        [
            "curl",
            "-sS",
            "--http2",
            "--limit-rate",
            "2M",
            "--cacert",
            slow.certificate,
            "-o",
            "/dev/null",
            "-w",
            "%{http_version} %{size_download}",
            slow.url + "/open/x",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == f"2 {SIZE}", done


def resident(gateway):
    """The gateway's resident memory in MiB."""
    status = pathlib.Path(f"/proc/{gateway.server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_client_that_reads_nothing_costs_little(new_gateway):
    """Attack: many clients request large files and read nothing. `Tests/Bench/slow_readers.py` does it with more of
    them."""
    upstream = Upstream(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + b"x" * SIZE)
    gateway = new_gateway
    routed(gateway, upstream.port)
    gateway.start()
    assert requests.get(f"{gateway.url}/open/x", timeout=20).status_code == 200
    quiet = resident(gateway)
    readers = []
    for _ in range(400):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", gateway.ports[0]))
        reader.sendall(b"GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        readers.append(reader)
    wait_for(lambda: len(upstream.received) >= 400, "their requests", 20)
    time.sleep(2)
    held = resident(gateway) - quiet
    # 64 KiB each, plus the cost of a connection.
    assert held < 400 * 96 / 1024 + 10, held
    for reader in readers:
        reader.close()
    wait_for(lambda: resident(gateway) - quiet < 30, "the memory", 20)
    upstream.close()
