"""The fuzzing client of the Autobahn suite through the gateway and directly to the same service: the tunnel must add
no failure.

The suite needs Python 2.7: pip install autobahntestsuite, and set MOONGATE_WSTEST=/path/to/wstest."""

import json
import os
import subprocess

import pytest

from test_http2 import routed
from test_websocket import EchoService

WSTEST = os.environ.get("MOONGATE_WSTEST")


@pytest.mark.skipif(not WSTEST, reason="MOONGATE_WSTEST names no wstest of the Autobahn suite (Python 2.7)")
def test_the_fuzzing_client(new_gateway, tmp_path):
    service = EchoService()
    routed(new_gateway, service.port)
    new_gateway.start()
    spec = tmp_path / "spec.json"
    spec.write_text(
        json.dumps(
            {
                "outdir": str(tmp_path / "report"),
                "exclude-cases": [],
                "exclude-agent-cases": {},
                "cases": [f"{group}.*" for group in (1, 2, 3, 4, 5, 6, 7, 9, 10)],
                "servers": [
                    {"agent": "direct", "url": f"ws://127.0.0.1:{service.port}"},
                    {"agent": "gateway", "url": f"ws://127.0.0.1:{new_gateway.ports[0]}/open/ws"},
                ],
            }
        )
    )
    subprocess.run([WSTEST, "-m", "fuzzingclient", "-s", spec], check=True, capture_output=True, timeout=900)
    report = json.loads((tmp_path / "report" / "index.json").read_text())
    assert len(report["gateway"]) == len(report["direct"]) > 250
    # NON-STRICT: single bytes were merged, so the service noticed the error before its echo.
    fine = ("OK", "NON-STRICT", "INFORMATIONAL")
    worse = {
        case: (found["behavior"], found["behaviorClose"])
        for case, found in report["gateway"].items()
        if found["behavior"] not in fine
        and report["direct"][case]["behavior"] in fine
        or found["behaviorClose"] not in fine
        and report["direct"][case]["behaviorClose"] in fine
    }
    assert not worse, worse
