"""The Debian package in a fresh Debian, from installation to purge. systemd does not run in there: what it would run is taken from the unit.
test_system_manager.py runs it."""

import os
import re
import shutil
import stat
import subprocess
import time

import requests

from conftest import ROOT, VERSION, later, product
from mail_server import MailServer
from processes import Program, free_port

ANSWERS = ["--store", "sqlite", "--state", "/var/lib/moongate"]


def unit(debian):
    """The service's settings, by name, as they are installed."""
    text = (debian.root / "lib/systemd/system/moongate.service").read_text()
    return dict(re.findall(r"^(ExecStart|User|Environment|WorkingDirectory|UMask)=(.*)$", text, re.M))


def serve(debian, folder, read_only=False):
    """What systemd would run: ExecStart as the unit's user, with the environment of the unit and of /etc/default/moongate."""
    settings = unit(debian)
    assert settings["Environment"] == "MOONGATE_CONFIG=/etc/moongate"
    (debian.root / "etc/default/moongate").write_text(f"MOONGATE_CONFIG={folder}\n")
    script = (
        f'export {settings["Environment"]}; set -a; . /etc/default/moongate; set +a; umask {settings["UMask"]}; '
        f'cd {settings["WorkingDirectory"]}; exec {settings["ExecStart"]}'
    )
    user = settings["User"]
    return Program(*debian.command("sh", "-c", script, user=f"{user}:{user}", read_only=read_only))


def configure(folder, listen, admin):
    lua = folder / "gateway.lua"
    lua.write_text(
        lua.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{listen}").replace("127.0.0.1:9901", f"127.0.0.1:{admin}")
    )


def sign_in(url, mail):
    """Registers by an email code and asks for the protected service."""

    def api(path, body):
        return requests.post(f"{url}/api/auth{path}", json=body, timeout=20)

    flow = api("/flows", {"flow": "register"}).json()["id"]
    begun = api(f"/flows/{flow}/begin", {"provider": "email_code", "email": "asha@example.com"})
    assert begun.status_code == 200, begun.text
    code = re.search(r"\b\d{6}\b", mail()).group()
    done = api(f"/flows/{flow}/submit", {"code": code})
    assert done.status_code == 200 and done.json()["status"] == "complete", done.text
    return done.json()["session"]["token"]


def test_lintian(deb):
    told = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", "--info", deb], capture_output=True, text=True, timeout=600
    )
    print(told.stdout, told.stderr)
    assert told.returncode == 0 and not re.search(r"^E:", told.stdout, re.M), told.stdout


def test_the_same_input_makes_the_same_package(deb, tmp_path):
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "MOONGATE_VERSION": VERSION, "DEB_LEVEL": "0"}
    made = []
    for name in ("one", "two"):
        for script in ("debian/build.sh", "tools/tarball.sh"):
            subprocess.run(
                [ROOT / "Packaging" / script, ".build-package/release/moongate", tmp_path / name],
                cwd=ROOT,
                env=env,
                check=True,
                timeout=300,
            )
        made.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert len(made[0]) == 2 and made[0] == made[1]


def test_from_installation_to_sign_in(debian, deb, tmp_path):
    began = time.monotonic()
    shutil.copy(deb, debian.root / "tmp")
    debian.sh("apt-get update -qq")
    installed = debian.sh(f"apt-get install -y --no-install-recommends /tmp/{deb.name}")
    assert "systemctl enable --now moongate" in installed.stdout
    assert "systemd" not in re.findall(r"^Setting up (\S+?) ", installed.stdout, re.M)
    state = debian.root / "var/lib/moongate"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700 and not list(state.iterdir())
    assert debian.sh("id -un $(stat -c %u /var/lib/moongate)").stdout == "moongate\n"
    # No Swift, no path of the machine that built it.
    for program in ("usr/bin/moongate", "usr/bin/moongate-provider"):
        linked = debian.sh(f"ldd /{program}").stdout
        assert "swift" not in linked and "not found" not in linked
        tags = subprocess.run(["readelf", "-d", debian.root / program], capture_output=True, text=True, check=True)
        assert "RUNPATH" not in tags.stdout
        assert str(ROOT).encode() not in (debian.root / program).read_bytes()
    assert " 0 broken" in debian.moongate("provider", "test", "email_code").stdout
    version = debian.moongate("--version").stdout
    assert (
        version.startswith(f"moongate {VERSION}\ncommit ")
        and "development" not in version
        and re.search(r"^Swift +6\.\d+\.\d+$", version, re.M)
    ), version
    # What the package ships is good as it is.
    good = debian.moongate("check", "--config", "/etc/moongate")
    assert "warning" not in good.stdout

    listen, admin, upstream = free_port(), free_port(), free_port()
    service = Program("python3", "-m", "http.server", upstream, "--bind", "127.0.0.1", "--directory", tmp_path)
    with MailServer(tmp_path, None, auth=False) as mail:
        debian.moongate(
            "init",
            "/srv/moongate",
            "--public-url",
            f"http://localhost:{listen}",
            "--upstream",
            f"http://127.0.0.1:{upstream}",
            "--messages",
            f"smtp://127.0.0.1:{mail.port}?from=login@example.com",
            *ANSWERS,
        )
        configure(debian.root / "srv/moongate", listen, admin)
        gateway = serve(debian, "/srv/moongate")
        try:
            gateway.wait_line(" ready ", 90)
            assert (
                debian.moongate("health", "--admin", f"127.0.0.1:{admin}").stdout
                == f"The gateway at 127.0.0.1:{admin} is ready.\n"
            )
            url = f"http://localhost:{listen}"
            assert requests.get(url, allow_redirects=False, timeout=20).status_code in (302, 303, 401)
            token = sign_in(url, lambda: mail.mail(1)[1].get_body(("plain",)).get_content())
            answer = requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=20)
            assert answer.status_code == 200 and "Directory listing" in answer.text
            print(f"From installation to sign-in: {time.monotonic() - began:.0f} s")
            assert time.monotonic() - began < 300
            assert {file.name for file in state.iterdir()} >= {"master.key", "moongate.db"}
        finally:
            assert debian.end(gateway) == 0
            service.end()


def test_a_read_only_root(debian, tmp_path):
    """As a container runs it: nothing but the volume and /tmp can be written."""
    listen, admin = free_port(), free_port()
    debian.sh("rm -rf /srv/container; cp -r /etc/moongate /srv/container")
    configure(debian.root / "srv/container", listen, admin)
    gateway = serve(debian, "/srv/container", read_only=True)
    try:
        gateway.wait_line(" ready ", 90)
        assert requests.get(f"http://127.0.0.1:{admin}/readyz", timeout=20).status_code == 200
        assert debian.sh("touch /etc/moongate/x", read_only=True, status=None).returncode != 0
        ill = debian.moongate("health", "--admin", f"127.0.0.1:{free_port()}", status=1)
        assert ill.stderr.count("\n") == 1 and "No gateway listens" in ill.stderr
    finally:
        assert debian.end(gateway) == 0


def test_init_overwrites_nothing(debian):
    before = (debian.root / "etc/moongate/gateway.lua").read_bytes()
    told = debian.moongate("init", "/etc/moongate", "--public-url", "https://other.example.com", status=2)
    assert told.stderr.count("\n") == 1 and "is not empty" in told.stderr
    assert (debian.root / "etc/moongate/gateway.lua").read_bytes() == before


def test_init_by_root_is_readable_for_the_service(debian):
    """With a strict umask too; and the printed steps are those of the unit."""
    told = debian.sh(
        f"umask 077; moongate init '/srv/strict site' --public-url https://auth.example.com "
        f"--upstream 3000 --messages smtp://u:p@localhost {' '.join(ANSWERS)}"
    )
    for step in (
        """echo 'MOONGATE_CONFIG="/srv/strict site"' >> /etc/default/moongate""",
        "As root: systemctl enable --now moongate",
        "runuser -u moongate -- moongate doctor --config '/srv/strict site' --to",
    ):
        assert step in told.stdout, told.stdout
    debian.moongate("check", "--config", "/srv/strict site", user="moongate:moongate")
    modes = debian.sh("cd '/srv/strict site'; stat -c %U:%G:%a . gateway.lua secrets secrets/smtp.password").stdout
    assert modes.split() == [
        "root:moongate:750",
        "root:moongate:640",
        "moongate:moongate:700",
        "moongate:moongate:600",
    ]
    debian.sh("rm -r '/srv/strict site'")


def test_upgrade_keeps_changed_files(debian, deb, tmp_path):
    mine = debian.root / "etc/moongate/gateway.lua"
    mine.write_text(mine.read_text().replace("https://auth.example.com", "https://login.example.org"))
    key = (debian.root / "var/lib/moongate/master.key").read_bytes()

    def change(root):
        for name in ("gateway.lua", "routes.lua"):
            file = root / "etc/moongate" / name
            file.write_text("-- A later version.\n" + file.read_text())

    made = later(deb, tmp_path, change)
    shutil.copy(made, debian.root / "tmp")
    debian.sh(f"dpkg --force-confdef --force-confold -i /tmp/{made.name}")
    assert "login.example.org" in mine.read_text() and "later version" not in mine.read_text()
    assert mine.with_name("gateway.lua.dpkg-dist").read_text().startswith("-- A later version.")
    assert (debian.root / "etc/moongate/routes.lua").read_text().startswith("-- A later version."), (
        "it was not changed here"
    )
    debian.moongate("check", "--config", "/etc/moongate")
    # A second configuration by the same version changes nothing.
    debian.sh("dpkg-reconfigure moongate && dpkg-reconfigure moongate")
    assert (debian.root / "var/lib/moongate/master.key").read_bytes() == key


def test_remove_keeps_and_purge_deletes(debian, deb):
    debian.sh("dpkg -r moongate")
    assert (debian.root / "var/lib/moongate/master.key").exists() and (
        debian.root / "etc/moongate/gateway.lua"
    ).exists()
    assert not (debian.root / "usr/bin/moongate").exists()
    debian.sh("dpkg -P moongate")
    for path in (
        "var/lib/moongate",
        "etc/moongate",
        "etc/default/moongate",
        "usr/share/doc/moongate",
        "lib/systemd/system/moongate.service",
    ):
        assert not (debian.root / path).exists(), path
    # Attack: the next system user gets this one's number, and with it the secrets that `moongate init` left in /srv.
    assert debian.sh("id -u moongate").returncode == 0
    assert (debian.root / "srv/moongate/gateway.lua").exists(), "not the package's own"
    debian.sh("dpkg -P moongate")


def test_user_with_a_numeric_id_is_accepted(debian, deb):
    """As the Containerfile makes it: adduser would refuse a user whose number is none of the system's."""
    debian.sh(
        "userdel moongate; groupadd --system --gid 10001 moongate; "
        "useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/moongate --no-create-home --shell /usr/sbin/nologin moongate"
    )
    debian.sh(f"dpkg -i /tmp/{deb.name}")
    assert debian.sh("stat -c %u:%g:%a /var/lib/moongate").stdout == "10001:10001:700\n"
    debian.sh("dpkg -P moongate")


def test_a_link_in_place_of_the_state_folder_is_refused(debian, deb):
    """Attack: a link there would hand the files that it leads to over to the service's user."""
    debian.sh("ln -s /root /var/lib/moongate")
    told = debian.sh(f"dpkg -i /tmp/{deb.name}", status=None)
    assert told.returncode != 0 and "is a symbolic link" in told.stderr
    assert debian.sh("stat -c %U:%a /root").stdout == "root:700\n"
    debian.sh("rm /var/lib/moongate; dpkg -P moongate")


def test_the_tarball_needs_no_swift(tmp_path):
    archive = product("moongate-*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True, timeout=60)
    (folder,) = tmp_path.iterdir()
    program = folder / "bin/moongate"
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "swift" not in linked.lower() and "not found" not in linked
    readme = (folder / "README.md").read_text()
    for file in re.findall(
        r"\[(lib\S+)\]", subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    ):
        assert f"`{file}`" in readme, f"README.md leaves out {file}"
    told = subprocess.run([program, "check", "--config", folder / "config"], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stdout + told.stderr
    told = subprocess.run([program, "provider", "test", "email_code"], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stdout + told.stderr
    for page in (folder / "share/man/man1").iterdir():
        shown = subprocess.run(
            ["man", "--warnings", "-l", page],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"},
        )
        assert shown.returncode == 0 and "EXIT STATUS" in shown.stdout and not shown.stderr, (page, shown.stderr)
    # What Tab offers in bash.
    script = (
        f'PATH={folder}/bin:$PATH; . {folder}/share/bash-completion/completions/moongate; COMP_WORDS=(moongate he); COMP_CWORD=1; '
        'COMP_LINE="moongate he"; COMP_POINT=11; _moongate; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    offered = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert "health" in offered.stdout.split(), offered.stdout + offered.stderr
