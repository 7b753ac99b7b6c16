"""How a service verifies X-Moongate-Assertion: the programs of Documentation/integrations/assertion.md, each with assertions that are good and bad."""

import base64
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
import requests
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from manual import block

PERIOD = 30 * 86_400
# The file on the page, and how it is run.
PROGRAMS = {
    "verify.py": [sys.executable],
    "verify.mjs": ["node"],
    "Verify.java": ["java", "-XX:TieredStopAtLevel=1", "-cp", ".", "Verify"],
    "verify.go": ["./verify"],
    "verify.php": ["php"],
}


def derive(key, info):
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=b"moongate", info=info.encode()).derive(key)


def segment(value):
    return (
        base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode())
        .rstrip(b"=")
        .decode()
    )


class Assertions:
    """Good and bad assertions; the bad ones are signed with the gateway's own key."""

    def __init__(self, gateway):
        registered = gateway.register("+919876500777")
        self.account = registered["account"]["id"]
        answer = requests.get(
            f"{gateway.url}/echo", headers={"Authorization": f"Bearer {registered['session']['token']}"}, timeout=10
        )
        self.good = next(
            field["value"] for field in answer.json()["headers"] if field["name"].lower() == "x-moongate-assertion"
        )
        header, claims, signature = self.good.split(".")
        told = jwt.get_unverified_header(self.good)
        master = (gateway.config / "data" / "master.key").read_bytes()
        number = derive(derive(master, "assertion"), f"assertion {int(time.time()) // PERIOD} 0")
        key = ec.derive_private_key(int.from_bytes(number, "big"), ec.SECP256R1())
        body = jwt.decode(self.good, options={"verify_signature": False})
        sign = lambda changed, **more: jwt.encode(
            {**body, **changed}, key, algorithm="ES256", headers={"kid": told["kid"], **more}
        )
        self.resigned = sign({})
        public = requests.get(f"{gateway.url}/.well-known/moongate/jwks.json", timeout=10).text
        hmac_signed = segment({"alg": "HS256", "kid": told["kid"], "typ": "JWT"}) + "." + claims
        secret = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        self.bad = {
            "expired": sign({"iat": int(time.time()) - 301, "exp": int(time.time()) - 1}),
            "another's": sign({"aud": "other.example.com"}),
            "by another gateway": sign({"iss": "https://evil.example"}),
            "unsigned": segment({"alg": "none", "kid": told["kid"], "typ": "JWT"}) + "." + claims + ".",
            "alg none, signed": segment({"alg": "none", "kid": told["kid"], "typ": "JWT"})
            + "."
            + claims
            + "."
            + signature,
            "HS256 with the public keys": hmac_signed
            + "."
            + segment(secret.sign(hmac_signed.encode(), public.encode())),
            "another key": jwt.encode(
                body, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers={"kid": told["kid"]}
            ),
            "an unknown key": sign({}, kid="unknown"),
            "changed": header + "." + segment({**body, "sub": "ac_root"}) + "." + signature,
            "without a signature": header + "." + claims + ".",
            "nonsense": "a.b.c",
        }


@pytest.fixture(scope="module")
def assertions(shared):
    return Assertions(shared)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_page(shared, assertions, tmp_path, name):
    command = PROGRAMS[name]
    needed = {"verify.go": "go"}.get(name, command[0])
    if not shutil.which(needed):
        pytest.skip(f"{needed} is not there")
    text = block(name).replace("https://auth.example.com", shared.url).replace("app.example.com", "localhost")
    (tmp_path / name).write_text(text)
    if name == "Verify.java":
        subprocess.run(["javac", name], cwd=tmp_path, check=True, timeout=60)
    if name == "verify.go":
        subprocess.run(["go", "build", "-o", "verify", name], cwd=tmp_path, check=True, timeout=120)
    run = command if name in ("Verify.java", "verify.go") else [*command, name]

    def verify(assertion):
        return subprocess.run([*run, assertion], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    for good in (assertions.good, assertions.resigned):
        told = verify(good)
        assert told.returncode == 0 and told.stdout.strip() == assertions.account, told.stderr
    with ThreadPoolExecutor(2) as pool:
        for (what, _), told in zip(assertions.bad.items(), pool.map(verify, assertions.bad.values())):
            assert told.returncode != 0 and assertions.account not in told.stdout, f"{what}: {told.stdout}"
