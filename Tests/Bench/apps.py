"""Measures what apps cost (the OpenID provider), on one gateway with SQLite.

1. Token requests per second, by code and by refresh token, beside the steps of sign-ins (create, begin, submit), all
  with 16 clients: a token request must not cost more than a step.
2. Userinfo requests per second with an opaque access token beside proxied requests with a session, with wrk, in
  interleaved rounds. Ratios are computed within a round.
3. The p99 of proxied requests at a part of the maximum load: alone, and while apps refresh tokens whose ID tokens are
  signed by EdDSA and by RS256, in turns. RS256 must not raise it.
"""

import argparse
import base64
import hashlib
import http.client
import itertools
import json
import pathlib
import selectors
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse

import peers
from bench import BIN, CLIENTS, Client, Runs, configuration, free_port, run_flows, wrk
from signins import paced

TOKEN_GOAL, USERINFO_GOAL, MOST_P99 = 1.0, 0.9, 1.10
REDIRECT = "http://localhost:9/cb"
APP = """  {name} = app {{
    secret = file "secrets/{name}", redirect_uris = {{ "http://localhost/cb" }}, signing = "{signing}",
  }},
"""
APPS = {"rs": "RS256", "ed": "EdDSA"}
SECRET = "a-secret-of-the-benchmark-that-is-long-enough"


def registered(folder):
    """Adds apps.lua to a configuration."""
    (folder / "secrets").mkdir(mode=0o700)
    for name in APPS:
        file = folder / "secrets" / name
        file.write_text(SECRET)
        file.chmod(0o600)
    entries = "".join(APP.format(name=name, signing=signing) for name, signing in APPS.items())
    (folder / "apps.lua").write_text(f"return apps {{\n{entries}}}\n")


def verifier_and_challenge(number):
    verifier = f"verifier-of-the-benchmark-{number:018d}"
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def authorized(port, session, app, number):
    """A code for a session, and its verifier. The gateway answers with redirects until it sends the code."""
    verifier, challenge = verifier_and_challenge(number)
    fields = {
        "response_type": "code",
        "client_id": app,
        "redirect_uri": REDIRECT,
        "scope": "openid",
        "state": str(number),
        "nonce": str(number),
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    path, cookies = "/auth/openid/authorize?" + urllib.parse.urlencode(fields), {"moongate": session}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(4):
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        host = f"localhost:{port}"
        connection.request("GET", path, headers={"Host": host, "Cookie": cookie, "Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
        for field in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = field.split(";")[0].partition("=")
            cookies[name] = value
        place = answer.headers.get("Location", "")
        if place.startswith(REDIRECT):
            return urllib.parse.parse_qs(urllib.parse.urlsplit(place).query)["code"][0], verifier
        if answer.status not in (302, 303):
            raise RuntimeError(f"{path}: {answer.status}")
        path = place.removeprefix(f"http://{host}")
    raise RuntimeError(f"redirected without end: {path}")


def token_request(port, app, fields):
    """The bytes of a POST to the token endpoint."""
    body = urllib.parse.urlencode(fields).encode()
    basic = base64.b64encode(f"{app}:{SECRET}".encode()).decode()
    head = (
        f"POST /auth/openid/token HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Basic {basic}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def posts(port, requests):
    """Sends the requests with one open call per client. Returns the answers in order and the duration in seconds."""
    answers, waiting, chooser = [None] * len(requests), iter(enumerate(requests)), selectors.DefaultSelector()
    began = time.monotonic()
    for index, request in itertools.islice(waiting, CLIENTS):
        client = Client(port)
        chooser.register(client.socket, selectors.EVENT_READ, client)
        client.send(index, request)
    left = len(requests)
    while left:
        for key, _ in chooser.select(30):
            client = key.data
            content = client.answer()
            if content is None:
                continue
            answers[client.index] = json.loads(content)
            left -= 1
            following = next(waiting, None)
            if following:
                client.send(*following)
    seconds = time.monotonic() - began
    for key in list(chooser.get_map().values()):
        key.fileobj.close()
    return answers, seconds


def by_code(code, verifier):
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT}
    return {**fields, "code_verifier": verifier}


def by_refresh(token):
    return {"grant_type": "refresh_token", "refresh_token": token}


def refreshing(port, app, chains, per_second, ended):
    """Refreshes the tokens of the app in turn until the event, so many times a second."""
    number = itertools.count()
    while not ended.wait(1 / per_second):
        place = next(number) % len(chains)
        client = Client(port)
        client.send(0, token_request(port, app, by_refresh(chains[place])))
        while (content := client.answer()) is None:
            pass
        chains[place] = json.loads(content)["refresh_token"]
        client.socket.close()


def measured_tokens(port, admin, count):
    """Steps, redemptions and refreshes per second; the session and access token of one user, and refresh tokens."""
    who = [{"provider": "phone_otp", "phone": f"+9198{index:08d}"} for index in range(count)]
    done, seconds = run_flows([port], [admin], "register", who)
    sessions = [answer["session"]["token"] for answer in done]
    figures, chains = {"steps": 3 * count / seconds}, {}
    for app in APPS:
        codes = [authorized(port, session, app, number) for number, session in enumerate(sessions)]
        tokens, seconds = posts(port, [token_request(port, app, by_code(*code)) for code in codes])
        figures[f"{app} by code"] = count / seconds
        requests = [token_request(port, app, by_refresh(token["refresh_token"])) for token in tokens]
        tokens, seconds = posts(port, requests)
        figures[f"{app} by refresh"] = count / seconds
        chains[app] = [token["refresh_token"] for token in tokens]
    return figures, sessions[-1], tokens[-1]["access_token"], chains


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--people", type=int, default=400)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=int, default=4, help="of one measurement")
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--refreshes", type=int, default=50, help="a second, while the p99 is measured")
    options.add_argument("--rate", type=int, default=3000, help="proxied requests a second, while the p99 is measured")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    runs, rounds = Runs(), []
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, port, admin = (free_port() for _ in range(3))
        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            configuration(scratch / "config", port, admin, backend)
            registered(scratch / "config")
            runs.start([str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], port, scratch)
            figures, session, access, chains = measured_tokens(port, admin, options.people)
            cookie, bearer = f"Cookie: moongate={session}", [f"Authorization: Bearer {access}", f"Host: localhost:{port}"]
            for _ in range(options.rounds):
                load = options.connections, options.seconds
                row = {
                    "proxied": wrk(port, *load, [cookie])["per_second"],
                    "userinfo": wrk(port, *load, bearer, path="/auth/openid/userinfo")["per_second"],
                    "alone": paced(port, *load, cookie, options.rate)["p99_ms"],
                }
                for app, signing in APPS.items():
                    ended = threading.Event()
                    arguments = (port, app, chains[app], options.refreshes, ended)
                    apps = threading.Thread(target=refreshing, args=arguments)
                    apps.start()
                    row[signing] = paced(port, *load, cookie, options.rate)["p99_ms"]
                    ended.set()
                    apps.join()
                rounds.append(row)
        finally:
            runs.end()
    report(options, figures, rounds)


def report(options, figures, rounds):
    ratio = lambda one, other: statistics.median(row[one] / row[other] for row in rounds)
    median = lambda name: statistics.median(row[name] for row in rounds)
    print(f"\nPer second, {options.people} people, {CLIENTS} clients:")
    for name, value in figures.items():
        print(f"  {name:16}{value:10,.0f}{value / figures['steps']:8.2f} of the steps of sign-ins")
    print(f"\nMedians of {options.rounds} rounds:")
    print(f"  proxied requests per second  {median('proxied'):10,.0f}")
    print(f"  userinfo per second          {median('userinfo'):10,.0f}   {ratio('userinfo', 'proxied'):.2f} of it")
    for name in ("alone", *APPS.values()):
        beside = "" if name == "alone" else f"   {ratio(name, 'alone'):.2f} of alone"
        print(f"  p99 of proxied, {name:12} {median(name):10.2f} ms{beside}")
    slowest = min(figures[f"{app} by {kind}"] for app in APPS for kind in ("code", "refresh")) / figures["steps"]
    signing = ratio("RS256", "EdDSA")
    print(f"\nRS256 ÷ EdDSA: p99 {signing:.2f} times (at most {MOST_P99}).")
    print(f"Token requests: {slowest:.2f} of the steps (at least {TOKEN_GOAL}).")
    print(f"Userinfo: {ratio('userinfo', 'proxied'):.2f} of proxied requests (at least {USERINFO_GOAL}).")
    if options.json:
        options.json.write_text(json.dumps({"per_second": figures, "rounds": rounds}, indent=2))
    if slowest < TOKEN_GOAL or ratio("userinfo", "proxied") < USERINFO_GOAL or signing > MOST_P99:
        sys.exit("missed")


if __name__ == "__main__":
    main()
