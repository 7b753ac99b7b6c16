"""A software passkey with an independent implementation (fido2): CBOR, COSE keys, authenticator data and client
data."""

import hashlib
import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from fido2.cose import ES256, RS256, EdDSA
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData
from passkeys import data, text

FLAG = AuthenticatorData.FLAG


class Fido2Passkey:
    """A credential of one algorithm: "ES256", "EdDSA" or "RS256"."""

    def __init__(self, origin, algorithm="ES256", counter=0):
        self.origin, self.algorithm, self.id, self.handle, self.counter = (
            origin,
            algorithm,
            os.urandom(32),
            None,
            counter,
        )
        match algorithm:
            case "ES256":
                self.key, self.cose = ec.generate_private_key(ec.SECP256R1()), ES256
            case "EdDSA":
                self.key, self.cose = ed25519.Ed25519PrivateKey.generate(), EdDSA
            case "RS256":
                self.key, self.cose = rsa.generate_private_key(65537, 2048), RS256

    def sign(self, message):
        match self.algorithm:
            case "ES256":
                return self.key.sign(message, ec.ECDSA(hashes.SHA256()))
            case "EdDSA":
                return self.key.sign(message)
            case "RS256":
                return self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())

    def client(self, kind, options):
        return CollectedClientData.create(type=kind, challenge=data(options["challenge"]), origin=self.origin)

    def wrapped(self, response):
        return {
            "id": text(self.id),
            "rawId": text(self.id),
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
        }

    def create(self, options, format="packed"):
        self.handle = options["user"]["id"]
        attested = AttestedCredentialData.create(
            bytes(16), self.id, self.cose.from_cryptography_key(self.key.public_key())
        )
        said = AuthenticatorData.create(
            hashlib.sha256(options["rp"]["id"].encode()).digest(),
            FLAG.UP | FLAG.UV | FLAG.AT | FLAG.BE | FLAG.BS,
            self.counter,
            bytes(attested),
        )
        client = self.client("webauthn.create", options)
        statement = {} if format == "none" else {"alg": self.cose.ALGORITHM, "sig": self.sign(said + client.hash)}
        made = AttestationObject.create(format, said, statement)
        return self.wrapped(
            {
                "clientDataJSON": text(bytes(client)),
                "attestationObject": text(bytes(made)),
                "transports": ["hybrid", "internal"],
            }
        )

    def get(self, options, count=None):
        self.counter = self.counter + 1 if count is None and self.counter else count or 0
        said = AuthenticatorData.create(
            hashlib.sha256(options["rpId"].encode()).digest(), FLAG.UP | FLAG.UV | FLAG.BE | FLAG.BS, self.counter
        )
        client = self.client("webauthn.get", options)
        return self.wrapped(
            {
                "clientDataJSON": text(bytes(client)),
                "authenticatorData": text(bytes(said)),
                "signature": text(self.sign(said + client.hash)),
                "userHandle": self.handle,
            }
        )
