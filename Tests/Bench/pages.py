"""Measures the server's cost of pages: from the last byte of the request to the last byte of the page, with the
default configuration.

Two clients run at a time and share the machine, so a figure includes more than rendering; its median must be at most
1 ms. The gateway's processor time per page is also printed, which other load affects less.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.parse

from bench import BIN, ROOT, Runs, call, free_port, wrk

# The phone number of the user whose pages are requested.
PHONE = "+919876543210"


def shipped(folder, gateway, admin):
    shutil.copytree(ROOT / "config", folder, ignore=shutil.ignore_patterns("data"))
    for name in ("gateway.lua", "routes.lua"):
        text = (folder / name).read_text()
        for port, here in ((8080, gateway), (9901, admin)):
            text = re.sub(rf"\b(127\.0\.0\.1|localhost):{port}\b", rf"\1:{here}", text)
        (folder / name).write_text(text)


def begun_by_page(gateway):
    """A registration of a browser without scripts, whose code has been sent: the address of its page, and the cookies.
    Pages show no flow that was begun by the API."""
    pages = http.client.HTTPConnection("127.0.0.1", gateway, timeout=30)
    site = f"localhost:{gateway}"
    form = urllib.parse.urlencode({"with": "phone", "phone": PHONE[:-1] + "1"})
    headers = {"Host": site, "Origin": f"http://{site}", "Content-Type": "application/x-www-form-urlencoded"}
    pages.request("POST", "/auth/register", form, headers)
    answer = pages.getresponse()
    answer.read()
    if answer.status != 303:
        raise RuntimeError(f"POST /auth/register: {answer.status}")
    cookies = [line.partition(";")[0] for line in answer.headers.get_all("Set-Cookie")]
    return answer.headers["Location"], [f"Cookie: {'; '.join(cookies)}"]


def pages(gateway, admin):
    """Path and headers of each measured page."""
    api = http.client.HTTPConnection("127.0.0.1", gateway, timeout=30)
    outbox = http.client.HTTPConnection("127.0.0.1", admin, timeout=30)
    flow = call(api, "POST", "/api/auth/flows", {"flow": "register"})["id"]
    call(api, "POST", f"/api/auth/flows/{flow}/begin", {"provider": "phone_otp", "phone": PHONE})
    code = next(entry["code"] for entry in call(outbox, "GET", "/outbox") if entry["to"] == PHONE)
    token = call(api, "POST", f"/api/auth/flows/{flow}/submit", {"code": code})["session"]["token"]
    waiting, cookies = begun_by_page(gateway)
    cookie = [f"Cookie: moongate={token}"]
    return {
        "/auth/login": [],
        "/auth/login, Hindi": ["Accept-Language: hi"],
        "/auth/register?with=email": [],
        "/auth/logout": [],
        waiting: cookies,
        "/auth/account": cookie,
        "/auth/pin?flow=pin_set": cookie,
    }


def processor(process):
    """The processor time of a process in seconds."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=4, help="of one measurement")
    options.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options = options.parse_args()
    runs = Runs()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        gateway, admin = free_port(), free_port()
        try:
            shipped(scratch / "config", gateway, admin)
            process = runs.start(
                [str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], gateway, scratch
            )
            print(f"{'':36}{'p50 ms':>10}{'p99 ms':>10}{'CPU ms':>10}")
            for name, headers in pages(gateway, admin).items():
                path = name.partition(",")[0]
                before = processor(process)
                found = wrk(gateway, 2, options.seconds, ["Accept: text/html", *headers], path)
                found["cpu_ms"] = (processor(process) - before) / (found["per_second"] * options.seconds) * 1000
                # A flow id is a secret and is not printed.
                shown = re.sub("id=.*", "id=…", name)
                figures[shown] = found
                print(f"{shown:36}{found['p50_ms']:10.2f}{found['p99_ms']:10.2f}{found['cpu_ms']:10.2f}", flush=True)
        finally:
            runs.end()
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    slow = [name for name, found in figures.items() if found["p50_ms"] >= 1]
    if slow:
        sys.exit(f"1 ms or more at the median: {', '.join(slow)}")


if __name__ == "__main__":
    main()
