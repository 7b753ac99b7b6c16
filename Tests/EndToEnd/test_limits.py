"""The cost of floods: registrations, refusals and endless flows."""

import concurrent.futures
import http.client
import json
import time

import requests

from local_gateway import problem

# Loopback has several addresses, which distinguish the clients.
FLOOD, OTHER = "127.0.0.1", "127.0.0.2"


def call(gateway, address, method, path, body=None):
    """A request from an address of this machine. Returns its status and document."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.ports[0], timeout=60, source_address=(address, 0))
    try:
        connection.request(
            method,
            path,
            json.dumps(body) if body is not None else None,
            {"Content-Type": "application/json", "Host": f"localhost:{gateway.ports[0]}"},
        )
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None
    finally:
        connection.close()


def register(gateway, address, number):
    status, flow = call(gateway, address, "POST", "/api/auth/flows", {"flow": "register_email"})
    assert status == 201, flow
    return call(
        gateway,
        address,
        "POST",
        f"/api/auth/flows/{flow['id']}/begin",
        {
            "provider": "password",
            "email": f"person{number}@example.com",
            "password": f"correct horse {number}",
            "first_name": "Asha",
            "last_name": "Rao",
        },
    )


# Attack: many registrations, each of which costs a hash.
def test_of_two_hundred_parallel_registrations_ten_succeed(gateway):
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        flood = [pool.submit(register, gateway, FLOOD, number) for number in range(200)]
        # Another user in the meantime.
        assert register(gateway, OTHER, 1000)[0] == 200
        answers = [one.result() for one in flood]
    statuses = [status for status, _ in answers]
    assert statuses.count(200) == 10 and statuses.count(429) == 190, statuses
    refused = [document for status, document in answers if status == 429]
    # The hour began with the flood, or with a registration that was counted while the refused one was on its way.
    spread = time.monotonic() - began + 1
    waits = [one["retry_after"] for one in refused if one["code"] == "rate_limited"]
    assert len(waits) == 190 and 3600 - spread <= min(waits) and max(waits) <= 3600 + min(spread, 5), waits
    # Sixty of them could begin.
    told = [
        requests.get(f"{gateway.admin}/decisions/{one}", timeout=10).json()["detail"]
        for one in {one["decision_id"] for one in refused}
    ]
    assert {(one["act"], one["rule"]) for one in told} == {
        ("begin", "limits.begin_ip"),
        ("register", "limits.register_ip"),
    }, told


# Attack: junk requests until the trail no longer contains the earlier sign-in.
def test_every_refusal_is_found_and_a_flood_is_one_event(gateway):
    gateway.register("+919999999999")
    junk = [call(gateway, FLOOD, "POST", "/api/auth/flows", {"flow": "none"}) for _ in range(300)]
    assert {status for status, _ in junk} == {422}
    ids = {document["decision_id"] for _, document in junk}
    for one in ids:
        answer = requests.get(f"{gateway.admin}/decisions/{one}", timeout=10)
        assert answer.status_code == 200 and answer.json()["code"] == "invalid_input", answer.text
    events = requests.get(f"{gateway.admin}/events?limit=1000", timeout=10).json()
    refusals = [event for event in events if event["kind"] == "refused"]
    # If the minute changes in between, there are two floods.
    counted = [event["count"] for event in refusals if event["count"] is not None]
    assert 1 <= len(counted) <= 2 and len(refusals) <= 22, refusals
    assert sum(counted) + len(refusals) - len(counted) == 300
    assert any(event["kind"] == "session_started" for event in events)
    assert requests.get(f"{gateway.admin}/decisions/{junk[-1][1]['decision_id']}", timeout=10).json()["count"] >= 1


def test_the_answer_to_the_flood_is_a_refusal_like_any_other(gateway):
    answers = [gateway.api("POST", "/flows", {"flow": "none"}) for _ in range(30)]
    for answer in answers:
        problem(answer, 422, "invalid_input")


# Attack: unfinished flows, each a row of the store.
def test_a_flood_of_flows_evicts_itself(gateway):
    generation = gateway.policy()["active"]
    gateway.edit(
        "policies/google_oauth.lua",
        lambda text: text.replace('max = 60, window = "1h"', 'max = 100000, window = "1h"', 1),
    )
    gateway.wait_generation(generation)

    def begun(address):
        _, flow = call(gateway, address, "POST", "/api/auth/flows", {"flow": "enter"})
        status, document = call(
            gateway, address, "POST", f"/api/auth/flows/{flow['id']}/begin", {"provider": "google_oauth"}
        )
        assert status == 200, document
        return flow["id"]

    other = begun(OTHER)
    first = begun(FLOOD)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        flood = list(pool.map(begun, [FLOOD] * 1_150))
    assert call(gateway, FLOOD, "GET", f"/api/auth/flows/{first}")[0] == 404
    assert call(gateway, FLOOD, "GET", f"/api/auth/flows/{flood[-1]}")[0] == 200
    assert call(gateway, OTHER, "GET", f"/api/auth/flows/{other}")[0] == 200


def test_return_to_of_eight_thousand_octets_is_kept(gateway):
    """RFC 9110 section 4.1 asks for URIs of at least 8,000 octets; longer than 16 KiB is ignored."""
    for length, kept in ((8000, True), (16_384, True), (16_385, False)):
        path = "/" + "a" * (length - 1)
        _, flow = call(gateway, FLOOD, "POST", "/api/auth/flows", {"flow": "register", "return_to": path})
        phone = f"+9199999{length:05}"
        call(gateway, FLOOD, "POST", f"/api/auth/flows/{flow['id']}/begin", {"provider": "phone_otp", "phone": phone})
        status, done = call(gateway, FLOOD, "POST", f"/api/auth/flows/{flow['id']}/submit", {"code": gateway.code(phone)})
        assert status == 200 and (path[1:100] in done["next"]) == kept, done
