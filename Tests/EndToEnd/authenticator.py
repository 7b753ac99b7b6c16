"""An independent authenticator app: from the text of a QR code to codes (RFC 6238)."""

import base64
import hashlib
import hmac
import struct
import subprocess
import time
from urllib.parse import parse_qs, unquote, urlsplit


class App:
    def __init__(self, address):
        parts = urlsplit(address)
        assert (parts.scheme, parts.netloc) == ("otpauth", "totp"), address
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert (query["algorithm"], query["digits"], query["period"]) == ("SHA1", "6", "30")
        self.label, self.issuer, self.secret = unquote(parts.path[1:]), query["issuer"], query["secret"]
        self.key = base64.b32decode(self.secret + "=" * (-len(self.secret) % 8))

    def code(self, offset=0):
        """The current code, or that of another period. If it is about to expire, the code of the next period."""
        left = 30 - time.time() % 30
        if offset < 0 and left < 4:
            time.sleep(left)
        mac = hmac.new(self.key, struct.pack(">Q", int(time.time()) // 30 + offset), hashlib.sha1).digest()
        at = mac[-1] & 15
        return str((struct.unpack(">I", mac[at : at + 4])[0] & 0x7FFFFFFF) % 10**6).zfill(6)


def scan(picture):
    """Decodes a QR code from a picture with zbar."""
    told = subprocess.run(
        ["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", str(picture)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 0, f"no QR code is to be seen in {picture}: {told.stderr}"
    return told.stdout.strip()
