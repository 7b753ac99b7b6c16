"""The Debian package in a fresh Debian with systemd as process 1, from installation to removal, with the master key and
another secret as credentials. The units run exactly as they are shipped.

That Debian has its own mounts, processes, host name, network and cgroup, so that the shipped ports are free. /proc/sys
is read-only in there, because it is this machine's."""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from cgroups import Cgroups, cgroups_missing, hierarchies
from conftest import VERSION, FreshDebian, later
from continuous_requests import ContinuousRequests
from processes import Program, wait_for
from reloading import check_reload

HIERARCHIES = hierarchies("cgroup2")[:1]
NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net"]
HALT = signal.SIGRTMIN + 3
CLONE_NEWNET = 0x40000000

# Runs in the new namespaces and becomes process 1. $1 is the cgroup, $2 the root.
BOOT = r"""
set -eu
echo 0 >"$1/cgroup.procs"
exec unshare --cgroup bash -euc '
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=755 run run
mount -t tmpfs tmp tmp
mkdir run/host
pivot_root . run/host
umount -l /run/host
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
' bash "$2"
"""


def missing():
    """Why no system manager can run here, or None."""
    if os.geteuid() != 0:
        return "only root can make the mounts and cgroups of a system manager"
    probe = ["unshare", *NAMESPACES, "--cgroup", "true"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        return "this machine does not allow the namespaces of a system manager"
    return cgroups_missing(HIERARCHIES)


def enter_network(process):
    """Moves the calling thread into the network of a process."""
    with open(f"/proc/{process}/ns/net") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


class Machine:
    """A Debian with systemd as process 1. `halt` ends its processes, mounts and cgroups."""

    def __init__(self, folder, deb, release):
        """`release` is the one that systemd comes from."""
        self.program = self.clients = None
        self.debian = FreshDebian(folder)
        self.root = self.debian.root
        self.file("/etc/apt/sources.list.d/systemd.list").write_text(
            f"deb http://deb.debian.org/debian {release} main\n"
        )
        self.debian.sh("apt-get update -qq")
        self.debian.sh(f"apt-get install -y --no-install-recommends -t {release} systemd dbus")
        # The machine itself has no way to the mirror.
        needed = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
        self.debian.run("apt-get", "satisfy", "-y", "--no-install-recommends", needed.strip())
        (self.root / "usr/sbin/policy-rc.d").unlink()

    def boot(self):
        self.cgroups = Cgroups(HIERARCHIES)
        self.program = Program("unshare", *NAMESPACES, "bash", "-c", BOOT, "bash", *self.cgroups.folders, self.root)
        wait_for(lambda: not self.program.runs or self.init, "process 1")
        wait_for(lambda: not self.program.runs or self._is_up(), "the boot", 60)
        assert self.program.runs, self.program.output
        self.clients = ThreadPoolExecutor(4, initializer=enter_network, initargs=[self.init])

    @property
    def init(self):
        """Process 1 as this machine numbers it, or nothing."""
        outer = self.program.process.pid
        try:
            return pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().strip()
        except OSError:
            return ""

    def _is_up(self):
        return self.run("systemctl", "is-system-running", status=None).stdout.strip() in ("running", "degraded")

    def halt(self):
        """Ends what `boot` began, as far as it came."""
        if self.clients:
            self.clients.shutdown()
        if not self.program:
            return
        try:
            if self.init:
                os.kill(int(self.init), HALT)
                self.program.process.wait(40)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            pass  # It is killed with the others.
        self.program.end(signal.SIGKILL)
        self.cgroups.end()

    def run(self, *command, status=0):
        """Runs a command as root in there."""
        enter = ["nsenter", "--target", self.init, "--all", "--root", "--wd", "env", "-i"]
        done = subprocess.run(
            [*enter, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", *map(str, command)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert status is None or done.returncode == status, (
            f"{command}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.program.output[-4000:]}"
        )
        return done

    def sh(self, script, **options):
        return self.run("sh", "-euc", script, **options)

    def ctl(self, *arguments, **options):
        return self.run("systemctl", "--no-pager", *arguments, **options)

    def show(self, name):
        return self.ctl("show", "moongate.service", "--value", "-p", name).stdout.strip()

    def journal(self):
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", "moongate").stdout

    def request(self, method, url, **options):
        """Sends a request in the network of the machine."""
        return self.clients.submit(requests.request, method, url, timeout=60, **options).result()

    def file(self, path):
        return self.root / path.lstrip("/")

    def process(self, name):
        """A file in /proc of the main process, as the machine has it."""
        return self.run("cat", f"/proc/{self.show('MainPID')}/{name}").stdout


class Site:
    """The configuration and the credentials, as the guide says (Documentation/guides/install.md)."""

    config = "/srv/moongate"
    credentials = "/etc/moongate/credentials"
    drop_ins = "/etc/systemd/system/moongate.service.d"

    def __init__(self, machine):
        self.machine = machine
        machine.sh(f"""
            moongate init {self.config} --state /var/lib/moongate --public-url http://localhost:8080 --store sqlite \\
              --upstream http://127.0.0.1:3000 --messages 'smtp://127.0.0.1:25?from=login@example.com'
            echo MOONGATE_CONFIG={self.config} >>/etc/default/moongate
            install -d -m 700 {self.credentials}
            umask 077
            openssl rand -hex 32 >{self.credentials}/master.key
            openssl rand -hex 32 >{self.credentials}/ravi""")
        self.token = machine.file(f"{self.credentials}/ravi").read_text().strip()
        lua = machine.file(f"{self.config}/gateway.lua")
        text, count = re.subn(r'key = file "[^"]*"', 'key = credential "master.key"', lua.read_text())
        tokens = '{ { name = "ravi", role = "act", token = credential "ravi" } }'
        admin = f'admin = {{ address = "127.0.0.1:9901", tokens = {tokens} }}'
        assert count == 1 and text.count('admin = "127.0.0.1:9901"') == 1
        lua.write_text(text.replace('admin = "127.0.0.1:9901"', admin))
        self.load("master.key", "ravi")

    def load(self, *names):
        """Makes a drop-in that loads the credentials."""
        lines = [f"LoadCredential={name}:{self.credentials}/{name}" for name in names]
        self.drop_in("override", *lines)

    def drop_in(self, name, *lines):
        file = self.machine.file(f"{self.drop_ins}/{name}.conf")
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(["[Service]", *lines, ""]))
        self.machine.ctl("daemon-reload")

    def remove_drop_in(self, name):
        self.machine.file(f"{self.drop_ins}/{name}.conf").unlink()
        self.machine.ctl("daemon-reload")

    def answer(self):
        return self.machine.request("GET", "http://127.0.0.1:8080/api/auth/openapi.json").status_code

    def admin(self, token):
        headers = {"Authorization": f"Bearer {token}"}
        return self.machine.request("GET", "http://127.0.0.1:9901/policy", headers=headers).status_code

    def moongate(self, *arguments, **options):
        """A command as the guide says: as root, with the folder of the credentials."""
        folder = f"CREDENTIALS_DIRECTORY={self.credentials}"
        return self.machine.run("env", folder, "moongate", *arguments, "--config", self.config, **options)

    def start_after_failures(self):
        """Starts the gateway again after systemd has given up."""
        self.machine.ctl("reset-failed", "moongate")
        self.machine.ctl("restart", "moongate")
        assert self.answer() == 200


@pytest.fixture(scope="module", params=["bookworm", "bookworm-backports"])
def machine(tmp_path_factory, deb, request):
    """With systemd 252, and with a later one, which knows `Type=notify-reload`."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("machine")
    with contextlib.ExitStack() as ends:
        ends.callback(shutil.rmtree, folder)
        made = Machine(folder, deb, request.param)
        ends.callback(made.halt)
        made.boot()
        yield made


@pytest.fixture(scope="module")
def site(machine, deb):
    shutil.copy(deb, machine.file("/root/moongate.deb"))
    machine.installed = machine.sh("dpkg -i /root/moongate.deb").stdout
    return Site(machine)


def test_installation_starts_nothing(site, machine):
    assert "systemctl enable --now moongate" in machine.installed
    assert machine.ctl("is-enabled", "moongate", status=1).stdout.strip() == "disabled"
    assert machine.show("ActiveState") == "inactive"


def test_the_enabled_unit_serves_through_its_sockets_in_its_sandbox(site, machine):
    machine.ctl("enable", "--now", "moongate")
    reloads = "notify" if machine.ctl("--version").stdout.startswith("systemd 252") else "notify-reload"
    assert machine.show("Type") == reloads
    units = ("moongate.service", "moongate.socket", "moongate-admin.socket")
    assert machine.ctl("is-enabled", *units).stdout.split() == ["enabled"] * 3
    assert machine.ctl("is-active", *units).stdout.split() == ["active"] * 3
    assert re.fullmatch(r"Serving generation [0-9a-f]{8}", machine.show("StatusText"))
    assert site.answer() == 200
    assert sorted(environment(machine)["LISTEN_FDNAMES"].split(":")) == ["admin", "listen"]
    status = dict(line.split(":", 1) for line in machine.process("status").splitlines())
    user = machine.run("id", "-u", "moongate").stdout.strip()
    assert status["Uid"].split() == [user] * 4
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
    mounts = [line.split() for line in machine.process("mountinfo").splitlines()]
    writable = {mount[4] for mount in mounts if "rw" in mount[5].split(",")}
    assert "/var/lib/moongate" in writable and not writable & {"/", "/etc", "/srv", "/home", "/root"}


def environment(machine):
    return dict(entry.split("=", 1) for entry in machine.process("environ").split("\0") if entry)


def test_the_secrets_are_credentials(site, machine):
    folder = environment(machine)["CREDENTIALS_DIRECTORY"]
    assert folder == "/run/credentials/moongate.service"
    modes = machine.sh(f"cd {folder} && stat -c '%n %a' . *").stdout.split("\n")
    # An owner's mode, or with an access list the mask of that list.
    assert modes[0] in (". 500", ". 550")
    assert modes[1:3] in (["master.key 400", "ravi 400"], ["master.key 440", "ravi 440"])
    assert machine.sh(f"runuser -u moongate -- cat {folder}/ravi").stdout.strip() == site.token
    for command in (f"ls {folder}", f"cat {folder}/ravi", f"cat {site.credentials}/ravi"):
        told = machine.sh(f"runuser -u daemon -- {command}", status=None)
        assert told.returncode != 0 and "Permission denied" in told.stderr, command
    assert not list(machine.file("/var/lib/moongate").glob("*.key")), "a credential is never created"
    assert (site.admin(site.token), site.admin("another"), site.admin("")) == (200, 401, 401)


def test_a_credential_can_be_encrypted(site, machine):
    """With the key of the machine: the file on disk does not show the secret."""
    file = f"{site.credentials}/ravi.encrypted"
    machine.run("systemd-creds", "encrypt", "--with-key=host", "--name=ravi", f"{site.credentials}/ravi", file)
    site.load("master.key")
    site.drop_in("encrypted", f"LoadCredentialEncrypted=ravi:{file}")
    try:
        machine.ctl("restart", "moongate")
        assert site.admin(site.token) == 200
    finally:
        site.remove_drop_in("encrypted")
        site.load("master.key", "ravi")
    machine.ctl("restart", "moongate")
    assert site.admin(site.token) == 200


def test_commands_use_the_folder_of_the_credentials(site, machine):
    # Without a mail server and a service, other checks of the doctor fail.
    assert "belongs to this master key" in site.moongate("doctor", status=None).stdout
    without = machine.run("moongate", "doctor", "--config", site.config, status=1)
    assert "systemd hands this process no credentials" in without.stdout + without.stderr
    as_user = f"CREDENTIALS_DIRECTORY=/run/credentials/moongate.service moongate doctor --config {site.config}"
    assert "belongs to this master key" in machine.sh(f"runuser -u moongate -- env {as_user}", status=None).stdout
    site.moongate("account", "list")
    owners = machine.sh("stat -c %U /var/lib/moongate/*").stdout.split()
    assert set(owners) == {"moongate"}, "root's commands leave files that the gateway cannot write"


def test_reload(site, machine):
    check_reload(machine, machine.journal, machine.file(f"{site.config}/routes.lua"), site.answer)


def upgrade(site, machine):
    """Replaces the process and returns the new one."""
    before = machine.show("MainPID")
    named = re.search(r"process (\d+)", site.moongate("upgrade").stdout)[1]
    assert named != before
    wait_for(lambda: machine.show("MainPID") == named, "the new main process")
    wait_for(lambda: machine.run("test", "-e", f"/proc/{before}", status=None).returncode == 1, "the old process to end")
    return named


def test_upgrade_answers_all_requests(site, machine):
    with ContinuousRequests(site.answer) as clients:
        clients.wait_for_more()
        upgrade(site, machine)
        clients.wait_for_more()
    assert set(clients.answers) == {200}
    assert (machine.show("ActiveState"), machine.show("NRestarts")) == ("active", "0")
    assert site.admin(site.token) == 200, "the new process has the credentials"


def test_the_journal_has_no_lines_that_alarm(machine):
    """After a start, a reload and an upgrade."""
    assert "Failed to set thread priority" not in machine.journal()
    assert "reception only permitted" not in machine.journal()


def test_a_killed_process_is_restarted_after_an_upgrade(site, machine):
    killed = machine.show("MainPID")
    machine.sh(f"kill -KILL {killed}")
    wait_for(lambda: machine.show("NRestarts") == "1" and machine.show("ActiveState") == "active", "the restart")
    assert machine.show("MainPID") != killed and site.answer() == 200


def test_a_process_that_hangs_is_restarted(site, machine):
    """By the watchdog, also after an upgrade."""

    def messages():
        return int(machine.show("WatchdogTimestampMonotonic"))

    site.drop_in("watchdog", "WatchdogSec=2s")
    try:
        machine.ctl("restart", "moongate")
        hung = upgrade(site, machine)
        for _ in range(4):
            last = messages()
            wait_for(lambda: messages() > last, "a message to the watchdog")
        assert (machine.show("MainPID"), machine.show("NRestarts")) == (hung, "0")
        machine.sh(f"kill -STOP {hung}")
        wait_for(lambda: machine.show("NRestarts") == "1" and machine.show("ActiveState") == "active", "the restart")
        assert "Watchdog timeout" in machine.journal() and site.answer() == 200
    finally:
        site.remove_drop_in("watchdog")


def test_restart_answers_all_requests(site, machine):
    # systemd allows five starts in ten seconds, and the tests before had some.
    machine.ctl("reset-failed", "moongate.service", status=None)
    with ContinuousRequests(site.answer) as clients:
        for _ in range(3):
            clients.wait_for_more()
            machine.ctl("restart", "moongate.service")
        clients.wait_for_more()
    assert set(clients.answers) == {200}


def test_it_serves_after_a_boot(site, machine):
    before = environment(machine)["INVOCATION_ID"]
    machine.halt()
    machine.boot()
    assert machine.show("ActiveState") == "active" and environment(machine)["INVOCATION_ID"] != before
    assert site.answer() == 200 and site.admin(site.token) == 200
    assert machine.ctl("is-system-running").stdout.strip() == "running"


def test_an_upgrade_of_the_package_answers_all_requests(site, machine, deb, tmp_path):
    before = machine.show("MainPID")
    shutil.copy(later(deb, tmp_path), machine.file("/root/later.deb"))
    with ContinuousRequests(site.answer) as clients:
        clients.wait_for_more()
        machine.sh("dpkg -i /root/later.deb")
        clients.wait_for_more()
    assert set(clients.answers) == {200}
    assert machine.show("MainPID") != before and machine.show("ActiveState") == "active"
    assert f"{VERSION}-2" in machine.run("dpkg-query", "-W", "moongate").stdout


def test_a_package_whose_program_does_not_start_leaves_the_old_one_serving(site, machine, deb, tmp_path):
    def broken(root):
        (root / "usr/bin/moongate").write_text("#!/bin/sh\necho a library is missing >&2\nexit 127\n")

    before = machine.show("MainPID")
    shutil.copy(later(deb, tmp_path, broken), machine.file("/root/broken.deb"))
    shutil.copy(machine.file("/usr/bin/moongate"), machine.file("/root/moongate"))
    try:
        with ContinuousRequests(site.answer) as clients:
            told = machine.sh("dpkg -i /root/broken.deb 2>&1").stdout
            clients.wait_for_more()
        assert set(clients.answers) == {200} and machine.show("MainPID") == before
        assert "moongate: the new program does not start" in told and "a library is missing" in told, told
        assert machine.show("StatusText").startswith("Not upgraded: "), machine.show("StatusText")
    finally:
        machine.sh("cp /root/moongate /usr/bin/moongate.new && mv /usr/bin/moongate.new /usr/bin/moongate")
    # As the package says.
    machine.ctl("kill", "--signal", "USR2", "--kill-who", "main", "moongate")
    wait_for(lambda: machine.show("MainPID") != before, "the program that was put back")
    assert site.answer() == 200


def fails_to_start(machine):
    """Restarts the unit, which fails, and waits until systemd gives up."""
    machine.ctl("reset-failed", "moongate.service", status=None)
    machine.ctl("restart", "moongate", status=1)
    wait_for(lambda: machine.show("ActiveState") == "failed", "systemd to give up", 30)
    return machine.ctl("status", "moongate", status=3).stdout


def test_a_unit_without_the_credential_fails_and_says_which_line_to_add(site, machine):
    site.load("master.key")
    try:
        status = fails_to_start(machine)
    finally:
        site.load("master.key", "ravi")
    sentence = (
        "there is no credential ravi in /run/credentials/moongate.service: "
        f"add LoadCredential=ravi:{site.credentials}/ravi to the unit"
    )
    assert sentence in status and "status=1/FAILURE" in status
    assert re.search(rf"gateway\.lua:\d+: admin\.tokens\[1\]\.token: {re.escape(sentence)}\n", machine.journal())
    site.start_after_failures()


def test_a_unit_without_the_credentials_file_fails_in_systemd(site, machine):
    """The gateway does not run at all."""
    key = machine.file(f"{site.credentials}/master.key")
    key.rename(key.with_name("away"))
    try:
        status = fails_to_start(machine)
    finally:
        key.with_name("away").rename(key)
    assert "status=243/CREDENTIALS" in status
    assert "Failed to set up credentials" in machine.journal()
    assert not list(machine.file("/var/lib/moongate").glob("*.key"))
    site.start_after_failures()


def test_removal_ends_the_service_and_its_sockets(site, machine):
    machine.sh("dpkg -r moongate")
    for unit in ("moongate.service", "moongate.socket", "moongate-admin.socket"):
        assert machine.ctl("is-active", unit, status=None).stdout.strip() == "inactive"
    with pytest.raises(requests.ConnectionError):
        site.answer()
    machine.sh("dpkg -P moongate")
    for wanted in ("multi-user.target.wants", "sockets.target.wants"):
        assert not list(machine.file(f"/etc/systemd/system/{wanted}").glob("moongate*"))
    assert not machine.file("/var/lib/moongate").exists()
