"""Documentation/start and the pages for apps: runs their commands, writes their files, and compares what is printed."""

import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest
import requests

from local_gateway import BIN, LocalGateway, wait_for, wrong
from mockgoogle import pkce
from processes import ROOT, Program
from reader import Reader, blocks
from screens import Screen

START = "Documentation/start"


@pytest.fixture
def reader(tmp_path):
    gateway = LocalGateway(tmp_path)
    yield Reader(gateway)
    gateway.stop()


def test_run_the_demo(reader):
    reader.follows(f"{START}/run-the-demo.md", instead={"make run": reader.gateway.start})


def test_first_policy_change(reader, number):
    gateway = reader.gateway.start()
    output = ""
    for language, text in blocks(f"{START}/first-policy-change.md"):
        if language == "text":
            reader.sees(text, output)
            continue
        active, refused = gateway.policy()["active"], gateway.policy()["candidate_refused"]
        output = reader.does(language, text)
        if language == "lua" and "maxx" not in text:
            gateway.wait_generation(active)
        elif language == "lua":
            assert refused is None
            wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal")
    # The page says that the second wrong code locks the number.
    flow = gateway.flow("register")
    assert gateway.begin(flow, number).status_code == 200
    code = wrong(gateway.code(number))
    assert [gateway.submit(flow, code).status_code for _ in range(2)] == [401, 429]


def test_in_front_of_your_service(reader):
    gateway = reader.gateway
    programs = []

    def serve():
        gateway.demo = Program(BIN / "demo-service", "--port", gateway.ports[2])
        gateway.demo.wait_line("listens on")
        gateway.server = Program(BIN / "moongate", "serve", "--config", reader.folder / "site")
        programs.append(gateway.server)
        gateway.server.wait_line(" ready ", 90)

    reader.follows(f"{START}/in-front-of-your-service.md", instead={"moongate serve --config site": serve})
    assert programs


def test_go_to_production(reader, tmp_path):
    folder = tmp_path / "srv"
    reader.before += f'export PATH="{BIN}:$PATH"\n'
    output, ran = "", 0
    for language, text in blocks(f"{START}/go-to-production.md"):
        if language == "sh":
            output = reader.types(text.replace("/srv/moongate", str(folder)).replace("/var/lib/moongate", str(tmp_path / "lib")))
            ran += 1
        elif not text.startswith(("$ ", "# ", "auth.example.com")):
            reader.sees(text, output)
    assert ran == 2 and (folder / "gateway.lua").exists()
    # The command prints the lines for Caddy, and the guide has the commands of the package.
    made = reader.types(f"moongate init {folder}2 --public-url https://auth.example.com --upstream http://127.0.0.1:3000 "
                        "--store sqlite --messages 'smtp://localhost:587?from=login@example.com'")
    assert "reverse_proxy 127.0.0.1:8080" in made
    guide = (ROOT / "Documentation/guides/install.md").read_text()
    for language, text in blocks(f"{START}/go-to-production.md"):
        for line in text.splitlines() if language == "text" else []:
            if line.startswith(("# apt", "# systemctl", "# echo")):
                assert line in guide, line


def test_native_apps(reader):
    reader.gateway.start()
    reader.follows("Documentation/integrations/native-apps.md")


def test_native_apps_with_the_pages(reader, driver, number):
    """The requests of the page, with the sign-in in a browser between them."""
    gateway, asked = reader.gateway, []

    class App(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    verifier, challenge = pkce()
    requests_shown = [text for language, text in blocks("Documentation/integrations/native-apps.md") if language == "http"]
    assert len(requests_shown) == 2

    def send(shown, **values):
        for name, value in values.items():
            shown = shown.replace(name, value)
        head, body = shown.split("\n\n", 1)
        method, path = head.split("\n")[0].split(" ")
        assert "Content-Type: application/json" in head
        return gateway.api(method, path.removeprefix("/api/auth"), json.loads(body))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), App) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://localhost:{server.server_port}/in"
        gateway.registers_app("http://localhost/in")
        gateway.start().register(number)
        created = send(requests_shown[0], CHALLENGE=challenge, **{"https://app.example.com/in": address})
        assert created.status_code == 201, created.text
        flow = created.json()["id"]
        seen = {entry["id"] for entry in gateway.outbox()}
        screen = Screen(driver, gateway).forget().opens(f"/auth/login?id={flow}").fills("phone", number)
        screen.waits(lambda: screen.find("button.main").is_enabled(), "a number that can be sent")
        screen.find("button.main").click()
        screen.at("/auth/verify")
        sent = wait_for(lambda: [entry for entry in gateway.outbox() if entry["id"] not in seen and entry["code"]], "a code")
        screen.enters(sent[0]["code"])
        returned = wait_for(lambda: [path for path in asked if path.startswith("/in?code=")], "the return to the app")
        server.shutdown()
    code = returned[0].removeprefix("/in?code=")
    done = send(requests_shown[1], FLOW=flow, CODE=code, VERIFIER=verifier)
    assert done.status_code == 200 and done.json()["session"]["token"], done.text


def test_native_apps_name_fields_that_the_api_has(reader):
    gateway = reader.gateway.start()
    page = (ROOT / "Documentation/integrations/native-apps.md").read_text()
    schemas = requests.get(f"{gateway.url}/api/auth/openapi.json", timeout=20).json()["components"]["schemas"]
    of = {"step": schemas["Step"], "session": schemas["Session"]}
    named = re.findall(r"`(step|session)\.(\w+)`", page)
    assert len(named) >= 8
    assert [name for name in named if name[1] not in of[name[0]]["properties"]] == []
    codes = (ROOT / "Documentation/reference/codes.md").read_text()
    for row in re.findall(r"^\| (`[^|]+) \|", page.split("\n## Errors\n")[1], re.M):
        for code in re.findall(r"`(\w+)`", row):
            assert f"`{code}`" in codes, code


def test_single_page_apps(reader, tmp_path, number):
    page = "Documentation/integrations/single-page-apps.md"
    settings = next(text for language, text in blocks(page) if text.startswith("-- gateway.lua"))
    routes = next(text for language, text in blocks(page) if text.startswith("-- routes.lua"))
    folder = tmp_path / "spa"
    shutil.copytree(reader.gateway.config / "flows", folder / "flows")
    for file in (folder / "flows").glob("*.lua"):
        if file.name not in ("login.lua", "register.lua"):
            file.unlink()
        else:
            file.write_text(re.sub(r"any_of \{[^}]*\}|\{ \"phone_otp\" \}", '{ "email_code" }', file.read_text()))
    (folder / "gateway.lua").write_text(settings)
    (folder / "routes.lua").write_text(routes)
    told = subprocess.run([BIN / "moongate", "check", "--config", folder], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stdout + told.stderr
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (tmp_path / "api.mjs").write_text(next(text for language, text in blocks(page) if text.startswith("// api.mjs")))
    (tmp_path / "try.mjs").write_text("""
      import { api } from "./api.mjs";
      const [url, token] = process.argv.slice(2), asked = [];
      const go = (address) => asked.push(address);
      await api(url + "/home", {}, go).catch(() => {});
      await api(url + "/api/auth/session", {}, go).catch(() => {});
      await api(url + "/pay/x", { headers: { cookie: `moongate=${token}` } }, go).catch(() => {});
      console.log(asked.join("\\n"));
    """)
    gateway = reader.gateway
    route = f'{{ path = "/pay/**", to = "http://127.0.0.1:{gateway.ports[2]}", require = {{ passed = "totp" }} }},'
    gateway.edit("routes.lua", lambda text: text.replace("return routes {", "return routes {\n  " + route, 1))
    token = gateway.start().register(number)["session"]["token"]
    told = subprocess.run(["node", "try.mjs", gateway.url, token], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    login, again, step = told.stdout.splitlines()
    assert login == again == "/auth/login?return_to=%2F"
    assert step == "/auth/step?flow=step_up&with=totp&return_to=%2F"
    # The page exists: it leads a user without an app to set one up.
    page = requests.get(gateway.url + step, cookies={"moongate": token}, headers={"Accept": "text/html"}, timeout=20)
    assert page.status_code == 200 and "flow=totp_set" in page.url


def test_questions_are_two_clicks_away():
    """The index links to the questions, and each answer is there or one link further."""
    assert "](questions.md)" in (ROOT / "Documentation/README.md").read_text()
    page = (ROOT / "Documentation/questions.md").read_text()
    answers = dict(re.findall(r"^## ([^\n]+\?)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    assert len(answers) >= 10
    # Questions about the service itself have their whole answer here.
    assert len([question for question, answer in answers.items() if "](" in answer]) >= 10
    assert [question for question, answer in answers.items() if len(answer.split()) < 15] == []
