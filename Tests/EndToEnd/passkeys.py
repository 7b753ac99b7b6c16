"""An independent software passkey (Web Authentication, Level 3) for clients without a browser."""

import base64
import hashlib
import json
import os
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def data(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def head(kind, number):
    if number < 24:
        return bytes([kind << 5 | number])
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([kind << 5 | info]) + number.to_bytes(size, "big")
    raise ValueError(number)


def cbor(value):
    match value:
        case int():
            return head(0, value) if value >= 0 else head(1, -1 - value)
        case bytes():
            return head(2, len(value)) + value
        case str():
            return head(3, len(value.encode())) + value.encode()
        case dict():
            return head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())
    raise TypeError(value)


class Passkey:
    """A P-256 credential for one site."""

    def __init__(self, origin):
        self.origin, self.id, self.key, self.handle = (
            origin,
            os.urandom(16),
            ec.generate_private_key(ec.SECP256R1()),
            None,
        )

    def client(self, kind, options):
        return json.dumps(
            {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        ).encode()

    def authenticator(self, site, attested=b"", flags=0x05):
        return (
            hashlib.sha256(site.encode()).digest()
            + bytes([flags | (0x40 if attested else 0)])
            + struct.pack(">I", 0)
            + attested
        )

    def wrapped(self, response):
        return {
            "id": text(self.id),
            "rawId": text(self.id),
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
        }

    def create(self, options):
        numbers = self.key.public_key().public_numbers()
        cose = cbor({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cose
        self.handle = options["user"]["id"]
        made = cbor({"fmt": "none", "attStmt": {}, "authData": self.authenticator(options["rp"]["id"], attested)})
        return self.wrapped(
            {
                "clientDataJSON": text(self.client("webauthn.create", options)),
                "attestationObject": text(made),
                "transports": ["internal"],
            }
        )

    def get(self, options, flags=0x05):
        client, said = self.client("webauthn.get", options), self.authenticator(options["rpId"], flags=flags)
        signature = self.key.sign(said + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self.wrapped(
            {
                "clientDataJSON": text(client),
                "authenticatorData": text(said),
                "signature": text(signature),
                "userHandle": self.handle,
            }
        )


def options(answer):
    """The options that a step shows for the credential API."""
    return next(shown["options"] for shown in answer.json()["step"]["show"] if shown["kind"] == "ceremony")
