"""`moongate init` and `moongate doctor`: from an empty folder to a running gateway, and reports about broken ones."""

import datetime
import http.server
import json
import os
import pwd
import re
import shutil
import socket
import stat
import subprocess
import threading

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from local_gateway import BIN
from mail_server import MailServer
from manual import block
from processes import Program, free_port, wait_for
from proxies import NGINX
from test_tls import certificate


def moongate(*arguments, before=(), **options):
    return subprocess.run(
        [*before, str(BIN / "moongate"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        **options,
    )


def checks_in_order(config, *arguments, **options):
    """The doctor's exit status and findings."""
    told = moongate("doctor", "--json", "--config", config, *arguments, **options)
    found = json.loads(told.stdout)["checks"]
    for entry in found:
        assert entry["message"] and (entry["state"] == "ok") == ("fix" not in entry), entry
    return told.returncode, found


def checks(config, *arguments, **options):
    """The doctor's exit status, and the last finding of each check."""
    status, found = checks_in_order(config, *arguments, **options)
    return status, {entry["check"]: entry for entry in found}


def test_output_of_init_passes_check(tmp_path):
    folder = tmp_path / "site"
    told = moongate(
        "init",
        folder,
        input="\nhttp://127.0.0.1:3000\nsqlite\nsmtp://me:s3cret@mail.example.com?from=login@example.com\n",
    )
    assert told.returncode == 0, told.stderr
    assert told.stderr.count("?") == 4, "four questions"
    assert "s3cret" not in told.stdout + told.stderr
    assert stat.S_IMODE((folder / "secrets/smtp.password").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "secrets").stat().st_mode) == 0o700
    for proxy in (
        "reverse_proxy 127.0.0.1:8080",
        "proxy_set_header X-Forwarded-For $remote_addr;",
        "server_name auth.example.com;",
    ):
        assert proxy in told.stdout
    assert "region" not in told.stdout + (folder / "gateway.lua").read_text(), "no code goes to a phone"
    good = moongate("check", "--config", folder)
    assert good.returncode == 0 and "warning:" not in good.stdout, good.stdout
    assert not (folder / "data").exists(), "neither creates a key or a store"

    again = moongate("init", folder, "--public-url", "https://other.example.com", input="\n\n\n")
    assert (
        again.returncode == 2
        and "is not empty" in again.stderr
        and "auth.example.com" in (folder / "gateway.lua").read_text()
    )


@pytest.mark.parametrize(
    "messages",
    [
        "twilio://AC0123456789abcdef0123456789abcdef:0123456789abcdef0123456789abcdef@+15550100",
        "https://sms.example.com/send",
    ],
)
def test_init_with_codes_by_sms(tmp_path, messages):
    told = moongate(
        "init",
        tmp_path / "site",
        "--public-url",
        "https://auth.example.com",
        "--upstream",
        "http://127.0.0.1:3000",
        "--store",
        "postgres://moongate@db.example.com/moongate",
        "--messages",
        messages,
    )
    assert told.returncode == 0, told.stderr
    assert "Phone numbers without + count as numbers of IN." in told.stdout
    good = moongate("check", "--config", tmp_path / "site")
    assert good.returncode == 0 and "warning:" not in good.stdout, good.stdout


@pytest.mark.parametrize(
    "messages",
    [
        "smtp://u:hunt/er2@mail.example.com:587",
        "smtp://u:hunt?er2@mail.example.com",
        "smtp://u:hunt@er2@mail.example.com",
        "smtp://mail.example.com?frm=hunter@er2.example",
        "https://sms.example.com/send?key=hunter2",
    ],
)
def test_messages_that_init_would_cut_are_refused(tmp_path, messages):
    """Attack: a part of the password becomes the host, which other users can read in gateway.lua."""
    told = moongate("init", tmp_path / "site", input=f"\n\n\n{messages}\n")
    assert told.returncode == 2 and not (tmp_path / "site").exists(), told.stdout
    assert "In a password, write / as %2F" in told.stderr or "send the key as a header" in told.stderr
    assert "er2" not in told.stdout + told.stderr, told.stderr


def test_an_escaped_password_reaches_its_file(tmp_path):
    told = moongate("init", tmp_path / "site", input="\n\n\nsmtp://me%40corp.example:p%40ss%2Fw:rd@mail.example.com\n")
    assert told.returncode == 0, told.stderr
    assert (tmp_path / "site/secrets/smtp.password").read_text() == "p@ss/w:rd\n"
    lua = (tmp_path / "site/gateway.lua").read_text()
    assert 'url = "smtp://mail.example.com:587"' in lua and 'from = "me@corp.example"' in lua


def test_the_gateway_is_not_its_own_service(tmp_path):
    told = moongate("init", tmp_path / "site", input="\nlocalhost:8080\n\n\n")
    assert told.returncode == 0, told.stderr
    assert 'listen = "127.0.0.1:8081"' in (tmp_path / "site/gateway.lua").read_text()
    assert 'to = "http://localhost:8080"' in (tmp_path / "site/routes.lua").read_text()
    assert "is 127.0.0.1:8081." in told.stdout and "proxy_pass http://127.0.0.1:8081;" in told.stdout
    told = moongate("init", tmp_path / "other", input="\nhttps://auth.example.com\n\n\n")
    assert told.returncode == 2 and "is the gateway itself, whose public URL is" in told.stderr, told.stderr
    assert not (tmp_path / "other").exists()


def test_an_address_has_no_passkeys(tmp_path):
    """Browsers refuse passkeys for an IP address."""
    told = moongate("init", tmp_path / "site", input="https://192.168.1.5\n\n\n\n")
    assert told.returncode == 0 and "Passkeys are left out" in told.stdout, told.stderr
    assert not any("passkey" in file.read_text() for file in (tmp_path / "site").rglob("*.lua"))
    good = moongate("check", "--config", tmp_path / "site")
    assert good.returncode == 0 and "warning:" not in good.stdout, good.stdout


def test_the_service_can_read_what_root_writes_with_a_strict_umask(tmp_path):
    try:
        user = pwd.getpwnam("moongate")
    except KeyError:
        pytest.skip("the system user moongate does not exist")
    if os.geteuid() != 0:
        pytest.skip("needs root, to run the command as another user")
    folder = tmp_path / "above/site"
    told = moongate("init", folder, input="\n\n\nsmtp://me:s3cret@mail.example.com\n", umask=0o077)
    assert told.returncode == 0, told.stderr
    for path in [folder.parent, folder, folder / "flows", folder / "gateway.lua"]:
        mode = 0o750 if path.is_dir() else 0o640
        seen = path.stat()
        assert (seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)) == (0, user.pw_gid, mode), path
    for path in tmp_path.parents[0], tmp_path.parents[1], tmp_path:
        path.chmod(path.stat().st_mode | 0o755)
    told = moongate("check", "--config", folder, user=user.pw_uid, group=user.pw_gid, extra_groups=[])
    assert told.returncode == 0, told.stdout + told.stderr


class Sink(http.server.BaseHTTPRequestHandler):
    """Counts the bytes of a body. A GET has a second line only after the client has read the first one."""

    def do_POST(self):
        size = len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{size} bytes".encode())

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"first\n")
        self.wfile.flush()
        self.wfile.write(b"last\n" if self.server.read_first.wait(20) else b"late\n")

    def log_message(self, *_):
        pass


def nginx(folder, text):
    """Runs nginx with the text in its http block."""
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX.format(user=user, text=text))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    return Program(program, "-p", folder, "-c", "nginx.conf", "-e", "stderr")


def is_open(port):
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def test_the_printed_nginx_configuration_passes_large_bodies_and_streams(tmp_path):
    folder, outside, listen = tmp_path / "site", free_port(), free_port()
    cert, key = certificate(tmp_path, "one")
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    service.read_first = threading.Event()
    threading.Thread(target=service.serve_forever, daemon=True).start()
    told = moongate("init", folder, input=f"https://localhost:{outside}\n{service.server_port}\n\n\n")
    assert told.returncode == 0, told.stderr
    lua = (folder / "gateway.lua").read_text().replace("127.0.0.1:9901", f"127.0.0.1:{free_port()}")
    (folder / "gateway.lua").write_text(lua.replace("127.0.0.1:8080", f"127.0.0.1:{listen}"))
    to = f"http://127.0.0.1:{service.server_port}"
    (folder / "routes.lua").write_text(
        f'return routes {{ {{ path = "/**", to = "{to}", allow = true, body = "10MiB" }} }}\n'
    )
    text = told.stdout.split("or nginx:\n", 1)[1].replace("127.0.0.1:8080", f"127.0.0.1:{listen}")
    text = text.replace("/etc/ssl/private/localhost.key", str(key)).replace("/etc/ssl/localhost.pem", str(cert))
    proxy = nginx(tmp_path, text)
    running = Program(BIN / "moongate", "serve", "--config", folder)
    try:
        running.wait_line(" ready ", 90)
        wait_for(lambda: is_open(outside), "nginx to listen")
        url = f"https://localhost:{outside}/"
        posted = requests.post(url, data=b"x" * 2_000_000, verify=cert, timeout=30)
        assert (posted.status_code, posted.text) == (200, "2000000 bytes"), proxy.output
        with requests.get(url, stream=True, verify=cert, timeout=30) as answer:
            lines = answer.iter_lines(chunk_size=1)
            assert next(lines) == b"first"
            service.read_first.set()
            assert next(lines) == b"last", "the first line was held back"
        # A minute of silence takes too long for a test.
        assert "proxy_read_timeout 1d;" in text and "proxy_send_timeout 1d;" in text
    finally:
        running.end()
        proxy.end()
        service.shutdown()
        service.server_close()


def test_init_writes_nothing_for_invalid_answers(tmp_path):
    folder = tmp_path / "site"
    told = moongate("init", folder, "--public-url", "http://auth.example.com")
    assert told.returncode == 2 and "Use https." in told.stderr
    told = moongate("init", folder, input="https://auth.example.com\n")
    assert told.returncode == 2 and "nothing was written" in told.stderr
    told = moongate(
        "init",
        folder,
        "--public-url",
        "https://auth.example.com",
        "--upstream",
        "http://127.0.0.1:3000",
        "--store",
        "sqlite",
        "--messages",
        "smtp://localhost",
        "--region",
        "Mars",
    )
    assert told.returncode == 2 and "--region: region " in told.stderr and "is not a country code" in told.stderr
    assert not folder.exists()
    told = moongate("init", "", input="\n\n\n\n")
    assert told.returncode == 2 and "The name of the folder is empty." in told.stderr
    folder.symlink_to(tmp_path / "nowhere")
    told = moongate("init", folder, input="\n\n\n\n")
    assert told.returncode == 2 and "is a symbolic link to something that does not exist" in told.stderr
    assert folder.is_symlink() and not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run the command as another user")
def test_a_folder_that_the_user_may_not_read_is_not_called_empty(tmp_path):
    folder = tmp_path / "site"
    told = moongate("init", folder, "--messages", "smtp://localhost", input="\n\n\n")
    assert told.returncode == 0, told.stderr
    other = {"user": 65534, "group": 65534, "extra_groups": []}
    for path in [folder, *folder.parents]:
        path.chmod(path.stat().st_mode | 0o755)
    told = moongate("check", "--config", folder, **other)
    assert told.returncode == 0, told.stdout + told.stderr

    (folder / "policies").chmod(0o700)
    told = moongate("check", "--config", folder, **other)
    assert told.returncode == 1 and "policies: permission denied" in told.stdout + told.stderr, told
    for command in ("check", "doctor", "serve"):
        folder.chmod(0o700)
        told = moongate(command, "--config", folder, **other)
        assert told.returncode == 2, told
        assert f"Permission denied: this user cannot read the folder {folder}." in told.stderr, told


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A configuration written by init, its upstream service, and a mail server."""
    folder = tmp_path_factory.mktemp("setup") / "site"
    upstream, gateway, admin = free_port(), free_port(), free_port()
    service = Program(BIN / "demo-service", "--port", upstream)
    service.wait_line("listens on")
    with MailServer(tmp_path_factory.mktemp("mail"), None, auth=False) as mail:
        told = moongate(
            "init",
            folder,
            "--public-url",
            f"http://localhost:{gateway}",
            "--upstream",
            f"http://127.0.0.1:{upstream}",
            "--store",
            "sqlite",
            "--messages",
            f"smtp://127.0.0.1:{mail.port}?from=login@example.com",
        )
        assert told.returncode == 0, told.stderr
        lua = folder / "gateway.lua"
        lua.write_text(
            lua.read_text()
            .replace("127.0.0.1:8080", f"127.0.0.1:{gateway}")
            .replace("127.0.0.1:9901", f"127.0.0.1:{admin}")
        )
        running = Program(BIN / "moongate", "serve", "--config", folder)
        running.wait_line(" ready ", 90)
        yield folder, mail
        running.end()
    service.end()


def test_a_site_in_order(site):
    folder, mail = site
    status, found = checks(folder, "--to", "ops@example.com")
    assert status == 0 and {name for name, entry in found.items() if entry["state"] == "failed"} == set(), found
    for name in ("configuration", "key", "store", "clock", "upstream", "messages", "dns", "public_url", "proxies"):
        assert found[name]["state"] == "ok", found[name]
    assert "a test message to ops@example.com was accepted" in found["messages"]["message"]
    assert found["listen"]["state"] == "ok" and "belongs to the running gateway" in found["listen"]["message"]
    assert found["files"]["message"].startswith("The limit of the running gateway"), found["files"]
    status, found = checks(folder, "--to", "+15550100")
    assert status == 1 and "no provider of gateway.lua sends messages to phones" in found["messages"]["message"], found


def test_an_address_of_another_program_is_reported(site, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(site[0], other)
    lua = other / "gateway.lua"
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        text = re.sub(r'listen = "127\.0\.0\.1:\d+"', f'listen = "127.0.0.1:{taken}"', lua.read_text())
        lua.write_text(re.sub(r'admin = "127\.0\.0\.1:\d+"', f'admin = "127.0.0.1:{free_port()}"', text))
        status, found = checks_in_order(other)
    assert status == 1
    listeners = [(entry["state"], entry["message"]) for entry in found if entry["check"] == "listen"]
    assert listeners[0][0] == "failed" and "is in use, and the gateway does not answer" in listeners[0][1], listeners
    assert listeners[1][0] == "ok" and "is free" in listeners[1][1], listeners


def test_a_certificate_for_another_host_is_reported(site, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(site[0], other)
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90"]
        + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:other.example.com"]
        + ["-keyout", str(other / "tls.key"), "-out", str(other / "tls.pem")],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    lua = other / "gateway.lua"
    text = lua.read_text().replace('public_url = "http://', 'public_url = "https://')
    text = re.sub(r"trusted_proxies = \{[^}]*\},?\n", "", text)
    tls = f'gateway {{\n  tls = {{ cert = "{other}/tls.pem", key = "{other}/tls.key" }},'
    lua.write_text(text.replace("gateway {", tls, 1))
    status, found = checks(other)
    assert status == 1 and found["certificate"]["state"] == "failed", found
    assert "is not valid for localhost. It names other.example.com." in found["certificate"]["message"]


def self_signed(folder, name, host="localhost", days=90):
    """Writes NAME.pem and NAME.key: a certificate that is signed by itself, and valid until `days` days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days - 90, minutes=-5))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (folder / f"{name}.key").chmod(0o600)


UNTRUSTED = "is not signed by an authority that this machine trusts"
# The certificates of a proxy for localhost, and what the doctor finds, in its order.
PROXY_CERTIFICATES = {
    "untrusted": ({}, [("ok", "is valid until"), ("failed", UNTRUSTED)]),
    "soon": ({"days": 5}, [("warning", "expires in 4 days"), ("failed", UNTRUSTED)]),
    "expired": ({"days": -3}, [("failed", "expired on")]),
    "other": (
        {"host": "other.example.com"},
        [("ok", "is valid until"), ("failed", "is not valid for localhost. It names other.example.com.")],
    ),
}


def test_the_certificate_of_a_proxy_is_judged(site, tmp_path):
    """nginx in front of a gateway without a certificate, as `moongate init` advises."""
    folder = tmp_path / "site"
    shutil.copytree(site[0], folder)
    ports = {name: free_port() for name in PROXY_CERTIFICATES}
    servers = []
    for name, (options, _) in PROXY_CERTIFICATES.items():
        self_signed(tmp_path, name, **options)
        servers.append(
            f"server {{ listen 127.0.0.1:{ports[name]} ssl;"
            f" ssl_certificate {tmp_path}/{name}.pem; ssl_certificate_key {tmp_path}/{name}.key; return 502; }}"
        )
    proxy = nginx(tmp_path, "\n".join(servers))
    lua = folder / "gateway.lua"
    text = lua.read_text()
    try:
        for name, (_, expected) in PROXY_CERTIFICATES.items():
            wait_for(lambda: is_open(ports[name]), "nginx", 10)
            url = f"https://localhost:{ports[name]}"
            lua.write_text(re.sub(r"http://localhost:\d+", url, text))
            status, found = checks_in_order(folder)
            told = [entry for entry in found if entry["check"] == "certificate"]
            assert status == 1 and len(told) == len(expected), (name, found)
            for entry, (state, message) in zip(told, expected):
                assert entry["state"] == state and message in entry["message"], (name, told)
                assert entry["message"].startswith(f"The certificate at {url} "), (name, told)
            leads = next(entry for entry in found if entry["check"] == "public_url")
            assert leads["state"] == "warning", (name, leads)
            assert leads["fix"].startswith("Correct the certificate first"), (name, leads)
    finally:
        proxy.end()


def test_a_certificate_of_ones_own_authority_is_a_warning(site, tmp_path):
    """A gateway that speaks TLS itself. Users may have an authority that this machine does not trust."""
    folder = tmp_path / "site"
    shutil.copytree(site[0], folder)
    self_signed(folder, "tls")
    listen = free_port()
    lua = folder / "gateway.lua"
    text = re.sub(r'listen = "127\.0\.0\.1:\d+"', f'listen = "127.0.0.1:{listen}"', lua.read_text())
    text = re.sub(r'admin = "127\.0\.0\.1:\d+"', f'admin = "127.0.0.1:{free_port()}"', text)
    text = re.sub(r"http://localhost:\d+", f"https://localhost:{listen}", text)
    text = re.sub(r"trusted_proxies = \{[^}]*\},?\n", "", text)
    tls = f'gateway {{\n  tls = {{ cert = "{folder}/tls.pem", key = "{folder}/tls.key" }},'
    lua.write_text(text.replace("gateway {", tls, 1))
    running = Program(BIN / "moongate", "serve", "--config", folder)
    try:
        running.wait_line(" ready ", 90)
        found = [entry for entry in checks_in_order(folder)[1] if entry["check"] == "certificate"]
    finally:
        running.end()
    assert [entry["state"] for entry in found] == ["ok", "warning"], found
    assert found[0]["message"].startswith(f"{folder}/tls.pem is valid until"), found
    assert found[1]["message"] == f"{folder}/tls.pem {UNTRUSTED}.", found


def test_an_upstream_that_is_the_gateway_itself_gets_a_warning(site, tmp_path):
    folder = tmp_path / "site"
    shutil.copytree(site[0], folder)
    listen = re.search(r'listen = "([^"]+)"', (folder / "gateway.lua").read_text())[1]
    routes = folder / "routes.lua"
    routes.write_text(re.sub(r"http://127\.0\.0\.1:\d+", f"http://{listen}", routes.read_text()))
    told = moongate("check", "--config", folder)
    sentence = f'"http://{listen}" leads back to the gateway, which listens on {listen}'
    assert told.returncode == 0 and sentence in told.stdout + told.stderr, told
    found = [entry for entry in checks_in_order(folder)[1] if entry["check"] == "configuration"]
    assert [entry["state"] for entry in found] == ["warning"] and sentence in found[0]["message"], found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run the command as another user")
def test_a_key_that_the_user_cannot_create_is_reported(tmp_path):
    folder, state, locked = (tmp_path / name for name in ("site", "state", "locked"))
    told = moongate(
        "init", folder, "--state", state, "--messages", "smtp://localhost", input="\nhttp://127.0.0.1:1\nsqlite\n"
    )
    assert told.returncode == 0, told.stderr
    state.mkdir(exist_ok=True)
    locked.mkdir()
    os.chown(state, 65534, 65534)
    lua = folder / "gateway.lua"
    lua.write_text(lua.read_text().replace(f'"{state}/master.key"', f'"{locked}/master.key"'))
    assert f'"{locked}/master.key"' in lua.read_text()
    for path in [folder, locked, *folder.parents]:
        path.chmod(path.stat().st_mode | 0o755)
    status, found = checks(folder, user=65534, group=65534, extra_groups=[])
    assert status == 1 and found["key"]["state"] == "failed", found
    assert "cannot create the master key" in found["key"]["message"], found
    assert found["permissions"]["message"] == f"{locked} cannot be written by this user: Permission denied.", found
    assert "in `key` in gateway.lua" in found["permissions"]["fix"], found


# What a proxy does with X-Forwarded-For, in nginx's words, and the doctor's finding.
FORWARDING = {
    "$remote_addr": ("ok", "a claim to be 198.51.100.77 had no effect"),
    "$proxy_add_x_forwarded_for": ("ok", "a claim to be 198.51.100.77 had no effect"),
    "$http_x_forwarded_for": ("failed", "the proxy at 127.0.0.2 passes X-Forwarded-For on"),
    '""': ("failed", "The proxy at 127.0.0.2 sends no X-Forwarded-For"),
}


def test_headers_of_a_proxy_are_tried(site, tmp_path):
    """A gateway behind nginx, which calls it from 127.0.0.2, the only trusted address."""
    folder = tmp_path / "site"
    shutil.copytree(site[0], folder)
    listen, outside = free_port(), {value: free_port() for value in FORWARDING}
    servers = [
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{listen}; proxy_bind 127.0.0.2;"
        f" proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For {value}; }} }}"
        for value, port in outside.items()
    ]
    lua = folder / "gateway.lua"
    text = re.sub(r'listen = "127\.0\.0\.1:\d+"', f'listen = "127.0.0.1:{listen}"', lua.read_text())
    text = re.sub(r'admin = "127\.0\.0\.1:\d+"', f'admin = "127.0.0.1:{free_port()}"', text)
    text = re.sub(r"trusted_proxies = \{[^}]*\}", 'trusted_proxies = { "127.0.0.2/32" }', text)

    def found(port):
        lua.write_text(re.sub(r"http://localhost:\d+", f"http://localhost:{port}", text))
        return checks(folder)[1]["proxies"]

    untried = found(outside["$remote_addr"])
    assert "This was not tried" in untried["message"], untried
    proxy = nginx(tmp_path, "\n".join(servers))
    running = Program(BIN / "moongate", "serve", "--config", folder)
    try:
        running.wait_line(" ready ", 90)
        for value, (state, message) in FORWARDING.items():
            finding = found(outside[value])
            assert finding["state"] == state and message in finding["message"], (value, finding)
        # The doctor judges by the file; the gateway reads it too, within a second.
        text = re.sub(r"trusted_proxies = \{[^}]*\}", 'trusted_proxies = { "127.0.0.3/32" }', text)
        finding = found(outside["$remote_addr"])
        assert finding["state"] == "failed" and finding["fix"].startswith('Add "127.0.0.2" to trusted_proxies'), finding
    finally:
        running.end()
        proxy.end()


def test_another_host_than_the_one_of_the_target_is_tried(site, tmp_path):
    """Attack: nginx chooses a server by the target of a request, and passes on its Host, which names another host."""
    folder = tmp_path / "site"
    shutil.copytree(site[0], folder)
    listen, careless, careful = free_port(), free_port(), free_port()
    printed = block("cluster.conf", "guides/several-gateways.md")
    careful_map = re.search(r"map [^}]*moongate_host[^}]*}", printed)[0]
    server = (
        "server {{ listen 127.0.0.1:{port}; {refuse} location / {{ proxy_pass http://127.0.0.1:{listen};"
        " proxy_set_header Host {host}; proxy_set_header X-Forwarded-For $remote_addr; }} }}"
    )
    servers = [
        careful_map,
        server.format(port=careless, listen=listen, host="$http_host", refuse=""),
        server.format(
            port=careful, listen=listen, host="$moongate_host", refuse='if ($moongate_host = "") { return 400; }'
        ),
    ]
    lua = folder / "gateway.lua"
    text = re.sub(r'listen = "127\.0\.0\.1:\d+"', f'listen = "127.0.0.1:{listen}"', lua.read_text())
    text = re.sub(r'admin = "127\.0\.0\.1:\d+"', f'admin = "127.0.0.1:{free_port()}"', text)
    lua.write_text(text)
    proxy = nginx(tmp_path, "\n".join(servers))
    running = Program(BIN / "moongate", "serve", "--config", folder)
    try:
        running.wait_line(" ready ", 90)
        wait_for(lambda: is_open(careless) and is_open(careful), "nginx to listen")
        for port, state in [(careless, "failed"), (careful, "ok"), (listen, "ok")]:
            lua.write_text(re.sub(r"http://localhost:\d+", f"http://localhost:{port}", text))
            found = checks(folder)[1]["host"]
            assert found["state"] == state and "`Host: moongate-doctor.invalid`" in found["message"], (port, found)
    finally:
        running.end()
        proxy.end()


def test_a_clock_that_is_an_hour_off(site):
    if not shutil.which("faketime"):
        pytest.skip("faketime is not installed")
    status, found = checks(site[0], before=("faketime", "-f", "+1h"))
    assert (
        status == 1
        and found["clock"]["state"] == "failed"
        and "behind this machine's clock" in found["clock"]["message"]
    ), found["clock"]


def test_problems_are_reported_with_their_fix(site, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(site[0], broken)
    lua = broken / "gateway.lua"
    text = lua.read_text().replace('"127.0.0.1/32", "::1/128"', '"0.0.0.0/0"')
    lua.write_text(re.sub(r"smtp://127\.0\.0\.1:\d+", f"smtp://127.0.0.1:{free_port()}", text))
    routes = broken / "routes.lua"
    routes.write_text(re.sub(r"http://127\.0\.0\.1:\d+", f"http://127.0.0.1:{free_port()}", routes.read_text()))
    (broken / "data/master.key").chmod(0o644)
    status, found = checks(broken)
    assert status == 1 and f"moongate doctor --config {broken}`" in found["key"]["fix"], found["key"]
    text = moongate("doctor", "--config", broken).stdout
    marks = [line.split(" ")[0] for line in text.splitlines()[:-1] if not line.startswith(" ")]
    assert marks == sorted(marks, key=["FAILED", "warning", "ok"].index) and marks[0] == "FAILED", text
    assert {name for name, entry in found.items() if entry["state"] == "failed"} >= {
        "key",
        "store",
        "upstream",
        "messages",
        "proxies",
    }, found
    (broken / "data/master.key").unlink()
    status, found = checks(broken)
    assert status == 1 and found["store"]["state"] == "ok" and found["key"]["state"] == "failed", found
    assert "is missing, and the store" in found["key"]["message"]
    lua.write_text("return gateway {")
    status, found = checks(broken)
    assert (
        status == 1
        and set(found) == {"configuration"}
        and found["configuration"]["message"].startswith("gateway.lua:1: ")
    )
    assert moongate("doctor", "--config", tmp_path / "nowhere").returncode == 2
