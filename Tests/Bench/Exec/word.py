#!/usr/bin/env python3
"""The benchmark provider as a program. `hang` selects one that never answers a submit."""

import json
import sys

INTRODUCTION = {
    "protocol": 1,
    "shape": "full",
    "submit": [{"name": "word", "kind": "text"}],
    "federated": True,
    "outcomes": [{"reason": "wrong_word", "sentence": "That is not the word."}],
    "policy": "return policy \"word\" {}",
}
hangs = "hang" in sys.argv

for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "shutdown":
        break
    if "id" not in message or (hangs and method == "submit"):
        continue
    if method == "hello":
        result = INTRODUCTION
    elif method == "submit":
        right = message["params"]["fields"]["word"] == "open"
        result = (
            {"proved": {"identifiers": [{"kind": "federated", "value": "word 1"}]}}
            if right
            else {"refused": "wrong_word"}
        )
    else:
        result = {}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
