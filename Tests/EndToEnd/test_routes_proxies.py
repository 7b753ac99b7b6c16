"""Forward-auth with the real proxies, set up by what `moongate proxy` prints for routes that name identity headers."""

import base64
import json
import re

import pytest

from local_gateway import LocalGateway, free_port
from manual import block
from processes import wait_for
from proxies import FrontProxy, printed_files
from test_accounts import tool
from test_forward import PHONE, Service, reached

# The headers that routes name, in the order of the routes.
NAMES = ["X-Email", "X-Login", "X-WEBAUTH-USER", "X-Forwarded-Login", "X_Tenant"]
PASSWORD = "open-sesame-of-the-service"


def routes():
    limited = "\n".join(
        f'  {{ path = "/limited-{name}/**", to = "http://127.0.0.1:1", rate = {{ "1/m", per = "account" }} }},'
        for name in FrontProxy.NAMES
    )
    return f"""return routes {{
  {{ path = "/named/**", to = "http://127.0.0.1:1",
    identity = {{ user = "X-WEBAUTH-USER", phone = {{ "X-Login", value = "tel:{{phone}}" }}, email = "X-Email" }} }},
  {{ path = "/other/**", to = "http://127.0.0.1:1",
    identity = {{ user = {{ "X-Forwarded-Login", value = "{{id}}" }}, phone = "X_Tenant" }} }},
  {{ path = "/basic/**", to = "http://127.0.0.1:1",
    identity = {{ basic = {{ user = "{{phone}}", password = file "basic.password" }} }} }},
  {{ path = "/usual/**", to = "http://127.0.0.1:1" }},
  {{ path = "/open/**", to = "http://127.0.0.1:1", allow = true }},
  {{ path = "/ops/**", to = "http://127.0.0.1:1", require = {{ group = "ops" }},
    identity = {{ basic = {{ user = "{{phone}}", password = file "basic.password" }} }} }},
{limited}
}}
"""


class Setting:
    def __init__(self, folder):
        self.service = Service()
        self.gateway = LocalGateway(folder)
        self.gateway.edit(
            "gateway.lua",
            lambda text: text.replace(
                "  region =",
                '  trusted_proxies = { "127.0.0.1/32" }, forward_auth_credentials = true,\n  region =',
                1,
            ),
        )
        self.gateway.edit("routes.lua", lambda _: routes())
        (self.gateway.config / "accounts.lua").write_text("return accounts { groups = { ops = members() } }\n")
        secret = self.gateway.config / "basic.password"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o600)
        self.gateway.demo = self.service
        self.gateway.start()
        self.account = self.gateway.register(PHONE)
        self.id = self.account["account"]["id"]
        self.cookie = f"Cookie: moongate={self.account['session']['token']}"
        self.proxies = {}
        for name in FrontProxy.NAMES:
            status, text, complaint = tool(self.gateway, "proxy", name)
            assert status == 0, complaint
            self.proxies[name] = FrontProxy(
                name, folder / name, free_port(), self.gateway.ports[0], self.service.port, printed=text
            )
        for proxy in self.proxies.values():
            proxy.wait()
            # Traefik listens before it has read its routers.
            wait_for(lambda proxy=proxy: proxy.raw("GET", "/open/x")[0] == 200, f"{proxy.name} to be ready", 30)

    def end(self):
        for proxy in self.proxies.values():
            proxy.end()
        self.gateway.stop()


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    setting = Setting(tmp_path_factory.mktemp("printed"))
    try:
        yield setting
    finally:
        setting.end()


@pytest.fixture(params=FrontProxy.NAMES)
def proxy(request, setting):
    return setting.proxies[request.param]


def told(body):
    """The headers of the request that the service may take for its user, without empty ones."""
    names = re.compile(r"(remote|x.(email|login|webauth|forwarded.login|tenant))\b.*")
    return {name: value for name, value in reached(body) if names.fullmatch(name) and value}


def forged():
    """Every name of a route and of the usual ones, in the spellings that a service may read as the same."""
    names = [*NAMES, "Remote-User", "X-Webauth-Groups"]
    spelled = [*names, *[name.lower() for name in names]]
    spelled += [name.replace("-", "_") for name in names] + [name.replace("_", "-") for name in names]
    return [f"{name}: forged-{index}" for index, name in enumerate(spelled)]


def test_services_get_the_names_of_their_route(setting, proxy):
    status, _, body = proxy.raw("GET", "/named/x", [setting.cookie])
    assert status == 200, body
    assert told(body) == {"x-webauth-user": setting.id, "x-login": f"tel:{PHONE}"}
    status, _, body = proxy.raw("GET", "/other/x", [setting.cookie])
    assert status == 200, body
    assert told(body) == {"x-forwarded-login": setting.id, "x_tenant": PHONE}
    status, _, body = proxy.raw("GET", "/usual/x", [setting.cookie])
    assert status == 200 and told(body) == {"remote-user": setting.id, "remote-phone": PHONE}, body


def test_no_client_sends_a_name_of_any_route(setting, proxy):
    """Attack: the header that one route names, sent to a service of another route, in every spelling."""
    for path, credential in [("/named/x", setting.cookie), ("/usual/x", setting.cookie), ("/open/x", "A: b")]:
        status, _, body = proxy.raw("GET", path, [credential, *forged()])
        assert status == 200, body
        assert [field for field in json.loads(body)["fields"] if "forged" in field] == [], path


def test_basic_replaces_what_the_client_sends(setting, proxy):
    """Attack: a client guesses a password of the service itself, or a token of the gateway reaches the service."""
    expected = "Basic " + base64.b64encode(f"{PHONE}:{PASSWORD}".encode()).decode()
    token = setting.account["session"]["token"]
    for headers in (
        [setting.cookie],
        [setting.cookie, "Authorization: Basic bWFsbG9yeTpndWVzcw=="],
        [f"Authorization: Bearer {token}"],
    ):
        status, _, body = proxy.raw("GET", "/basic/x", headers)
        assert status == 200, body
        assert [value for name, value in reached(body) if name == "authorization"] == [expected], headers
    # On another route, the client's own goes on, and the gateway's token does not.
    status, _, body = proxy.raw("GET", "/open/x", ["Authorization: Basic bWFsbG9yeTpndWVzcw=="])
    assert ("authorization", "Basic bWFsbG9yeTpndWVzcw==") in reached(body)
    status, _, body = proxy.raw("GET", "/usual/x", [f"Authorization: Bearer {token}"])
    assert status == 200 and "authorization" not in dict(reached(body))


def test_no_client_gets_the_password(setting, proxy):
    for path, headers in [("/ops/x", [setting.cookie]), ("/basic/x", ()), ("/basic/x", [setting.cookie])]:
        _, fields, body = proxy.raw("GET", path, headers)
        assert "authorization" not in fields and PASSWORD not in str(fields)
        if path == "/ops/x":
            assert base64.b64encode(f"{PHONE}:{PASSWORD}".encode()) not in body


def test_a_request_beyond_the_rate_gets_429(setting, proxy):
    path = f"/limited-{proxy.name}/x"
    assert proxy.raw("GET", path, [setting.cookie])[0] == 200
    before = len(setting.service.seen)
    status, fields, _ = proxy.raw("GET", path, [setting.cookie])
    assert status == 429, fields
    # The counter counts in twentieths of the interval.
    assert 1 <= int(fields["retry-after"]) <= 63 and "ratelimit" in fields and "ratelimit-policy" in fields
    assert len(setting.service.seen) == before


def test_the_running_gateway_lists_its_routes_without_the_password(setting):
    status, text, complaint = tool(setting.gateway, "policy", "show", "routes")
    assert status == 0, complaint
    assert PASSWORD not in text and "password = a secret" in text
    assert re.search(r'/named/\*\* identity +\{ user = "X-WEBAUTH-USER", email = "X-Email", phone = ', text), text
    assert re.search(r"/open/\*\* allow +true +routes\.lua:\d+", text), text


@pytest.mark.parametrize("name", FrontProxy.NAMES)
def test_without_names_the_guide_is_printed(name, tmp_path):
    gateway = LocalGateway(tmp_path)
    gateway.edit("routes.lua", lambda _: 'return routes { { path = "/**", to = "http://127.0.0.1:3000" } }\n')
    status, text, complaint = tool(gateway, "proxy", name)
    assert status == 0, complaint
    for file, printed in printed_files(text).items():
        same = block(file).replace("8080", str(gateway.ports[0])).replace("auth.example.com", "localhost")
        same = same.replace(r"auth\.example\.com", "localhost").replace(r"auth\\.example\\.com", "localhost")
        assert printed.strip() == same.strip(), file


def test_a_name_that_no_proxy_can_copy_is_refused(tmp_path):
    gateway = LocalGateway(tmp_path)
    route = '{ path = "/**", to = "http://127.0.0.1:3000", identity = { user = "X-$host" } }'
    gateway.edit("routes.lua", lambda _: f"return routes {{ {route} }}\n")
    status, text, complaint = tool(gateway, "proxy", "nginx")
    assert status != 0 and text == "" and "X-$host" in complaint
