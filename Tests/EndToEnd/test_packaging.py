"""The contents of Packaging/ except the packages, which Tests/Packages covers: manual pages, completions, and the
examples for containers and Kubernetes."""

import os
import re
import secrets
import shutil
import subprocess
import sys

import pytest
import yaml

from local_gateway import BIN
from processes import ROOT

PACKAGING = ROOT / "Packaging"
KUBERNETES = PACKAGING / "kubernetes"


PROGRAMS = ("moongate", "moongate-provider")


def moongate(*arguments, program="moongate", **env):
    return subprocess.run(
        [str(BIN / program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={**os.environ, **env},
    )


def documents(*files):
    """All Kubernetes documents of the files, by kind and name."""
    found = {}
    for file in files or sorted(KUBERNETES.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            found[document["kind"], document["metadata"]["name"]] = document
    return found


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manual")
    for program in PROGRAMS:
        (folder / "help.json").write_text(moongate("--experimental-dump-help", program=program).stdout)
        subprocess.run(
            [sys.executable, PACKAGING / "tools/manual.py", folder / "help.json", folder / "man1", "0.1.0", "2026-01-01"],
            check=True,
            timeout=60,
        )
    return folder / "man1"


def test_every_command_has_a_manual_page(manual):
    commands = re.findall(r"^  ([a-z-]+) ", moongate("--help").stdout.split("SUBCOMMANDS:")[1], re.M)
    assert len(commands) > 10
    assert {file.name for file in manual.iterdir()} == {"moongate.1"} | {f"moongate-{name}.1" for name in commands}
    # The page of the program, in place of that of the command `moongate provider`.
    tools = (manual / "moongate-provider.1").read_text()
    assert ".SS test\n" in tools and ".SS new\n" in tools and "\\-\\-show\\-secrets" in tools
    account = (manual / "moongate-account.1").read_text()
    assert ".SS account unlock" in account and "\\-\\-config" in account
    for file in manual.iterdir():
        text = file.read_text()
        assert text.startswith(".TH") and ".SH DESCRIPTION" in text, file
        # For troff, a line that begins with a dot or a quote is a command.
        for line in text.splitlines():
            assert not line.startswith("'") and (
                not line.startswith(".") or re.match(r"\.(TH|SH|SS|TP|PP|BR|nh|ad)\b", line)
            ), (file, line)


@pytest.mark.parametrize("program, command", zip(PROGRAMS, ("health", "test")))
@pytest.mark.parametrize(
    "shell, syntax", [("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])]
)
def test_completions(shell, syntax, program, command, tmp_path):
    script = moongate("--generate-completion-script", shell, program=program)
    assert script.returncode == 0 and command in script.stdout
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "completion"
    file.write_text(script.stdout)
    assert subprocess.run([*syntax, file], timeout=60).returncode == 0


def write_configuration(config_map, folder):
    """Writes the folder that the Deployment mounts from a ConfigMap."""
    volumes = documents()["Deployment", "moongate"]["spec"]["template"]["spec"]["volumes"]
    items = next(volume for volume in volumes if volume["name"] == "config")["configMap"]["items"]
    assert {item["key"] for item in items} == set(config_map["data"]), "the volume lacks a file"
    for item in items:
        file = folder / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(config_map["data"][item["key"]])


def test_the_configuration_for_kubernetes(tmp_path):
    write_configuration(documents()["ConfigMap", "moongate"], tmp_path)
    env = {"MOONGATE_STORE": "postgres://moongate@postgres.databases/moongate", "MOONGATE_KEY": secrets.token_hex(32)}
    told = moongate("check", "--config", tmp_path, **env)
    assert told.returncode == 0 and "warning" not in told.stdout, told.stdout + told.stderr
    lua = (tmp_path / "gateway.lua").read_text()
    assert 'admin = "127.0.0.1:9901"' in lua, "the admin listener needs no token: it must not be reached by other pods"


def test_the_template_of_the_secret_is_refused(tmp_path):
    """Attack: a cluster with the unchanged template has a publicly known master key."""
    write_configuration(documents()["ConfigMap", "moongate"], tmp_path)
    values = documents()["Secret", "moongate"]["stringData"]
    told = moongate("serve", "--config", tmp_path, MOONGATE_STORE=values["store"], MOONGATE_KEY=values["master.key"])
    assert told.returncode == 1 and "key in the environment is too short" in told.stderr, told.stdout + told.stderr


def test_the_configuration_of_the_compose_file(tmp_path):
    told = moongate(
        "check", "--config", PACKAGING / "container/config", MOONGATE_STORE="postgres://moongate:00@postgres/moongate"
    )
    assert told.returncode == 0 and "warning" not in told.stdout, told.stdout + told.stderr


def test_examples_match_the_output_of_init(tmp_path):
    """Flows, policies and accounts of the examples equal those of `moongate init`, so that changes must be applied
    to both."""
    folder = tmp_path / "site"
    told = moongate(
        "init",
        folder,
        "--public-url",
        "https://auth.example.com",
        "--upstream",
        "http://web.apps.svc.cluster.local",
        "--store",
        "sqlite",
        "--messages",
        "smtp://localhost",
    )
    assert told.returncode == 0, told.stderr
    written = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.lua")}
    data = documents()["ConfigMap", "moongate"]["data"]
    assert {path.replace("/", ".") for path in written} == set(data)
    compose = PACKAGING / "container/config"
    assert set(written) == {str(file.relative_to(compose)) for file in compose.rglob("*.lua")}
    for path, text in written.items():
        if path not in ("gateway.lua", "routes.lua"):
            assert data[path.replace("/", ".")] == text and (compose / path).read_text() == text, path


def test_pods_have_no_rights():
    """Attack: a compromised service of the cluster reaches the admin listener, or a compromised gateway reaches the
    node."""
    spec = documents()["Deployment", "moongate"]["spec"]["template"]["spec"]
    (gateway,) = spec["containers"]
    assert (
        spec["securityContext"]["runAsNonRoot"]
        and not spec["automountServiceAccountToken"]
        and spec["securityContext"]["seccompProfile"]
    )
    assert gateway["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [port["containerPort"] for port in gateway["ports"]] == [8080]
    assert [port["targetPort"] for port in documents()["Service", "moongate"]["spec"]["ports"]] == ["http"]
    assert "--alive" in gateway["livenessProbe"]["exec"]["command"], (
        "a database that is down would restart every gateway"
    )
    assert "--alive" not in gateway["readinessProbe"]["exec"]["command"]
    image = (PACKAGING / "container/Containerfile").read_text()
    assert f"USER {spec['securityContext']['runAsUser']}:" in image
    services = yaml.safe_load((PACKAGING / "container/compose.yaml").read_text())["services"]
    assert services["gateway"]["read_only"] and services["gateway"]["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for one in services.values() for port in one.get("ports", []))


def test_the_examples_for_proxies_fit_together():
    found = documents()
    names = {
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in found.values() if one["kind"] == "Service"
    }
    assert names == {("moongate", "moongate")}
    headers = {"remote-user", "remote-email", "remote-phone", "remote-name", "remote-groups", "x-moongate-assertion"}
    annotations = found["Ingress", "web"]["metadata"]["annotations"]
    assert {
        name.lower() for name in annotations["nginx.ingress.kubernetes.io/auth-response-headers"].split(",")
    } == headers
    assert annotations["nginx.ingress.kubernetes.io/auth-url"].endswith("/auth/forward/nginx")
    policy = found["SecurityPolicy", "moongate"]["spec"]["extAuth"]
    assert (
        policy["failOpen"] is False
        and set(policy["http"]["headersToBackend"]) == headers
        and policy["http"]["path"] == "/auth/forward/envoy"
    )
    removed = found["ClientTrafficPolicy", "moongate"]["spec"]["headers"]["earlyRequestHeaders"]["remove"]
    assert headers <= set(removed)
