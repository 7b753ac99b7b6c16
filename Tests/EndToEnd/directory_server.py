"""A real directory (slapd of Debian) with a configuration and a database of its own, and servers that pretend to be
one."""

import base64
import hashlib
import os
import socket
import socketserver
import subprocess
import threading

from processes import Program, free_port

BASE = "dc=example,dc=com"
ADMIN, ADMIN_PASSWORD = f"cn=admin,{BASE}", "the administrator's"
SEARCHER, SEARCHER_PASSWORD = f"cn=search,{BASE}", "the searcher's: ü"
PASSWORD = "correct horse ü"

SETTINGS = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb.la
moduleload memberof.la
moduleload ppolicy.la
pidfile {folder}/slapd.pid
argsfile {folder}/slapd.args
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/ca.pem
TLSCertificateKeyFile {folder}/ca.key
TLSVerifyClient never
sizelimit unlimited
database mdb
maxsize 268435456
suffix "{base}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/data
index objectClass,uid,mail,member eq
overlay memberof
overlay ppolicy
ppolicy_default "cn=default,{base}"
ppolicy_use_lockout
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{searcher}" read by anonymous auth by * none
"""


def hashed(password):
    """The scheme {SSHA}, which slapd has built in."""
    salt = os.urandom(8)
    return "{SSHA}" + base64.b64encode(hashlib.sha1(password.encode() + salt).digest() + salt).decode()


def entry(name, classes, **values):
    """An entry in LDIF, with its values in base64."""
    lines = [("dn", name)] + [("objectClass", one) for one in classes]
    for key, value in values.items():
        lines += [(key, one) for one in (value if isinstance(value, list) else [value])]
    return "".join(f"{key}:: {base64.b64encode(value.encode()).decode()}\n" for key, value in lines) + "\n"


def person(uid, common="Ada Lovelace", **values):
    given, last = common.split(" ", 1)
    values = {"mail": f"{uid}@example.com", "userPassword": hashed(PASSWORD), **values}
    kind = ["inetOrgPerson"]
    return entry(f"uid={uid},ou=people,{BASE}", kind, uid=uid, cn=common, givenName=given, sn=last, **values)


def group(name, *members, below="groups"):
    return entry(f"cn={name},ou={below},{BASE}", ["groupOfNames"], cn=name, member=list(members))


def dn(uid):
    return f"uid={uid},ou=people,{BASE}"


def certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=Example", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", folder / "ca.key", "-out", folder / "ca.pem"], check=True, capture_output=True)
    return folder / "ca.pem"


class DirectoryServer:
    """slapd with these entries beside its base, its accounts and its policy."""

    def __init__(self, folder, *entries):
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        self.authority = certificate(folder)
        (folder / "slapd.conf").write_text(
            SETTINGS.format(folder=folder, base=BASE, admin=ADMIN, password=ADMIN_PASSWORD, searcher=SEARCHER)
        )
        policy = {"pwdAttribute": "userPassword", "pwdLockout": "TRUE", "pwdMaxFailure": "5", "sn": "policy"}
        policy["pwdMustChange"] = "TRUE"
        tree = [entry(BASE, ["dcObject", "organization"], dc="example", o="Example")]
        tree += [entry(f"ou={one},{BASE}", ["organizationalUnit"], ou=one) for one in ("people", "groups", "other")]
        tree.append(entry(f"cn=default,{BASE}", ["person", "pwdPolicy"], cn="default", **policy))
        tree.append(entry(f"cn=aged,{BASE}", ["person", "pwdPolicy"], cn="aged", **policy, pwdMaxAge="60"))
        searcher = {"sn": "search", "userPassword": hashed(SEARCHER_PASSWORD)}
        tree.append(entry(SEARCHER, ["person"], cn="search", **searcher))
        added = subprocess.run(
            ["slapadd", "-f", folder / "slapd.conf"],
            input="".join(tree + list(entries)), capture_output=True, text=True, env=self.env,
        )
        assert added.returncode == 0, added.stderr
        self.port, self.tls_port = free_port(), free_port()
        self.program = None
        self.start()

    env = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def start(self):
        urls = f"ldap://127.0.0.1:{self.port}/ ldaps://127.0.0.1:{self.tls_port}/"
        self.program = Program("slapd", "-f", self.folder / "slapd.conf", "-h", urls, "-d", "stats", env=self.env)
        self.program.wait_line("slapd starting")
        return self

    def stop(self):
        self.program.end()

    @property
    def tls_url(self):
        return f"ldaps://127.0.0.1:{self.tls_port}"

    @property
    def url(self):
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def log(self):
        return self.program.output

    def binds(self, name):
        """How many times somebody tried to bind with this name."""
        return self.log.count(f'BIND dn="{name}" method=128')

    def change(self, text):
        """Changes entries by LDIF, as the administrator."""
        self._tool("ldapmodify", text)

    def read(self, name, *attributes):
        return self._tool("ldapsearch", "", "-LLL", "-o", "ldif-wrap=no", "-s", "base", "-b", name, "+", *attributes)

    def _tool(self, name, text, *words):
        command = [name, "-x", "-H", self.url, "-D", ADMIN, "-w", ADMIN_PASSWORD, *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout


# MARK: servers that are not what they seem


def length(count):
    if count < 128:
        return bytes([count])
    size = (count.bit_length() + 7) // 8
    return bytes([0x80 | size]) + count.to_bytes(size, "big")


def ber(tag, *parts):
    body = b"".join(parts)
    return bytes([tag]) + length(len(body)) + body


def text(value):
    return ber(0x04, value.encode() if isinstance(value, str) else value)


def result(tag, code, said="", *more):
    """A message with a result, without its ID: see `message`."""
    return ber(tag, bytes([0x0A, 1, code]), text(""), text(said), *more)


def message(number, operation):
    return ber(0x30, bytes([0x02, 1, number]), operation)


BIND, SEARCH, EXTENDED = 0x60, 0x63, 0x77
BOUND, FOUND, DONE, STARTED = 0x61, 0x64, 0x65, 0x78


class FalseServer:
    """Answers requests as a function says, and keeps everything that it receives. The function gets the connection's
    socket, the message's ID, the tag of the operation and the message, and returns the bytes to send; None ends the
    connection."""

    def __init__(self, answer):
        self.received = b""
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                waiting = b""
                while True:
                    try:
                        more = self.request.recv(65536)
                    except OSError:
                        return
                    outer.received += more
                    waiting += more
                    if not more:
                        return
                    while (whole := whole_message(waiting)) is not None:
                        one, waiting = waiting[:whole], waiting[whole:]
                        start = 2 if one[1] < 128 else 2 + (one[1] & 127)
                        # What follows StartTLS is no message.
                        if one[0] != 0x30 or len(one) < start + 4:
                            return
                        said = answer(self.request, one[start + 2], one[start + 3], one)
                        if said is None:
                            return
                        try:
                            self.request.sendall(said)
                        except OSError:
                            return

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"ldap://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def whole_message(data):
    """The length of the first message; None if it is not there yet."""
    if len(data) < 2:
        return None
    if data[1] < 128:
        whole = 2 + data[1]
    else:
        size = data[1] & 127
        if len(data) < 2 + size:
            return None
        whole = 2 + size + int.from_bytes(data[2 : 2 + size], "big")
    return whole if len(data) >= whole else None


class StrippingProxy:
    """Passes everything on between a client and a server, except StartTLS, which it answers itself."""

    def __init__(self, server, code):
        self.server = server
        self.code = code
        self.false = FalseServer(self._answer)
        self.url = self.false.url
        self.upstreams = {}

    def _answer(self, client, number, tag, whole):
        if tag == EXTENDED:
            return message(number, result(STARTED, self.code))
        upstream = self.upstreams.get(client)
        if upstream is None:
            upstream = self.upstreams[client] = socket.create_connection(("127.0.0.1", self.server.port))
        upstream.sendall(whole)
        return upstream.recv(65536)

    @property
    def received(self):
        return self.false.received

    def stop(self):
        for upstream in self.upstreams.values():
            upstream.close()
        self.false.stop()
