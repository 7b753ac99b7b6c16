"""A real mail server (aiosmtpd) with TLS and AUTH that stores all mail."""

import email
import email.policy
import socket
import ssl
import subprocess

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from local_gateway import free_port, wait_for

USER, PASSWORD = "moongate", "s3cret: ü"


class MailServer:
    """`tls` is "implicit" (smtps://), "starttls", or None for no TLS."""

    def __init__(self, folder, tls, auth=True):
        self.envelopes = []
        self.logins = []
        self.refuse = None
        self.is_stopped = False
        self.certificate = folder / "mail.pem"
        self.tls = tls
        self.port = free_port()
        options = {"hostname": "127.0.0.1", "port": self.port}
        if tls:
            key = folder / "mail.key"
            if not self.certificate.exists():
                subprocess.run(
                    [
                        "openssl",
                        "req",
                        "-x509",
                        "-newkey",
                        "ec",
                        "-pkeyopt",
                        "ec_paramgen_curve:P-256",
                        "-nodes",
                        "-days",
                        "2",
                        "-subj",
                        "/CN=localhost",
                        "-addext",
                        "subjectAltName=DNS:localhost",
                        "-keyout",
                        key,
                        "-out",
                        self.certificate,
                    ],
                    check=True,
                    capture_output=True,
                )
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.certificate, key)
            options |= (
                {"ssl_context": context} if tls == "implicit" else {"tls_context": context, "require_starttls": True}
            )
        if auth:
            # It recognizes TLS only if it started TLS itself.
            options |= {"authenticator": self._login, "auth_required": True, "auth_require_tls": tls == "starttls"}
        self.controller = Controller(self, **options)

    @property
    def url(self):
        return f"{'smtps' if self.tls == 'implicit' else 'smtp'}://localhost:{self.port}"

    def __enter__(self):
        # Its own probe would need a host name that the certificate does not contain.
        self.controller._trigger_server = lambda: socket.create_connection(("127.0.0.1", self.port)).close()
        self.controller.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if not self.is_stopped:
            self.controller.stop()
        self.is_stopped = True

    def _login(self, server, session, envelope, mechanism, data):
        login = (data.login.decode(), data.password.decode())
        self.logins.append(login)
        return AuthResult(success=login == (USER, PASSWORD))

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.refuse:
            return self.refuse
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.envelopes.append(envelope)
        return "250 taken"

    def mail(self, count):
        """The newest mail with its envelope, once this many have arrived."""
        envelope = wait_for(lambda: len(self.envelopes) >= count and self.envelopes[count - 1], f"mail {count}")
        return envelope, email.message_from_bytes(envelope.content, policy=email.policy.default)
