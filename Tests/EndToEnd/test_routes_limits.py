"""`allow.networks` and `rate` of routes: the built gateway, its clients at several addresses of this machine, its metrics
and its explanations (docs: Documentation/guides/real-services.md)."""

import concurrent.futures
import http.client
import json
import re
import time

import pytest
import requests

from local_gateway import LocalGateway
from test_accounts import tool
from test_tokens import Service

# Loopback has several addresses, which distinguish the clients.
OFFICE, ELSEWHERE, PROXY = "127.0.0.2", "127.0.0.3", "127.0.0.4"
ROUTES = """return routes {
  { path = "/office/**", to = "http://127.0.0.1:3000", websocket = true,
    allow = { networks = { "127.0.0.2/32", "127.0.0.4/32", "10.20.0.0/16" } } },
  { path = "/staff/**", to = "http://127.0.0.1:3000", allow = { networks = { "127.0.0.2" } },
    require = { group = "staff" } },
  { path = "/tools/**", to = "http://127.0.0.1:3000", allow = { networks = { "127.0.0.2" } }, tokens = true },
  { path = "/named/**", host = "localhost", to = "http://127.0.0.1:3000", allow = { networks = { "127.0.0.2" } } },
  { path = "/account/**", to = "http://127.0.0.1:3000", rate = { "5/10m", per = "account" } },
  { path = "/address/**", to = "http://127.0.0.1:3000", allow = true, rate = { "20/h", per = "ip" } },
  { path = "/together/**", to = "http://127.0.0.1:3000", allow = true, rate = { "7/h", per = "global" } },
  { path = "/token/**", to = "http://127.0.0.1:3000", tokens = true, rate = { "3/h", per = "token" } },
  { path = "/second/**", to = "http://127.0.0.1:3000", allow = true, rate = { "2/5s", per = "ip" } },
  { path = "/kept/**", to = "http://127.0.0.1:3000", allow = true, rate = { "1/h", per = "global" } },
  { path = "/**", to = "http://127.0.0.1:3000" },
}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    service, gateway = Service(), LocalGateway(tmp_path_factory.mktemp("limits"))
    gateway.edit("routes.lua", lambda _: ROUTES.replace("3000", str(service.port)))
    gateway.edit(
        "gateway.lua", lambda text: text.replace("return gateway {", f'return gateway {{\n  trusted_proxies = {{ "{PROXY}" }},', 1)
    )
    gateway.edit(
        "accounts.lua", lambda text: text.replace("return accounts {", "return accounts {\n  groups = { staff = members() },", 1)
    )
    gateway.service = service
    try:
        yield gateway.start()
    finally:
        gateway.stop()
        service.end()


@pytest.fixture
def person(place, number):
    done = place.register(number)
    return {"id": done["account"]["id"], "Cookie": f"moongate={done['session']['token']}"}


def ask(place, path, source=ELSEWHERE, method="GET", host=None, **headers):
    """A request from an address of this machine: the status, the headers in lower case, and the document."""
    connection = http.client.HTTPConnection("127.0.0.1", place.ports[0], timeout=20, source_address=(source, 0))
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers={"Host": host or f"localhost:{place.ports[0]}", **named})
        answer = connection.getresponse()
        content = answer.read()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, fields, json.loads(content) if content.startswith(b"{") else None
    finally:
        connection.close()


def metric(place, route):
    text = requests.get(f"{place.admin}/metrics", timeout=10).text
    found = re.search(rf'^moongate_rate_limited_total{{route="{re.escape(route)}"}} (\d+)', text, re.M)
    return int(found[1]) if found else 0


# Networks


def test_the_network_reaches_the_service_without_a_session(place):
    status, _, received = ask(place, "/office/x", OFFICE, Remote_User="root", X_Moongate_Assertion="x")
    assert status == 200 and not {"remote-user", "x-moongate-assertion"} & set(received), received
    assert ask(place, "/office/x")[0] == 401
    status, fields, _ = ask(place, "/office/x", Accept="text/html")
    assert status == 302 and fields["location"].startswith("/auth/login?return_to="), fields
    assert ask(place, "/other", OFFICE)[0] == 401, "only the routes that say so"


def test_a_session_from_the_network_stays_signed_in(place, person):
    cookie = {"Cookie": person["Cookie"]}
    assert ask(place, "/office/x", OFFICE, **cookie)[2]["remote-user"] == person["id"]
    # The route's rules do not admit the user: the service gets no name.
    assert "remote-user" not in ask(place, "/staff/x", OFFICE, **cookie)[2]
    assert ask(place, "/staff/x", **cookie)[0] == 403
    assert tool(place, "group", "add", "staff", person["id"])[0] == 0
    deadline = time.monotonic() + 10
    while "remote-user" not in (received := ask(place, "/staff/x", OFFICE, **cookie)[2]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert received["remote-groups"] == "staff"
    assert ask(place, "/staff/x", **cookie)[0] == 200


def test_only_the_address_that_the_proxy_names_counts(place):
    for value in (None, "unknown", "203.0.113.7", "10.20.0.1, 203.0.113.7", "10.20.0.1, unknown", PROXY):
        fields = {"X_Forwarded_For": value} if value else {}
        assert ask(place, "/office/x", PROXY, **fields)[0] == 401, value
    assert ask(place, "/office/x", PROXY, X_Forwarded_For="203.0.113.7, 10.20.0.1")[0] == 200
    assert ask(place, "/office/x", ELSEWHERE, X_Forwarded_For="10.20.0.1")[0] == 401, "not a trusted proxy"


def test_forward_auth_opens_the_route_as_well(place, person):
    question = {"X_Forwarded_Method": "GET", "X_Forwarded_Proto": "http", "X_Forwarded_Uri": "/office/x"}
    question["X_Forwarded_Host"] = f"localhost:{place.ports[0]}"
    inside = ask(place, "/auth/forward/caddy", PROXY, **question, X_Forwarded_For="10.20.0.1")
    assert inside[0] == 200 and inside[1]["remote-user"] == "", inside
    outside = ask(place, "/auth/forward/caddy", PROXY, **question, X_Forwarded_For="203.0.113.7")
    assert outside[0] == 401
    signed_in = ask(
        place, "/auth/forward/caddy", PROXY, **question, X_Forwarded_For="10.20.0.1", Cookie=person["Cookie"]
    )
    assert signed_in[0] == 200 and signed_in[1]["remote-user"] == person["id"]


# Attack: a page of another site, in a browser of the office, or one whose name leads to the gateway.
def test_pages_of_other_sites_do_not_use_the_network(place):
    evil = {"Origin": "http://evil.example"}
    for headers in (evil, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}):
        status, _, document = ask(place, "/office/x", OFFICE, "POST", **headers)
        assert status == 403 and document["code"] == "origin_refused", document
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", **headers}
        assert ask(place, "/office/x", OFFICE, **upgrade)[0] == 403
    assert ask(place, "/office/x", OFFICE, "POST", Origin=f"http://localhost:{place.ports[0]}")[0] == 200
    assert ask(place, "/office/x", OFFICE, "POST")[0] == 200
    assert ask(place, "/office/x", OFFICE, host="evil.example")[0] == 401
    assert ask(place, "/named/x", OFFICE, host="evil.example")[0] == 401
    assert ask(place, "/office/x", OFFICE, host=f"127.0.0.1:{place.ports[0]}")[0] == 200


def test_an_access_token_is_judged_as_elsewhere(place):
    assert ask(place, "/tools/x", OFFICE)[0] == 200
    wrong = "Bearer mgt_" + "x" * 43
    assert ask(place, "/tools/x", OFFICE, Authorization=wrong)[0] == 401
    status, secret, complaint = tool(place, "token", "create", "office")
    assert status == 0, complaint
    received = ask(place, "/tools/x", OFFICE, Authorization=f"Bearer {secret.strip()}")[2]
    assert received["remote-user"] == "token:office" and "authorization" not in received


# Rates


def test_an_account_has_its_own_rate(place, person, other_number):
    before = metric(place, "/account/**")
    cookie = {"Cookie": person["Cookie"]}
    for _ in range(5):
        status, fields, _ = ask(place, "/account/x", **cookie)
        assert status == 200 and "ratelimit" not in fields
    # Also from another address and by another session of the account.
    status, fields, document = ask(place, "/account/x", OFFICE, **cookie)
    assert status == 429 and document["code"] == "rate_limited", document
    wait = int(fields["retry-after"])
    assert 1 <= wait <= 631 and document["retry_after"] == wait
    assert fields["ratelimit-policy"] == '"account";q=5;w=600' and fields["ratelimit"] == f'"account";r=0;t={wait}'
    assert metric(place, "/account/**") == before + 1
    other = place.register(other_number())
    assert ask(place, "/account/x", Cookie=f"moongate={other['session']['token']}")[0] == 200
    told = requests.get(f"{place.admin}/decisions/{document['decision_id']}", timeout=10).json()
    assert told["account"] == person["id"] and told["detail"]["rule"] == "rate" and told["detail"]["per"] == "account"
    assert told["detail"]["at"].startswith("routes.lua:") and told["detail"]["max"] == "5"
    page = ask(place, "/account/x", Accept="text/html", Cookie=person["Cookie"])
    assert page[0] == 429 and page[1]["content-type"].startswith("text/html") and "ratelimit" in page[1]


# Attack: many connections at once, on all event loops.
def test_parallel_requests_share_the_rate(place):
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        statuses = list(pool.map(lambda _: ask(place, "/together/x")[0], range(60)))
    assert statuses.count(200) == 7 and statuses.count(429) == 53, statuses


def test_addresses_have_their_own_rates(place):
    statuses = [ask(place, "/address/x", ELSEWHERE)[0] for _ in range(25)]
    assert statuses == [200] * 20 + [429] * 5
    assert ask(place, "/address/x", OFFICE)[0] == 200
    # Through the proxy, the address that it names counts.
    assert ask(place, "/address/x", PROXY, X_Forwarded_For=ELSEWHERE)[0] == 429
    assert ask(place, "/address/x", PROXY, X_Forwarded_For="203.0.113.9")[0] == 200


def test_tokens_have_their_own_rates(place):
    secrets = [tool(place, "token", "create", name)[1].strip() for name in ("first", "second")]
    for secret in secrets:
        statuses = [ask(place, "/token/x", Authorization=f"Bearer {secret}")[0] for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]


def test_a_client_that_waits_as_told_gets_through(place):
    answers = [ask(place, "/second/x") for _ in range(3)]
    assert [status for status, _, _ in answers] == [200, 200, 429]
    time.sleep(int(answers[-1][1]["retry-after"]) + 0.1)
    assert ask(place, "/second/x")[0] == 200


def test_a_reload_keeps_the_counters_of_an_unchanged_route(place):
    assert [ask(place, "/kept/x")[0] for _ in range(2)] == [200, 429]
    old = place.policy()["active"]
    place.edit("routes.lua", lambda text: text.replace("2/5s", "3/5s"))
    place.wait_generation(old)
    assert ask(place, "/kept/x")[0] == 429
