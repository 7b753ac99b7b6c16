"""The shipped units under a real systemd: a user manager of its own, with its own mounts and cgroups. It uses the
program of the packages, or the one in MOONGATE_BIN.

Of the service, only what a user manager or this machine does not allow is changed: the user, paths, ports, and
PrivateTmp, which would hide the test's folder."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
import requests

from cgroups import Cgroups, cgroups_missing, hierarchies
from conftest import ROOT
from continuous_requests import ContinuousRequests
from processes import Program, free_port, wait_for
from reloading import check_reload

UNITS = ROOT / "Packaging/systemd"
SYSTEMD = pathlib.Path("/lib/systemd/systemd")
HIERARCHIES = hierarchies("name=systemd", "cgroup2")
PROGRAM = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build-package/release")) / "moongate"

# Runs in a mount namespace and becomes the manager. $1 is its folder, the others are its cgroups.
MANAGER = r"""
set -eu
folder=$1; shift
mount --make-rprivate /
for cgroup; do echo $$ >"$cgroup/cgroup.procs"; done
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/systemd/system /run/systemd/inaccessible
cd /run/systemd/inaccessible
mkdir -m 000 dir; mkfifo -m 000 fifo; mknod -m 000 chr c 0 0; mknod -m 000 blk b 0 0; touch reg
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
chmod 000 reg sock
cd /
exec env -i PATH="$PATH" HOME="$folder" XDG_RUNTIME_DIR="$folder/run" XDG_CONFIG_HOME="$folder/config" \
  XDG_DATA_HOME="$folder/data" LC_ALL=C.UTF-8 \
  /lib/systemd/systemd --user --unit=basic.target --log-target=console --log-level=info
"""


def missing():
    """Why the manager cannot run here, or None."""
    if not SYSTEMD.exists() or not shutil.which("systemctl"):
        return "systemd is not installed"
    if os.geteuid() != 0:
        return "only root can make the manager's mounts and cgroups"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return "this machine allows no mount namespaces"
    return cgroups_missing(HIERARCHIES)


class Manager:
    """A `systemd --user` whose processes, mounts and cgroups `end` removes."""

    def __init__(self, folder):
        self.folder = folder
        self.units = folder / "config/systemd/user"
        self.units.mkdir(parents=True)
        (folder / "run").mkdir(mode=0o700)
        self.cgroups = Cgroups(HIERARCHIES)
        self.program = Program("unshare", "--mount", "bash", "-c", MANAGER, "bash", folder, *self.cgroups.folders)

    def ctl(self, *arguments, status=0):
        done = subprocess.run(
            ["systemctl", "--user", "--no-pager", *arguments],
            capture_output=True,
            text=True,
            timeout=90,
            env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder / "run"), "LC_ALL": "C.UTF-8"},
        )
        assert status is None or done.returncode == status, (
            f"systemctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.program.output[-6000:]}"
        )
        return done

    def show(self, name):
        return self.ctl("show", "moongate.service", "--value", "-p", name).stdout.strip()

    def end(self):
        """Ends the manager, then every process that is left in its cgroups. Mounts go with their last process."""
        try:
            self.ctl("stop", "moongate.socket", "moongate-admin.socket", "moongate.service", status=None)
            self.program.process.send_signal(signal.SIGTERM)
            self.program.process.wait(20)
        except subprocess.TimeoutExpired:
            pass  # It is killed with the others.
        self.cgroups.end()
        self.program.process.wait(20)


def adapted(text, folder, program):
    """The service for a user manager: every other setting, sandbox included, is the shipped one."""
    for name in ("User", "Group", "StateDirectory", "StateDirectoryMode", "PrivateTmp"):
        text, count = re.subn(rf"^{name}=.*\n", "", text, flags=re.M)
        assert count == 1, name
    changes = {
        "Environment=MOONGATE_CONFIG=/etc/moongate": f"Environment=MOONGATE_CONFIG={folder}/site",
        "ExecStart=/usr/bin/moongate ": f"ExecStart={program} ",
        "WorkingDirectory=/var/lib/moongate": f"WorkingDirectory={folder}/state\nReadWritePaths={folder}/state\n"
        f"StandardError=append:{folder}/log",
    }
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class Site:
    """A configuration by `moongate init`, and the units, with free ports."""

    def __init__(self, folder, manager):
        # ProtectHome hides the sources if they are in a home.
        self.program = folder / "moongate"
        shutil.copy2(PROGRAM, self.program)
        self.config, self.manager = folder / "site", manager
        self.listen, self.admin = free_port(), free_port()
        (folder / "state").mkdir(mode=0o700)
        answers = {
            "public-url": f"http://localhost:{self.listen}",
            "upstream": f"http://127.0.0.1:{free_port()}",
            "messages": "smtp://127.0.0.1:25?from=login@example.com",
            "store": "sqlite",
            "state": folder / "state",
        }
        options = [str(part) for name, value in answers.items() for part in (f"--{name}", value)]
        subprocess.run([self.program, "init", self.config, *options], check=True, capture_output=True, timeout=60)
        ports = {"127.0.0.1:8080": f"127.0.0.1:{self.listen}", "127.0.0.1:9901": f"127.0.0.1:{self.admin}"}
        lua = self.config / "gateway.lua"
        lua.write_text(self._replaced(lua.read_text(), ports))
        for file in UNITS.iterdir():
            text = file.read_text()
            text = adapted(text, folder, self.program) if file.suffix == ".service" else self._replaced(text, ports)
            (manager.units / file.name).write_text(text)
        manager.ctl("daemon-reload")

    @staticmethod
    def _replaced(text, changes):
        for old, new in changes.items():
            text = text.replace(old, new)
        return text

    def answer(self):
        url = f"http://127.0.0.1:{self.listen}/api/auth/openapi.json"
        return requests.get(url, headers={"Host": f"localhost:{self.listen}"}, timeout=60).status_code


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    reason = missing()
    if reason:
        pytest.skip(reason)
    assert PROGRAM.exists(), f"there is no {PROGRAM}: run `make deb`"
    made = Manager(tmp_path_factory.mktemp("manager"))
    try:
        private = made.folder / "run/systemd/private"
        wait_for(lambda: private.exists() or made.program.process.poll() is not None, "systemd to start", 30)
        assert made.program.process.poll() is None, made.program.output
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def site(manager):
    made = Site(manager.folder, manager)
    manager.ctl("start", "moongate.socket", "moongate-admin.socket", "moongate.service")
    return made


def test_the_unit_starts_in_its_sandbox(site, manager):
    """`start` waits for the notification. The sandbox is what the kernel says about the process."""
    assert (manager.show("ActiveState"), manager.show("NotifyAccess")) == ("active", "main")
    assert re.fullmatch(r"Serving generation [0-9a-f]{8}", manager.show("StatusText"))
    assert site.answer() == 200
    process = manager.show("MainPID")
    status = dict(
        line.split(":", 1) for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines() if ":" in line
    )
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
    mounts = pathlib.Path(f"/proc/{process}/mountinfo").read_text().splitlines()
    writable = {line.split()[4] for line in mounts if "rw" in line.split()[5].split(",")}
    assert str(manager.folder / "state") in writable and "/" not in writable


def test_reload(site, manager):
    log = manager.folder / "log"
    check_reload(manager, log.read_text, site.config / "routes.lua", site.answer)


def test_upgrade(site, manager):
    before = manager.show("MainPID")
    done = subprocess.run(
        [site.program, "upgrade", "--config", site.config], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stdout + done.stderr + manager.program.output[-4000:]
    named = re.search(r"process (\d+)", done.stdout)[1]
    assert named != before
    wait_for(lambda: manager.show("MainPID") == named, "the new main process")
    wait_for(lambda: not pathlib.Path(f"/proc/{before}").exists(), "the end of the old process", 40)
    assert manager.show("ActiveState") == "active" and manager.show("NRestarts") == "0" and site.answer() == 200


def test_restart_answers_all_requests(site, manager):
    # After an upgrade, the main process is not a child of this manager, which then kills it at once: with cgroups of
    # version 1 in a container, systemd does not wait for it. test_system_manager.py restarts with version 2.
    manager.ctl("restart", "moongate.service")
    before = manager.show("MainPID")
    with ContinuousRequests(site.answer) as clients:
        # systemd allows five starts in ten seconds.
        for _ in range(2):
            clients.wait_for_more()
            manager.ctl("restart", "moongate.service")
        clients.wait_for_more()
    assert set(clients.answers) == {200}
    assert manager.show("MainPID") != before and manager.show("ActiveState") == "active"


def test_a_refused_configuration_is_named_in_the_status(site, manager):
    """systemd removes backslashes from the status, so it must not have any."""
    lua = site.config / "gateway.lua"
    text = lua.read_text()
    lua.write_text(text.replace("listen =", "listenn =", 1))
    # Other tests have used up the starts that systemd allows.
    manager.ctl("reset-failed", "moongate.service")
    try:
        manager.ctl("restart", "moongate.service", status=1)
        wait_for(lambda: "gateway.lua:" in manager.show("StatusText"), "the status")
        assert re.search(r"problems?\. gateway\.lua:\d+: ", manager.show("StatusText")), manager.show("StatusText")
    finally:
        manager.ctl("stop", "moongate.service")
        lua.write_text(text)
