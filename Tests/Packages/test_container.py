"""The Containerfile without a container engine: its steps run in a fresh Debian with a program that is already
compiled. Its base images are not tested."""

import fnmatch
import json
import re
import shutil
import subprocess

import pytest
import requests

from conftest import ROOT, FreshDebian, product
from processes import Program, free_port

CONTAINERFILE = ROOT / "Packaging/container/Containerfile"
# What the Swift image has, of the programs that the build uses. The compiler is a stub.
SWIFT_IMAGE = "git gcc libstdc++-12-dev pkg-config tzdata"


def stages():
    """The instructions of each stage: [[(instruction, arguments)]]."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.M).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    found = []
    for instruction, arguments in lines:
        if instruction == "FROM":
            found.append([])
        found[-1].append((instruction, arguments.strip()))
    return found


def named(stage, instruction):
    return [arguments for name, arguments in stage if name == instruction]


def is_left_out(path):
    """Whether .dockerignore lists the file or a folder above it."""
    patterns = (ROOT / ".dockerignore").read_text().split()
    assert not any(character in pattern for pattern in patterns for character in "!#?[")
    parts = path.split("/")
    for pattern in patterns:
        if pattern.startswith("**/"):
            if any(fnmatch.fnmatchcase(part, pattern[3:]) for part in parts):
                return True
        else:
            assert "/" not in pattern
            if fnmatch.fnmatchcase(parts[0], pattern):
                return True
    return False


def sources():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def variable(name):
    """A variable of the Makefile or packages.mk."""
    text = (ROOT / "Makefile").read_text() + (ROOT / "Packaging/packages.mk").read_text()
    return re.search(rf"^{name} := (.*)$", text, re.M)[1]


def test_one_file_lists_what_is_left_out():
    """Attack: an image contains the master key of the machine that built it. Docker reads only .dockerignore, and
    Podman would prefer .containerignore."""
    others = [*ROOT.rglob("*.containerignore"), *ROOT.rglob("*.dockerignore")]
    assert [file.relative_to(ROOT).as_posix() for file in others if ".build" not in str(file)] == [".dockerignore"]
    for path in ("config/data/master.key", "data/moongate.db", ".build/debug/moongate", ".build-package/products/x"):
        assert is_left_out(path), path
    assert not is_left_out(".git/HEAD"), "the build asks git for the commit"
    assert [path for path in sources() if is_left_out(path)] == []


def test_copied_paths_exist():
    build, image = stages()
    assert named(build, "FROM") == ["docker.io/library/swift:6.3.1-bookworm AS build"]
    assert named(build, "COPY") == [". ."]
    copied, to = named(image, "COPY")[0].removeprefix("--from=build ").split()
    made = variable("PACKAGE_PRODUCTS").replace("$(PACKAGE_DIR)", variable("PACKAGE_DIR"))
    assert copied == f"{named(build, 'WORKDIR')[0]}/{made}/"
    assert f"{to}moongate_*.deb" in named(image, "RUN")[0]


def test_make_is_installed_before_it_runs():
    (build, _) = stages()
    steps = [arguments for name, arguments in build if name == "RUN"]
    assert steps[-1] == "make deb"
    installed = [re.search(r"apt-get install .*--no-install-recommends ([^&]*)", step) for step in steps[:-1]]
    assert any(found and "make" in found[1].split() for found in installed)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The package that the first stage makes as root, with a program that is already compiled."""
    build = stages()[0]
    debian = FreshDebian(tmp_path_factory.mktemp("build-stage"))
    debian.sh("apt-get update -qq")
    debian.sh(f"apt-get install -y -qq --no-install-recommends ca-certificates {SWIFT_IMAGE}")
    swift = debian.root / "usr/bin/swift"
    swift.write_text(
        "#!/bin/sh\n[ \"$*\" = --version ] && exec echo Swift version 6.3.1\n"
        "echo The steps must not compile anything here. >&2; exit 1\n"
    )
    swift.chmod(0o755)
    folder = debian.root / named(build, "WORKDIR")[0].lstrip("/")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", "--no-checkout", f"file://{ROOT}", folder], check=True, timeout=120
    )
    for name in sources():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    # What the compiler would have made.
    compiled = folder / ".build-package"
    (compiled / "release").mkdir(parents=True)
    shutil.copy2(ROOT / ".build-package/release/moongate", compiled / "release")
    shutil.copy2(ROOT / ".build-package/workspace-state.json", compiled)
    shutil.copytree(
        ROOT / ".build-package/checkouts", compiled / "checkouts", ignore=shutil.ignore_patterns(".git", "Tests")
    )
    where = named(build, "WORKDIR")[0]
    for step in named(build, "RUN"):
        debian.sh(f"cd {where} && export MOONGATE_BUILT=1 && {step}")
    return folder / ".build-package/products"


def test_the_steps_of_the_containerfile(built, tmp_path):
    image = stages()[1]
    assert [file.name for file in built.iterdir()] == [product("moongate_*.deb").name]
    debian = FreshDebian(tmp_path)
    shutil.copytree(built, debian.root / "tmp/products")
    for step in named(image, "RUN"):
        debian.sh(step)
    assert not (debian.root / "tmp/products").exists() and not list((debian.root / "var/lib/apt/lists").glob("*"))
    user = named(image, "USER")[0]
    (volume,) = named(image, "VOLUME")
    assert named(image, "WORKDIR") == [volume]
    state = debian.root / volume.lstrip("/")
    assert f"{state.stat().st_uid}:{state.stat().st_gid}" == user
    # The configuration, as a volume, with free ports.
    listen, admin = free_port(), free_port()
    lua = debian.root / "etc/moongate/gateway.lua"
    text = lua.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{listen}")
    lua.write_text(text.replace("127.0.0.1:9901", f"127.0.0.1:{admin}"))
    command = [*json.loads(named(image, "ENTRYPOINT")[0]), *json.loads(named(image, "CMD")[0])]
    gateway = Program(*debian.command(*command, user=user, read_only=True))
    try:
        gateway.wait_line(" ready ", 90)
        assert requests.get(f"http://127.0.0.1:{admin}/readyz", timeout=20).status_code == 200
        check = json.loads(re.search(r"CMD (\[.*\])", named(image, "HEALTHCHECK")[0])[1])
        assert check[-1] == "127.0.0.1:9901"
        debian.run(*check[:-1], f"127.0.0.1:{admin}", user=user)
    finally:
        assert debian.end(gateway) == 0
