"""The list of components, the manifests and the compose file by the schemas that others have published."""

import json
import os
import subprocess
import sys

import compose_spec
import kubernetes_validate
import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from conftest import ROOT, VERSION, product

KUBERNETES = ROOT / "Packaging/kubernetes"
# Kinds that Kubernetes itself does not define. Their schemas are not to be had here: Tests/EndToEnd/test_packaging.py
# holds them together.
OTHERS = {"Gateway", "HTTPRoute", "ReferenceGrant", "SecurityPolicy", "ClientTrafficPolicy"}


def test_the_list_of_components():
    text = product("moongate-*.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    names = {one["name"] for one in document["components"]}
    assert names >= {
        "swift",
        "swift-nio",
        "swift-nio-ssl",
        "hummingbird",
        "grdb.swift",
        "liblua5.4-0",
        "libsqlite3-0",
        "libpq5",
        "libldap-2.5-0",
        "libargon2-1",
        "libmaxminddb0",
    }, names
    assert all(one["version"] and one["version"] != "unknown" for one in document["components"])
    refs = {one["bom-ref"] for one in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
    for edge in document["dependencies"]:
        assert edge["ref"] in refs and set(edge["dependsOn"]) <= refs
    assert str(ROOT) not in text and "file://" not in text


def test_the_list_is_the_same_each_time(tmp_path):
    made = tmp_path / "list.json"
    first = product("moongate-*.cdx.json")
    moment = json.loads(first.read_text())["metadata"]["timestamp"]
    seconds = subprocess.run(
        ["date", "-u", "-d", moment, "+%s"], capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run(
        [
            sys.executable,
            ROOT / "Packaging/tools/sbom.py",
            ROOT / ".build-package",
            ROOT / ".build-package/release/moongate",
            made,
        ],
        check=True,
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": seconds, "MOONGATE_VERSION": VERSION},
        timeout=120,
    )
    assert made.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("file", sorted(KUBERNETES.glob("*.yaml")), ids=lambda file: file.name)
def test_manifests_by_their_schemas(file):
    validated = 0
    for document in yaml.safe_load_all(file.read_text()):
        if document["kind"] in OTHERS:
            continue
        kubernetes_validate.validate(document, "1.31", strict=True)
        validated += 1
    assert validated or file.name.startswith("gateway-api")


def test_a_mistake_in_a_manifest_is_found():
    document = next(yaml.safe_load_all((KUBERNETES / "deployment.yaml").read_text()))
    document["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.31", strict=True)


def test_the_compose_file():
    text = (ROOT / "Packaging/container/compose.yaml").read_text()
    read = compose_spec.PyCompose.from_yaml(text)
    read.validate()
    assert set(read.service_names()) == {"gateway", "postgres", "service", "mail"}
    with pytest.raises(ValueError):
        compose_spec.PyCompose.from_yaml(text.replace("read_only: true", "read_onli: true", 1)).validate()
