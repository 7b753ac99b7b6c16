#!/usr/bin/env python3
"""chat_code: codes by a direct message in the company's chat, from a bot (Mattermost, API version 4).

Moongate starts this program, writes one JSON-RPC 2.0 message a line to its standard input, and reads the answers from its standard output;
Plugins/README.md says what each of them is. The code, its tries and its time are the gateway's; here is only how it reaches the person.
"""

import concurrent.futures
import json
import pathlib
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

POLICY = pathlib.Path(__file__).with_name("policy.lua")
LONGEST_ANSWER = 1 << 20


class Fault(Exception):
    """What went wrong, for the operator's log: never a code, an address or the token."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Attack: a redirect to another host would take the bot's token along."""

    def redirect_request(self, *_):
        return None


class Chat:
    def __init__(self, url, token, timeout):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise Fault("`url` must begin with https://: codes and the token would travel unencrypted")
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout
        self.opener = urllib.request.build_opener(NoRedirects)
        self.bot = None

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.url}/api/v4/{path}", method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        what = path.split("/")[0]
        try:
            with self.opener.open(request, timeout=self.timeout) as answer:
                return json.loads(answer.read(LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            raise Fault(f"the chat answered {error.code} to {method} {what}") from None
        except (OSError, ValueError) as error:
            raise Fault(f"the chat did not answer {method} {what}: {type(error).__name__}") from None

    def tell(self, email, text):
        """A direct message from the bot to whoever has the address."""
        if self.bot is None:
            self.bot = self.ask("GET", "users/me")["id"]
        person = self.ask("GET", "users/email/" + urllib.parse.quote(email, safe=""))
        # Attack: an address that the chat never checked, typed into somebody's profile, would get the codes of its owner.
        if person.get("email", "").lower() != email or not person.get("email_verified", False) or person.get("delete_at"):
            raise Fault("the chat has not verified this address, or its owner has left")
        channel = self.ask("POST", "channels/direct", [self.bot, person["id"]])
        self.ask("POST", "posts", {"channel_id": channel["id"], "message": text})


class Provider:
    def __init__(self):
        self.chat = None

    def hello(self, params):
        return {
            "protocol": 2,
            "shape": "code",
            "identifier": "email",
            "settings": [
                {"name": "url", "kind": "text", "required": True, "help": "Where the chat is, such as https://chat.example.com."},
                {"name": "token", "kind": "secret", "required": True, "help": "The access token of the bot that sends the codes."},
                {"name": "patience", "kind": "number", "minimum": 0.1, "maximum": 10, "default": 3,
                 "help": "Seconds that each of the chat's answers may take."},
            ],
            "words": {
                "title": "Code by chat",
                "instruction": "We will send you a code in the company's chat.",
                "labels": {"email": "Work email", "code": "Code from the chat"},
                # What the page with the boxes says in other words: the code does not come by mail.
                "page": {"verify_email": "Code by chat", "check_email": "No message yet? Look for the bot in your chat."},
                "translations": {"hi": {
                    "Code by chat": "चैट से कोड",
                    "We will send you a code in the company's chat.": "हम आपको कंपनी के चैट में एक कोड भेजेंगे।",
                    "Work email": "कार्यालय का ईमेल",
                    "Code from the chat": "चैट में आया कोड",
                    "No message yet? Look for the bot in your chat.": "अभी तक संदेश नहीं आया? चैट में बॉट को देखें।",
                }},
            },
            "policy": POLICY.read_text().replace('"chat_code"', json.dumps(params["name"])),
        }

    def configure(self, params):
        settings = params["settings"]
        self.chat = Chat(settings["url"], settings["token"], settings.get("patience", 3))
        return {}

    def deliver(self, params):
        self.chat.tell(params["to"]["value"], params["text"])
        return {}


def main():
    provider, lock = Provider(), threading.Lock()

    def answer(message):
        try:
            said = {"result": getattr(provider, message["method"])(message.get("params") or {})}
        except Fault as fault:
            said = {"error": {"code": 1, "message": str(fault)}}
        except Exception as error:  # A mistake of this program: its place is told, and nothing that it was working on.
            said = {"error": {"code": -32603, "message": f"{type(error).__name__} in {message.get('method')}"}}
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n")
            sys.stdout.flush()

    with concurrent.futures.ThreadPoolExecutor(max_workers=64) as pool:
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("method") == "shutdown":
                if "id" in message:
                    provider.shutdown = lambda _: {}
                    answer(message)
                break
            if "id" not in message or message["method"] not in ("hello", "configure", "deliver"):
                continue
            # What goes out waits for another server: it must not hold up the next one.
            if message["method"] == "deliver":
                pool.submit(answer, message)
            else:
                answer(message)


if __name__ == "__main__":
    main()
