"""Backup of a store while the gateway runs, and restore while it does not."""

import stat

from local_gateway import problem, wrong
from test_accounts import tool


def bearer(token):
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_a_backup_is_restored(gateway, number, other_number, tmp_path):
    token = gateway.register(number)["session"]["token"]
    locked, later = other_number(), other_number()
    gateway.register(locked)
    flow = gateway.flow("login")
    assert gateway.begin(flow, locked).status_code == 200
    for _ in range(5):
        gateway.submit(flow, wrong(gateway.code(locked)))
    file = tmp_path / "moongate.backup"
    status, out, told = tool(gateway, "store", "backup", file)
    assert status == 0 and "is backed up in" in out, told
    # Attack: other users of the machine read the backup.
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    status, _, told = tool(gateway, "store", "backup", file)
    assert status == 2 and "exists, and nothing was written" in told and "--overwrite" in told
    gateway.register(later)

    # A store in use is never restored.
    assert tool(gateway, "store", "restore", file)[2].count("is not empty")
    status, _, told = tool(gateway, "store", "restore", file, "--replace")
    assert status == 1 and "is served by" in told, told
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 200
    gateway.server.end()
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    status, _, told = tool(gateway, "store", "restore", file, "--replace")
    assert status == 2 and "was cut or added to" in told
    file.write_bytes(whole[:-7] + b"1234567")
    status, _, told = tool(gateway, "store", "restore", file, "--replace")
    assert status == 2 and "was damaged or changed" in told
    file.write_bytes(whole)
    file.chmod(0o644)
    assert "chmod 600" in tool(gateway, "store", "restore", file, "--replace")[2]
    file.chmod(0o600)
    status, out, told = tool(gateway, "store", "restore", file, "--replace")
    assert status == 0 and "is restored to its state of 20" in out and "all users must sign in again" in out, told
    gateway.start()
    # Attack: a session that ended since the backup would become valid again; a lock must not end by a restore.
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 401
    problem(gateway.begin(gateway.flow(), locked), 429, "too_many_attempts")
    assert number in tool(gateway, "account", "show", number)[1]
    assert tool(gateway, "account", "show", later)[0] == 1
    assert tool(gateway, "store", "check")[0] == 0
