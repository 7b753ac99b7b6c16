"""A store is checked and copied, and who was signed in on the one is signed in on the other."""

import re
import subprocess

from house import BIN
from test_accounts import tool
from test_keys import bearer


def store(*arguments, **environment):
    """`moongate store`: exit status, what it prints, what it complains of."""
    done = subprocess.run([BIN / "moongate", "store", *arguments], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **environment})
    return done.returncode, done.stdout, done.stderr


def test_a_gateway_goes_on_from_a_copy(house, number):
    person = house.register(number)
    token = person["session"]["token"]
    status, text, complaint = tool(house, "store", "check")
    assert status == 0 and "All is as it should be." in text, text + complaint
    house.gateway.end(15)
    source = f"sqlite:{house.config}/data/moongate.db"
    status, text, complaint = store("copy", source, f"sqlite:{house.config}/data/copy.db")
    assert status == 0, complaint
    assert re.search(r"^account +1 rows, SHA-256 [0-9a-f]{64} on both sides$", text, re.M), text
    house.edit("gateway.lua", lambda text: text.replace("moongate.db", "copy.db"))
    house.start()
    assert house.api("GET", "/session", **bearer(token)).status_code == 200


def test_what_it_says(tmp_path):
    first = f"sqlite:{tmp_path}/first.db"
    assert store("check", first) == (2, "", f"moongate: There is no store at {first}.\n")
    assert store("migrate", first, "--dry-run") == (0, f"{first}: the schema would go from 0 to 2.\n", "")
    assert store("migrate", first) == (0, f"{first}: the schema went from 0 to 2.\n", "")
    assert store("migrate", first) == (0, f"{first}: the schema is 2 already.\n", "")
    assert store("check", first)[0] == 0
    status, _, complaint = store("check", "postgres://somebody:a-secret@127.0.0.1:1/moongate", PGPASSWORD="another-secret")
    assert status == 2 and "127.0.0.1:1/moongate" in complaint
    assert "secret" not in complaint and "somebody" not in complaint
    assert store("check", "a-secret")[2] == "moongate: That is no store: write sqlite:data/moongate.db or postgres://user@host/database.\n"
