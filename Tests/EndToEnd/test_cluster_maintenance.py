"""The maintenance of a vendor's program on three gateways with one PostgreSQL. It waits for runs ten seconds apart and
measures nothing else, so it runs beside other tests."""

import signal

import pytest

import programs
from cluster import Postgres
from local_gateway import wait_for
from test_cluster import LACKING, single

pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"needs {LACKING}")

MAINTAINED = '''
plain = introduce

def introduce(params):
    return {**plain(params), "maintain": 10}

def maintain(params):
    with open("maintained.txt", "a") as file:
        file.write(f"{os.getpid()} {time.monotonic()}\\n")
    return {}

def answer(message):
    method = {"hello": introduce, "configure": configure, "deliver": deliver, "maintain": maintain}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": method(message["params"])}), flush=True)
'''


def test_maintenance_runs_on_one_node_at_a_time(tmp_path):
    """Three gateways must not run the maintenance of a vendor concurrently, and a killed gateway must not stop it."""
    server = Postgres("max_connections=60")
    try:
        cluster = single(tmp_path, server.make().start(), nodes=3)
        programs.write(cluster, MAINTAINED)
        (cluster.config / "flows" / "hub.lua").write_text(programs.FLOW)
        gateway = cluster.config / "gateway.lua"
        text = gateway.read_text().replace(
            "providers = {", 'providers = { sms_hub = exec { "./sms_hub.py", sender = "Ours" },', 1
        )
        gateway.write_text(text.replace('"0.1% per 30d"', '"1% per 30d"'))
        file = cluster.config / "maintained.txt"

        def runs():
            return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

        try:
            for node in cluster.nodes:
                node.launch()
            for node in cluster.nodes:
                node.ready()
            wait_for(lambda: len(runs()) >= 3, "three runs", 60)
            cluster.nodes[0].end(signal.SIGKILL)
            before = len(runs())
            wait_for(lambda: len(runs()) >= before + 2, "runs without the one that died", 120)
        finally:
            cluster.stop()
        moments = [float(moment) for _, moment in runs()]
        assert all(later - earlier > 8 for earlier, later in zip(moments, moments[1:])), runs()
    finally:
        server.remove()
