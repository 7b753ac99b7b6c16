#!/usr/bin/env python3
"""Answers the conformance suite's ceremonies like a device with one passkey (Web Authentication, Level 3); with `wrong`, its signatures are spoiled.

subject.json names it. The key is in this file, so it protects nothing; Python's own library has no P-256, so the arithmetic is here, too.
"""

import base64
import hashlib
import json
import secrets
import sys

# P-256 (FIPS 186-5, SP 800-186).
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
KEY = int.from_bytes(hashlib.sha256(b"the passkey of the conformance suite").digest()) % N
CREDENTIAL = hashlib.sha256(b"its credential id").digest()
# Present and verified; AT: with the credential.
FLAGS, ATTESTED = 0x05, 0x40


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if a[1] != b[1]:
            return None
        slope = 3 * (a[0] * a[0] - 1) * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(number, point):
    total = None
    while number:
        if number & 1:
            total = add(total, point)
        point, number = add(point, point), number >> 1
    return total


def integer(number):
    """As DER."""
    data = number.to_bytes(number.bit_length() // 8 + 1)
    return bytes([2, len(data)]) + data


def sign(message):
    """ECDSA with SHA-256, as DER."""
    digest, nonce = int.from_bytes(hashlib.sha256(message).digest()), secrets.randbelow(N - 1) + 1
    r = times(nonce, BASE)[0] % N
    pair = integer(r) + integer(pow(nonce, -1, N) * (digest + r * KEY) % N)
    return bytes([0x30, len(pair)]) + pair


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def cbor_text(value):
    return bytes([0x60 | len(value)]) + value.encode()


def answer(call, options, is_right):
    client = json.dumps({"type": f"webauthn.{call}", "challenge": options["challenge"], "origin": "https://auth.example.com", "crossOrigin": False}).encode()
    site = hashlib.sha256((options["rp"]["id"] if call == "create" else options["rpId"]).encode()).digest()
    response = {"clientDataJSON": text(client)}
    if call == "create":
        x, y = (number.to_bytes(32) for number in times(KEY, BASE))
        # COSE_Key: EC2, ES256, P-256.
        public = bytes.fromhex("a5010203262001215820") + x + bytes.fromhex("225820") + y
        data = site + bytes([FLAGS | ATTESTED]) + bytes(4) + bytes(16)
        data += len(CREDENTIAL).to_bytes(2) + CREDENTIAL + public
        if not is_right:
            data = bytes(32) + data[32:]
        made = b"\xa3" + cbor_text("fmt") + cbor_text("none") + cbor_text("attStmt") + b"\xa0" + cbor_text("authData") + bytes([0x58, len(data)]) + data
        response |= {"attestationObject": text(made), "transports": ["internal"]}
    else:
        data = site + bytes([FLAGS]) + bytes(4)
        message = data + hashlib.sha256(client).digest()
        response |= {"authenticatorData": text(data), "signature": text(sign(message if is_right else message + b"x"))}
    return {"id": text(CREDENTIAL), "rawId": text(CREDENTIAL), "type": "public-key", "response": response, "clientExtensionResults": {}}


def main():
    step, told = json.load(sys.stdin), {}
    for shown in step["shown"]:
        if shown["kind"] == "ceremony":
            told["credential"] = json.dumps(answer(shown["call"], json.loads(shown["options"]), "wrong" not in sys.argv))
    print(json.dumps(told))


main()
