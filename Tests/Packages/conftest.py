"""The packages that `make deb tarball sbom` made, and a fresh Debian to try them in."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCTS = ROOT / ".build-package/products"
BASE = ROOT / ".build-package/debian-root"
VERSION = re.search(
    r'static let number = "(.*)"', (ROOT / "Sources/moongate/Composition/Process/BuildVersion.swift").read_text()
).group(1)
# The mail server and the helpers for processes are those of the end-to-end tests.
sys.path.insert(0, str(ROOT / "Tests/EndToEnd"))


def product(pattern):
    found = sorted(PRODUCTS.glob(pattern), key=lambda file: file.stat().st_mtime)
    assert found, f"no {pattern} in {PRODUCTS}: run `make deb tarball sbom`"
    return found[-1]


def later(deb, folder, change=lambda root: None):
    """The package again with a later version, and with a change to its files."""
    root = folder / "later"
    subprocess.run(["dpkg-deb", "-R", deb, root], check=True, timeout=120)
    control = root / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {VERSION}-2", control.read_text(), flags=re.M))
    change(root)
    made = folder / f"moongate_{VERSION}-2_amd64.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", root, made], check=True, capture_output=True, timeout=300
    )
    return made


class FreshDebian:
    """A root file system with a copy of what debootstrap made, entered with namespaces of its own for mounts and processes."""

    def __init__(self, folder):
        self.root = folder / "root"
        if not (BASE / "usr").is_dir():
            subprocess.run(
                ["debootstrap", "--variant=minbase", "bookworm", BASE, "http://deb.debian.org/debian"],
                check=True,
                timeout=1200,
            )
        subprocess.run(["cp", "-a", "--reflink=auto", BASE, self.root], check=True, timeout=300)
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
        for name in ("resolv.conf", "hosts"):
            (self.root / "etc" / name).write_bytes(pathlib.Path("/etc", name).read_bytes())
        proxies = pathlib.Path("/etc/apt/apt.conf.d").glob("*proxy*")
        for file in proxies:
            (self.root / "etc/apt/apt.conf.d" / file.name).write_bytes(file.read_bytes())

    def command(self, *command, user=None, read_only=False):
        """The command line that runs a command in there. Its /proc and /dev are its own; its network is this machine's."""
        enter = [
            "chroot",
            *(["--userspec", user] if user else []),
            str(self.root),
            "/usr/bin/env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND=noninteractive",
            "LC_ALL=C.UTF-8",
            *map(str, command),
        ]
        prepare = [
            'mount -t proc proc "$1/proc"',
            'mount -t tmpfs -o mode=755 dev "$1/dev"',
            'for d in null zero random urandom; do touch "$1/dev/$d"; mount --bind "/dev/$d" "$1/dev/$d"; done',
            'mkdir "$1/dev/shm"',
        ]
        if read_only:
            # As a container engine does it: everything is read-only but the volume and /tmp.
            prepare = [
                'mount --bind "$1" "$1"',
                *prepare,
                'mount -t tmpfs tmp "$1/tmp"',
                'mount --bind "$1/var/lib/moongate" "$1/var/lib/moongate"',
                'mount -o remount,bind,ro "$1"',
            ]
        script = " && ".join(prepare) + ' && shift && exec "$@"'
        return [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-c",
            script,
            "bash",
            str(self.root),
            *enter,
        ]

    def run(self, *command, status=0, **options):
        how = {name: options.pop(name) for name in ("user", "read_only") if name in options}
        done = subprocess.run(self.command(*command, **how), capture_output=True, text=True, timeout=900, **options)
        assert status is None or done.returncode == status, (
            f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    @staticmethod
    def end(program):
        """Ends a program that `command` started: unshare itself takes no notice of a signal, so its child gets it. Gives the exit status back."""
        outer = program.process.pid
        (inner,) = pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        os.kill(int(inner), signal.SIGTERM)
        return program.process.wait(30)

    def moongate(self, *arguments, **options):
        return self.run("moongate", *arguments, **options)

    def sh(self, script, **options):
        return self.run("sh", "-c", script, **options)


@pytest.fixture(scope="session")
def deb():
    return product("moongate_*.deb")


@pytest.fixture(scope="session")
def debian(tmp_path_factory):
    return FreshDebian(tmp_path_factory.mktemp("debian"))
