"""WebSockets through the gateway: a byte tunnel bound to a session, with independent clients and services."""

import asyncio
import hashlib
import os
import random
import ssl
import threading

import pytest
import websockets
import websockets.asyncio.client
import websockets.asyncio.server
import websockets.exceptions
import wsproto
import wsproto.events
from wsproto.frame_protocol import CloseReason

from local_gateway import LocalGateway, wait_for
from test_http2 import routed
from test_tls import certificate, speak_tls

SIZES = [0, 1, 124, 125, 126, 127, 128, 1000, 4096, 65534, 65535, 65536, 65537, 131071, 1 << 20, (1 << 20) + 3, 8 << 20]


class EchoService:
    """Echoes messages unchanged, and the received close code."""

    def __init__(self):
        self.ready = threading.Event()
        self.codes = []
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()
        assert self.ready.wait(10)

    async def _run(self):
        async with websockets.asyncio.server.serve(
            self._echo, "127.0.0.1", 0, max_size=None, compression=None, ping_interval=None
        ) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await server.serve_forever()

    async def _echo(self, socket):
        try:
            async for message in socket:
                if message == "close 4001":
                    await socket.close(4001, "as asked")
                    return
                await socket.send(message)
        except websockets.exceptions.ConnectionClosed:
            pass
        finally:
            self.codes.append((socket.close_code, socket.close_reason))


@pytest.fixture(scope="module")
def service():
    return EchoService()


@pytest.fixture(scope="module", params=["ws", "wss"])
def gateway(request, tmp_path_factory, service):
    folder = tmp_path_factory.mktemp(request.param)
    gateway = LocalGateway(folder)
    gateway.certificate = None
    if request.param == "wss":
        cert, key = certificate(folder, "one")
        gateway.certificate = cert
        speak_tls(gateway, cert, key)
        os.environ["REQUESTS_CA_BUNDLE"] = str(cert)
    routed(gateway, service.port)
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500200")["session"]["token"]
        yield gateway
    finally:
        os.environ.pop("REQUESTS_CA_BUNDLE", None)
        gateway.stop()


def options(gateway, signed_in=False):
    found = {"max_size": None, "ping_interval": None, "open_timeout": 20}
    if gateway.certificate:
        context = ssl.create_default_context(cafile=str(gateway.certificate))
        # The gateway prefers h2, but WebSockets need HTTP/1.1.
        context.set_alpn_protocols(["http/1.1"])
        found["ssl"] = context
    if signed_in:
        name = "__Host-moongate" if gateway.certificate else "moongate"
        found["additional_headers"] = {"Cookie": f"{name}={gateway.token}"}
        found["origin"] = gateway.url
    return found


def address(gateway, path):
    return gateway.url.replace("http", "ws", 1) + path


def run(gateway, body, path="/open/ws", **changes):
    async def inner():
        made = {**options(gateway), **changes}
        async with websockets.asyncio.client.connect(address(gateway, path), **made) as socket:
            return await asyncio.wait_for(body(socket), 60)

    return asyncio.run(inner())


@pytest.mark.parametrize("kind", ["text", "binary"])
@pytest.mark.parametrize("compression", [None, "deflate"])
def test_messages_of_all_sizes(gateway, kind, compression):
    async def body(socket):
        for size in SIZES:
            sent = os.urandom(size) if kind == "binary" else "ä€𝄞x" * (size // 10)
            await socket.send(sent)
            assert await socket.recv() == sent

    run(gateway, body, compression=compression)


def test_fragments(gateway):
    async def body(socket):
        for pieces in [1, 2, 3, 17, 500]:
            part = os.urandom(777)
            await socket.send([part] * pieces)
            assert await socket.recv() == part * pieces
        texts = ["a", "", "€", "", "", "end"]
        await socket.send(texts)
        assert await socket.recv() == "".join(texts)

    run(gateway, body)


def test_pings_between_fragments(gateway):
    async def body(socket):
        async def slowly():
            for number in range(20):
                yield f"{number} "
                pong = await socket.ping(os.urandom(number * 6))
                await asyncio.wait_for(pong, 10)

        await socket.send(slowly())
        assert await socket.recv() == "".join(f"{number} " for number in range(20))

    run(gateway, body)


@pytest.mark.parametrize(
    "code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]
)
def test_close_codes_reach_the_service(gateway, service, code):
    reason = f"reason {code} {gateway.ports[0]}"

    async def body(socket):
        await socket.close(code, reason)

    run(gateway, body)
    wait_for(lambda: (code, reason) in service.codes, f"{code} at the service")


def test_the_services_close_reaches_the_client(gateway):
    async def body(socket):
        await socket.send("close 4001")
        with pytest.raises(websockets.exceptions.ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd.code == 4001 and closed.value.rcvd.reason == "as asked"

    run(gateway, body)


def test_a_flood_both_ways(gateway):
    """Ten thousand messages in flight: back-pressure, and nothing lost or reordered."""
    messages = [random.Random(n).randbytes(n % 3000) for n in range(10_000)]
    wanted = hashlib.sha256(b"".join(messages)).hexdigest()

    async def body(socket):
        async def send():
            for message in messages:
                await socket.send(message)

        sending = asyncio.ensure_future(send())
        digest = hashlib.sha256()
        for _ in messages:
            digest.update(await socket.recv())
        await sending
        assert digest.hexdigest() == wanted

    run(gateway, body)


def test_many_at_once(gateway):
    async def one(number):
        async with websockets.asyncio.client.connect(address(gateway, "/open/ws"), **options(gateway)) as socket:
            for turn in range(20):
                await socket.send(f"{number} {turn}")
                assert await socket.recv() == f"{number} {turn}"

    async def all_of_them():
        await asyncio.gather(*(one(number) for number in range(100)))

    asyncio.run(all_of_them())


# Invalid frames: the gateway forwards bytes, and the service's response is returned.

BROKEN = {
    "reserved opcode 3": b"\x83\x80\0\0\0\0",
    "reserved opcode 11": b"\x8b\x80\0\0\0\0",
    "reserved bit": b"\xc1\x80\0\0\0\0",
    "unmasked": b"\x81\x01a",
    "fragmented ping": b"\x09\x80\0\0\0\0",
    "long ping": b"\x89\xfe\x00\x7e\0\0\0\0" + b"p" * 126,
    "continuation of nothing": b"\x80\x80\0\0\0\0",
    "text inside fragments": b"\x01\x81\0\0\0\0a\x81\x81\0\0\0\0b",
    "close of one byte": b"\x88\x81\0\0\0\0x",
    "close 1005": b"\x88\x82\0\0\0\0\x03\xed",
    "close 999": b"\x88\x82\0\0\0\0\x03\xe7",
    "text that is no UTF-8": b"\x81\x82\0\0\0\0\xc3\x28",
    "surrogate": b"\x81\x83\0\0\0\0\xed\xa0\x80",
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("chunk", [1, 1000], ids=["byte by byte", "whole"])
def test_broken_frames_are_the_services_to_refuse(gateway, name, chunk):
    async def body():
        made = options(gateway)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", gateway.ports[0], ssl=made.get("ssl"), server_hostname="localhost" if "ssl" in made else None
        )
        connection = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        writer.write(connection.send(wsproto.events.Request(host=f"localhost:{gateway.ports[0]}", target="/open/ws")))
        closes = []
        frames = BROKEN[name]
        sent = False
        while not closes:
            data = await asyncio.wait_for(reader.read(65536), 10)
            if not data:
                break
            connection.receive_data(data)
            for event in connection.events():
                if isinstance(event, wsproto.events.CloseConnection):
                    closes.append(event.code)
            if not sent and connection.state is wsproto.ConnectionState.OPEN:
                sent = True
                for start in range(0, len(frames), chunk):
                    writer.write(frames[start : start + chunk])
                    await writer.drain()
        writer.close()
        assert (
            sent
            and closes
            and closes[0]
            in (CloseReason.PROTOCOL_ERROR, CloseReason.INVALID_FRAME_PAYLOAD_DATA, CloseReason.MESSAGE_TOO_BIG)
        ), closes

    asyncio.run(body())


# Access control.


def test_a_socket_dies_with_its_session(gateway):
    import requests

    token = gateway.register(f"+9198765{random.randrange(20000, 99999)}")["session"]["token"]
    name = "__Host-moongate" if gateway.certificate else "moongate"
    changes = options(gateway)
    changes.update(additional_headers={"Cookie": f"{name}={token}"}, origin=gateway.url)

    async def body():
        async with websockets.asyncio.client.connect(address(gateway, "/closed/ws"), **changes) as socket:
            await socket.send("here")
            assert await socket.recv() == "here"
            ended = await asyncio.to_thread(
                lambda: requests.delete(
                    f"{gateway.url}/api/auth/session", headers={"Authorization": f"Bearer {token}"}, timeout=10
                )
            )
            assert ended.status_code == 204
            with pytest.raises(websockets.exceptions.ConnectionClosed):
                await asyncio.wait_for(socket.recv(), 3)

    asyncio.run(body())


@pytest.mark.parametrize(
    "changes,status",
    [
        ({}, 401),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": None}, 403),
    ],
    ids=["nobody", "another site's page", "no origin"],
)
def test_refused_origins(gateway, changes, status):
    made = options(gateway, signed_in=bool(changes))
    made.update(changes)
    with pytest.raises(websockets.exceptions.InvalidStatus) as refused:

        async def body():
            async with websockets.asyncio.client.connect(address(gateway, "/closed/ws"), **made):
                pass

        asyncio.run(body())
    assert refused.value.response.status_code == status


def test_a_person_gets_through(gateway):
    async def body(socket):
        await socket.send("hello")
        assert await socket.recv() == "hello"

    run(gateway, body, "/closed/ws", **options(gateway, signed_in=True))
