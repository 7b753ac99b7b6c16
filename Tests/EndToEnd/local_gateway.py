"""The built programs on free ports with a copy of the default config/, and helpers for tests."""

import json
import re
import shutil

import requests

from processes import BIN, ROOT, Program, free_port, wait_for

# The addresses in the default files and README, in the order of LocalGateway.ports.
SHIPPED = ("8080", "9901", "3000")


class Client:
    """A client of a gateway at `url` with its admin listener at `admin`."""

    def api(self, method, path, body=None, **options):
        options.setdefault("timeout", 20)
        return requests.request(method, f"{self.url}/api/auth{path}", json=body, allow_redirects=False, **options)

    def flow(self, name="login"):
        answer = self.api("POST", "/flows", {"flow": name})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def begin(self, flow, phone, **fields):
        return self.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp", "phone": phone, **fields})

    def submit(self, flow, code):
        return self.api("POST", f"/flows/{flow}/submit", {"code": code})

    def outbox(self):
        answer = requests.get(f"{self.admin}/outbox", timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def code(self, phone):
        """The last code that was sent to the number. It may be sent after the answer."""
        return wait_for(
            lambda: next((entry["code"] for entry in self.outbox() if entry["to"] == phone and entry["code"]), None),
            f"a code to {phone}",
        )

    def register(self, phone):
        """Creates an account and returns the completed flow."""
        flow = self.flow("register")
        begun = self.begin(flow, phone)
        assert begun.status_code == 200, begun.text
        done = self.submit(flow, self.code(phone))
        assert done.status_code == 200, done.text
        return done.json()

    def policy(self):
        answer = requests.get(f"{self.admin}/policy", timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_generation(self, old):
        return wait_for(lambda: self.policy()["active"] != old and self.policy(), "a new generation")


class LocalGateway(Client):
    """A gateway with the demo service and its folder."""

    def __init__(self, folder):
        self.config = folder / "config"
        shutil.copytree(ROOT / "config", self.config, ignore=shutil.ignore_patterns("data"))
        # Running the default test cases takes most of a start and reload, and other tests cover them.
        for file in (self.config / "tests").iterdir():
            file.unlink()
        self.ports = [free_port() for _ in SHIPPED]
        for name in ("gateway.lua", "routes.lua"):
            self.edit(name, self.here)
        self.url = f"http://localhost:{self.ports[0]}"
        self.admin = f"http://127.0.0.1:{self.ports[1]}"
        self.service = f"http://127.0.0.1:{self.ports[2]}"
        self.google = self.service + "/mock-google"
        self.logs = []
        self.server = self.demo = None

    def with_cases(self):
        """Restores the default test cases, which run at each start and reload."""
        shutil.copytree(ROOT / "config/tests", self.config / "tests", dirs_exist_ok=True)
        return self

    def here(self, text):
        """Replaces the default addresses with those of this gateway."""
        for shipped, port in zip(SHIPPED, self.ports):
            text = re.sub(rf"\b(127\.0\.0\.1|localhost):{shipped}\b", rf"\1:{port}", text)
        return text

    def registers_app(self, *redirect_uris, name="Example Wallet", consent="never"):
        """Registers the app `mobile` in apps.lua. It is active after the next start, restart or reload."""
        uris = ", ".join(f'"{uri}"' for uri in redirect_uris)
        (self.config / "apps.lua").write_text(
            f"return apps {{\n  mobile = app {{\n    name = {json.dumps(name)}, public = true,\n"
            f'    redirect_uris = {{ {uris} }}, consent = "{consent}",\n  }},\n}}\n'
        )

    def offers(self, *tags):
        """Offers these languages, with the drafts of Documentation/languages for those that are not built in."""
        pages = self.config / "pages"
        pages.mkdir(exist_ok=True)
        for tag in set(tags) - {"en", "hi"}:
            shutil.copy(ROOT / f"Documentation/languages/{tag}.words", pages)
        named = f"languages = {{ {', '.join(json.dumps(tag) for tag in tags)} }},"
        self.edit("gateway.lua", lambda text: text.replace('-- languages = { "en", "hi" },', named))

    def edit(self, name, change):
        file = self.config / name
        before = file.read_text()
        after = change(before)
        # Replace the file atomically, like editors do.
        draft = file.with_name("." + file.name)
        draft.write_text(after)
        draft.rename(file)
        return before

    def serve(self, **env):
        return Program(BIN / "moongate", "serve", "--config", self.config, env=env)

    def start(self, **env):
        if self.demo is None:
            secret = ("--google-secret", self.config / "data/google.secret")
            back = ("--google-redirect", f"{self.url}/auth/callback/google_oauth")
            self.demo = Program(BIN / "demo-service", "--port", self.ports[2], *secret, *back)
            self.demo.wait_line("listens on")
        self.server = self.serve(**env)
        self.logs.append(self.server)
        # With time for a busy machine.
        self.server.wait_line(" ready ", 90)
        return self

    def restart(self, how):
        self.server.end(how)
        self.start()

    def stop(self):
        for program in (self.server, self.demo):
            if program:
                program.end()

    @property
    def log(self):
        return "".join(program.output for program in self.logs)


def wrong(code):
    """A code that differs from this one."""
    return str((int(code) + 1) % 10 ** len(code)).zfill(len(code))


def problem(answer, status, code):
    """Checks the form of a problem response and returns its document."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"].startswith("application/problem+json"), answer.headers
    document = json.loads(answer.content)
    assert document["code"] == code, document
    assert document["status"] == status
    assert document["decision_id"] and document["title"] and document["detail"] and document["type"]
    return document
