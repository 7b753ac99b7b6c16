"""`moongate app`: lists apps, writes their secrets, and shows what they would learn about a user
(docs: Documentation/guides/apps.md)."""

import json
import os
import stat

import pytest

from attack import relaxed
from test_accounts import tool

APPS = """return apps {
  grafana = app {
    name = "Grafana", secret = file "secrets/grafana",
    redirect_uris = { "https://grafana.example.com/in" },
    require = { group = "staff" },
    claims = function(f) return { role = f.session.groups.ops and "Admin" or "Viewer" } end,
  },
  wiki = app { secret = env "WIKI_SECRET", redirect_uris = { "https://wiki.example.com/in" } },
  mobile = app { public = true, redirect_uris = { "com.example.app:/in" } },
}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    (gateway.config / "accounts.lua").write_text(
        "return accounts { groups = { ops = members(), staff = members() } }\n"
    )
    yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module")
def registered(gateway):
    """The gateway with apps, whose secret is written before the configuration is valid."""
    # Without `wiki`, whose environment variable does not exist.
    kept = [line for line in APPS.splitlines() if "wiki" not in line]
    (gateway.config / "apps.lua").write_text("\n".join(kept) + "\n")
    status, text, _ = tool(gateway, "check")
    assert status == 1
    told = "secrets/grafana: the file does not exist; write a new secret into it with `moongate app secret grafana`"
    assert told in " ".join(text.split())
    status, text, error = tool(gateway, "app", "secret", "grafana", "--json")
    assert status == 0, error
    assert json.loads(text) == {"app": "grafana", "file": str(gateway.config / "secrets/grafana")}
    return gateway


def test_secret_is_private_and_new_each_time(registered):
    file = registered.config / "secrets/grafana"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    first = file.read_text()
    assert len(first.strip()) == 43
    status, text, error = tool(registered, "app", "secret", "grafana")
    assert status == 0, error
    assert first.strip() not in text and file.read_text() != first
    assert "; the previous secret stops within a second: copy the new one into the app" in text
    assert file.read_text().strip() not in text + error
    assert sorted(os.listdir(registered.config / "secrets")) == ["grafana"]


@pytest.mark.parametrize(
    "app, status, sentence",
    [
        ("wiki", 2, "takes the secret of wiki from the environment variable WIKI_SECRET"),
        ("mobile", 2, "apps.lua names no secret of mobile"),
        ("grafanna", 1, 'defines no app "grafanna"; did you mean `grafana`?'),
    ],
)
def test_other_secrets_are_not_written(registered, tmp_path, app, status, sentence):
    class Folder:
        config = tmp_path

    (tmp_path / "apps.lua").write_text(APPS)
    code, _, error = tool(Folder, "app", "secret", app)
    assert code == status and sentence in error, error
    assert not (tmp_path / "secrets").exists()


def test_apps_are_listed(registered):
    status, text, error = tool(registered, "app", "list")
    assert status == 0, error
    assert text.splitlines() == [
        'grafana  "Grafana"  secret  authorization_code, refresh_token  requires { group = "staff" }  apps.lua:2',
        "mobile  public  authorization_code, refresh_token  apps.lua:8",
    ]
    apps = json.loads(tool(registered, "app", "list", "--json")[1])
    assert [app["app"] for app in apps] == ["grafana", "mobile"] and apps[1]["consent"] == "once"


def test_claims_are_shown_before_the_sign_in(registered, number):
    registered.register(number)
    status, text, error = tool(registered, "app", "claims", "grafana", number)
    assert status == 1, error
    assert text.startswith("refused: the account is not in the group staff, as `require` demands (apps.lua:5)")
    assert tool(registered, "group", "add", "staff", number)[0] == 0
    status, text, error = tool(registered, "app", "claims", "grafana", number, "--json")
    assert status == 0, error
    shown = json.loads(text)
    assert shown["refusal"] is None and shown["session"].startswith("se_")
    assert shown["claims"]["role"] == "Viewer" and shown["claims"]["sub"] == shown["account"]
    assert shown["claims"]["groups"] == ["staff"] and shown["rules"]["role"] == "apps.grafana.claims"
    status, text, _ = tool(registered, "app", "claims", "grafana", number, "--scope", "openid", "--json")
    assert "groups" not in json.loads(text)["claims"]
    status, _, error = tool(registered, "app", "claims", "grafana", number, "--scope", "phone")
    assert status == 1 and "grafana may not ask for the scope phone" in error
    assert tool(registered, "account", "lock", number)[0] == 0
    status, text, _ = tool(registered, "app", "claims", "grafana", number)
    assert status == 1 and text.startswith("refused: the account is locked")


def test_failing_claims_are_no_refusal(registered, number):
    registered.register(number)
    assert tool(registered, "group", "add", "staff", number)[0] == 0
    file = registered.config / "apps.lua"
    before = file.read_text()
    try:
        billing = 'billing = app { keys = "https://billing.example.com/jwks.json", grants = { "client_credentials" } },'
        file.write_text(
            before.replace("return { role =", 'if f.session then error("no team") end return { role =').replace(
                "mobile =", billing + "\n  mobile ="
            )
        )
        status, _, error = tool(registered, "app", "claims", "grafana", number)
        assert status == 2 and "no team" in error
        status, _, error = tool(registered, "app", "claims", "billing", number)
        assert status == 1 and "No user signs in to billing" in error
    finally:
        file.write_text(before)
