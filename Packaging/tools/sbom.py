"""Writes a CycloneDX 1.6 document of the program's components: the linked Swift packages, the Swift runtime, and the
system's libraries.

usage: sbom.py SCRATCH BINARY OUT.json          the document; wants MOONGATE_VERSION and SOURCE_DATE_EPOCH
       sbom.py --licences SCRATCH OUT.txt       the licences and notices of linked packages
       sbom.py --version-of NAME STATE.json     the version of one package, for the build"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

# By the beginning of a licence file.
LICENCES = [
    ("Apache License", "Apache-2.0"),
    ("MIT License", "MIT"),
    ("Permission is hereby granted, free of charge", "MIT"),
]
# Third-party code inside packages: what is compiled in, and its licence.
BUNDLED = {"swift-nio-ssl": "BoringSSL", "swift-crypto": "BoringSSL", "swift-nio-extras": "zlib"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def packages(state):
    """The resolved Swift packages: (identity, address, version, commit, folder of the checkout), by identity."""
    found = []
    for entry in json.loads(pathlib.Path(state).read_text())["object"]["dependencies"]:
        reference, checkout = entry["packageRef"], entry["state"]["checkoutState"]
        version = checkout.get("version") or checkout.get("branch") or checkout["revision"]
        found.append((reference["identity"], reference["location"], version, checkout["revision"], entry["subpath"]))
    return sorted(found)


def notices(checkout):
    return sorted(one for one in checkout.iterdir() if re.match(r"(LICEN[CS]E|NOTICES?)(\.txt|\.md)?$", one.name))


def licence(checkout):
    for file in notices(checkout):
        head = file.read_text(errors="replace")[:600]
        for words, name in LICENCES:
            if file.name.startswith("LICEN") and words in head:
                return name
    sys.exit(f"The licence of {checkout.name} is not known: add it to LICENCES in {__file__}.")


def runtime():
    """The folder and version of the Swift toolchain."""
    swift = pathlib.Path(shutil.which("swift")).resolve()
    return swift.parent.parent, re.search(r"Swift version ([0-9.]+)", run("swift", "--version")).group(1)


def graph(scratch):
    """The direct dependencies of each Swift package."""
    edges = {}

    def walk(node):
        edges.setdefault(node["identity"], set()).update(child["identity"] for child in node["dependencies"])
        for child in node["dependencies"]:
            walk(child)

    root = json.loads(run("swift", "package", "--scratch-path", scratch, "show-dependencies", "--format", "json"))
    walk(root)
    return root["identity"], edges


def libraries(binary):
    """The system libraries that the program links, with their Debian packages: (file, package, version)."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", binary))
    places = dict(re.findall(r"(\S+) => (\S+)", run("ldd", binary)))
    found = []
    for name in sorted(needed):
        if name not in places:
            continue
        path = str(pathlib.Path(places[name]).resolve())
        owner = ""
        for one in (path, path.removeprefix("/usr"), places[name]):
            told = subprocess.run(["dpkg-query", "-S", one], capture_output=True, text=True)
            if told.returncode == 0:
                owner = told.stdout.split(":")[0]
                break
        version = run("dpkg-query", "-W", "-f=${Version}", owner) if owner else "unknown"
        found.append((name, owner or name, version))
    return found


def component(kind, name, version, purl, **more):
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}


def swift_component(identity, location, version, revision, checkout):
    address = location.removeprefix("https://").removesuffix(".git")
    made = component(
        "library",
        identity,
        version,
        f"pkg:swift/{address}@{version}",
        licenses=[{"license": {"id": licence(checkout)}}],
        externalReferences=[{"type": "vcs", "url": location}],
        properties=[{"name": "moongate:commit", "value": revision}],
    )
    if identity in BUNDLED:
        made["properties"].append({"name": "moongate:bundles", "value": BUNDLED[identity]})
    return made


def document(scratch, binary):
    version = os.environ["MOONGATE_VERSION"]
    scratch = pathlib.Path(scratch)
    root, edges = graph(str(scratch))
    swift_packages = {
        identity: swift_component(identity, location, number, revision, scratch / "checkouts" / folder)
        for identity, location, number, revision, folder in packages(scratch / "workspace-state.json")
        if identity in edges
    }
    _, swift = runtime()
    toolchain = component(
        "library",
        "swift",
        swift,
        f"pkg:generic/swift@{swift}",
        description="Swift's runtime, Foundation, Dispatch and ICU, linked in",
        licenses=[{"license": {"id": "Apache-2.0"}}],
    )
    system = {}
    for file, package, number in libraries(binary):
        made = system.setdefault(
            package, component("library", package, number, f"pkg:deb/debian/{package}@{number}", properties=[])
        )
        made["properties"].append({"name": "moongate:file", "value": file})
    own = component(
        "application",
        "moongate",
        version,
        f"pkg:generic/moongate@{version}",
        licenses=[{"license": {"id": "Apache-2.0"}}],
    )
    refs = {identity: one["bom-ref"] for identity, one in swift_packages.items()}
    tree = [
        {
            "ref": own["bom-ref"],
            "dependsOn": sorted(
                [refs[one] for one in edges[root]]
                + [toolchain["bom-ref"]]
                + [one["bom-ref"] for one in system.values()]
            ),
        }
    ]
    tree += [
        {"ref": refs[identity], "dependsOn": sorted(refs[one] for one in edges[identity])} for identity in sorted(refs)
    ]
    tree += [{"ref": one["bom-ref"], "dependsOn": []} for one in [toolchain, *system.values()]]
    components = sorted([*swift_packages.values(), toolchain, *system.values()], key=lambda one: one["bom-ref"])
    moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": moment, "component": own},
        "components": components,
        "dependencies": tree,
    }
    # The same contents give the same serial number.
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).digest()
    return {**made, "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"}


def licences(scratch):
    """All licences and notices of linked code, which must be distributed with the program."""
    scratch = pathlib.Path(scratch)
    parts = ["The program contains these packages.\n"]
    for identity, location, version, _, folder in packages(scratch / "workspace-state.json"):
        for file in notices(scratch / "checkouts" / folder):
            parts.append(
                f"{'=' * 78}\n{identity} {version}, {location}: {file.name}\n{'=' * 78}\n{file.read_text(errors='replace').strip()}\n"
            )
    folder, version = runtime()
    for file in sorted(folder.glob("share/swift/LICENSE*")):
        parts.append(f"{'=' * 78}\nSwift {version}\n{'=' * 78}\n{file.read_text(errors='replace').strip()}\n")
    return "\n".join(parts)


def main(arguments):
    match arguments:
        case ["--version-of", name, state]:
            versions = {identity: version for identity, _, version, _, _ in packages(state)}
            print(versions[name])
        case ["--licences", scratch, out]:
            pathlib.Path(out).write_text(licences(scratch))
        case [scratch, binary, out]:
            pathlib.Path(out).write_text(json.dumps(document(scratch, binary), indent=2, sort_keys=True) + "\n")
            print(out)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
