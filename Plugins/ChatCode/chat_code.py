#!/usr/bin/env python3
"""chat_code: codes by a direct message in the company's chat, from a bot (Mattermost, API version 4).

The gateway makes, counts, compares and expires the codes. This program only says how a code reaches a person.
"""

import functools
import json
import urllib.error
import urllib.parse
import urllib.request

import moongate
from moongate import Fault, Setting, Words


class ChatCode(moongate.Provider):
    identifier = "email"
    settings = [
        Setting("url", required=True, help="Where the chat is, such as https://chat.example.com."),
        Setting("token", "secret", required=True, help="The access token of the bot that sends the codes."),
        Setting("patience", "number", minimum=0.1, maximum=10, default=3, help="Seconds that each of the chat's answers may take."),
    ]
    words = Words(
        "Code by chat", "We will send you a code in the company's chat.", {"email": "Work email", "code": "Code from the chat"},
        # The page with the boxes speaks of mail; this code does not come by mail.
        page={"verify_email": "Code by chat", "check_email": "No message yet? Look for the bot in your chat."})

    def configure(self, values):
        self.chat = Chat(values["url"], values["token"], values["patience"])

    def deliver(self, message):
        self.chat.send(message.to.value, message.text)


class Chat:
    """The chat's API, as far as a bot needs it to write to a person. Its faults name the call and the status, and nothing that was sent."""

    LONGEST_ANSWER = 1 << 20

    def __init__(self, url, token, timeout):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise Fault("`url` must begin with https://: codes and the token would travel unencrypted")
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout
        self.opener = urllib.request.build_opener(NoRedirects)

    @functools.cached_property
    def bot(self):
        """The id of the bot itself. Asked for once."""
        return self.call("GET", "users/me")["id"]

    def send(self, email, text):
        """Sends a direct message from the bot to the person with this address."""
        person = self.call("GET", "users/email/" + urllib.parse.quote(email, safe=""))
        # Attack: an address that the chat never verified, typed into an attacker's profile, would get the codes of its
        # owner.
        if person.get("email", "").lower() != email or not person.get("email_verified", False) or person.get("delete_at"):
            raise Fault("the chat has not verified this address, or its owner has left")
        channel = self.call("POST", "channels/direct", [self.bot, person["id"]])
        self.call("POST", "posts", {"channel_id": channel["id"], "message": text})

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.url}/api/v4/{path}", method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        what = path.split("/")[0]
        try:
            with self.opener.open(request, timeout=self.timeout) as answer:
                return json.loads(answer.read(self.LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            raise Fault(f"the chat answered {error.code} to {method} {what}") from None
        except (OSError, ValueError) as error:
            raise Fault(f"the chat did not answer {method} {what}: {type(error).__name__}") from None


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Attack: a redirect to another host would take the bot's token along."""

    def redirect_request(self, *_):
        return None


if __name__ == "__main__":
    moongate.run(ChatCode())
