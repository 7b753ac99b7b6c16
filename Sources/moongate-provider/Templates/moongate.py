"""moongate: write a provider for the Moongate gateway as a Python program. One file, Python 3.11, standard library only.

Declare a subclass of Provider and run it:

    import moongate
    from moongate import Field, Outcome, Words, ask, proved, refused

    class Word(moongate.Provider):
        submit_fields = [Field("word", "password")]
        outcomes = [Outcome("wrong_word", "This is not the word.")]
        words = Words("Word", "Say the word.", {"word": "Word"})

        def begin(self, step):
            return ask(*self.submit_fields)

        def submit(self, step):
            return proved() if moongate.equal(step.fields["word"], "pigeon") else refused("wrong_word")

    if __name__ == "__main__":
        moongate.run(Word())

A provider with `deliver` sends codes that the gateway makes and compares. A provider with `begin` and `submit` verifies by itself. Calls run side by side,
each in a thread: store short-lived data in `state` and lasting data in `record`, never in the provider. `policy.lua`, `flows/*.lua`, `cases.lua` and
`words/*.words` beside the program belong to the provider. Standard output belongs to the protocol, so `print` writes to standard error, which the gateway logs.

The protocol and every field below: Documentation/plugins/programs.md of Moongate.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import hmac
import json
import os
import pathlib
import queue
import re
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

_LONGEST_LINE = 131_072
"""The maximum length of a message with its line end, in bytes. The gateway ends a program that writes more."""


_Request = Callable[[str, dict], dict]


class Fault(Exception):
    """Something outside failed, such as your message hub. The user gets 503 and is not charged; the text goes to the operator's log.

    In `configure` it refuses the configuration, and the text is shown to the operator. Never put a code or a secret into it.
    """


# What a provider declares.


@dataclass(frozen=True)
class Choice:
    """An allowed value of a field of kind choice, and the text that the user reads."""

    value: str
    label: str


@dataclass(frozen=True)
class Field:
    """A field that a step asks for. `kind` is digits, text, phone, email, password, region, json or choice.

    `json` takes the answer of a ceremony. `choice` needs `choices`, and only an `ask` can have one.
    """

    name: str
    kind: str = "text"
    length: int | None = None
    required: bool = True
    choices: list[Choice] | None = None


@dataclass(frozen=True)
class Setting:
    """One field of the provider's entry in gateway.lua.

    `kind` is text, secret, number, flag, choice, list, table or file.
    """

    name: str
    kind: str = "text"
    help: str = ""
    required: bool = False
    default: object = None
    minimum: float | None = None
    maximum: float | None = None
    choices: list[str] | None = None


@dataclass(frozen=True)
class Outcome:
    """A refusal that the provider may answer. With `counts=False` the attempt is refunded: use it only for refusals that reveal nothing about a secret."""

    reason: str
    sentence: str
    counts: bool = True


@dataclass(frozen=True)
class DeliveryReason:
    """A reason that `deliver` may give to failed(…). `permanent`: another delivery to the same identifier would fail as well."""

    reason: str
    sentence: str
    permanent: bool = False


@dataclass(frozen=True)
class Fact:
    """A fact that policies can read. `kind` is text, number or flag."""

    name: str
    kind: str = "text"
    of: str | None = None
    help: str = ""


@dataclass(frozen=True)
class Words:
    """The texts of the pages: plain text. Translations come from `words/LANGUAGE.words` beside the program."""

    title: str
    instruction: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    page: dict[str, str] = field(default_factory=dict)
    notices: dict[str, dict[str, str]] = field(default_factory=dict)


# What the gateway grants for one call.


@dataclass(frozen=True)
class Verdict:
    """The result of `verify`: true if the secret matches. `renewed` is then a new hash at the current cost if the old one is outdated."""

    is_right: bool
    renewed: str | None = None

    def __bool__(self) -> bool:
        return self.is_right


class Store:
    """The provider's own key-value store: texts that expire and that all gateways share. Use it for nonces, approvals and answers of a vendor."""

    def __init__(self, request: _Request) -> None:
        self._request = request

    def get(self, key: str) -> str | None:
        return self._request("store.get", {"key": key})["value"]

    def set(self, key: str, value: str, seconds: float) -> None:
        self._request("store.set", {"key": key, "value": value, "expires_in": seconds})

    def set_once(self, key: str, value: str, seconds: float) -> bool:
        """Write the value if the key has none. Only one of several concurrent calls gets True, so a nonce is new exactly once."""
        return self._request("store.set", {"key": key, "value": value, "expires_in": seconds, "once": True})["stored"]

    def take(self, key: str) -> str | None:
        """Read and remove the value in one step. Only one of several concurrent calls gets the value."""
        return self._request("store.take", {"key": key})["value"]

    def remove(self, key: str) -> None:
        self._request("store.remove", {"key": key})


class Tools:
    """The services that the gateway grants while a call is open. A request that it does not grant raises Fault."""

    def __init__(self, request: _Request) -> None:
        self._request = request
        self.store = Store(request)

    def hash(self, secret: str) -> str:
        """Hash a secret by Argon2id, with a salt and the gateway's pepper. In `submit` only; declare `hashes = True`."""
        return self._request("hash", {"secret": secret})["hash"]

    def verify(self, secret: str, hash: str | None) -> Verdict:
        """Compare a secret with its hash. With `None` the gateway does the same work and nothing matches, so that an unknown account takes as long as a known one."""
        said = self._request("verify", {"secret": secret, "hash": hash})
        return Verdict(said["match"], said.get("upgrade"))


class OfflineTools(Tools):
    """Tools for tests: a store in memory that never expires, and cheap hashes. `calls` lists the calls that the tools received."""

    def __init__(self) -> None:
        super().__init__(self._offline)
        self.calls: list[str] = []
        self.values: dict[str, str] = {}

    def _offline(self, method: str, params: dict) -> dict:
        self.calls.append(method)
        key = params.get("key")
        if method == "store.get":
            return {"value": self.values.get(key)}
        if method == "store.set":
            if params.get("once") and key in self.values:
                return {"stored": False}
            self.values[key] = params["value"]
            return {"stored": True}
        if method in ("store.take", "store.remove"):
            return {"value": self.values.pop(key, None)}
        if method == "hash":
            return {"hash": self._cheap(params["secret"], os.urandom(16).hex())}
        kept = params["hash"]
        return {"match": kept is not None and equal(kept, self._cheap(params["secret"], kept.split("$")[1]))}

    @staticmethod
    def _cheap(secret: str, salt: str) -> str:
        return f"${salt}$" + hashlib.sha256((salt + secret).encode()).hexdigest()


# What a provider is told.


@dataclass(frozen=True)
class Identifier:
    """An identifier of a user: a phone number in E.164 form, an email address in lower case, or a federated identity `NAME subject`.

    `groups` are those of a federated identity that you prove. Each proof replaces its attributes and groups.
    """

    kind: str
    value: str
    display: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Account:
    """The account of a step. `record` is this provider's record for the account, or None."""

    id: str = ""
    record: str | None = None
    identifiers: tuple[Identifier, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Callback:
    """The address to which another site sends the user back. Pass `state` to that site unchanged."""

    address: str
    state: str


@dataclass(frozen=True)
class Step:
    """One call of `begin` or `submit`. `purpose` is prove, set, change or disable; `fields` has the submitted values.

    Tests create their own: `Step(purpose="set", fields={"word": "pigeon"})`, with tools that work offline.
    """

    purpose: str = "prove"
    fields: dict[str, object] = field(default_factory=dict)
    account: Account | None = None
    identifier: Identifier | None = None
    state: object = None
    flow: str = ""
    flow_purpose: str = "sign_in"
    callback: Callback | None = None
    now: int = 0
    tools: Tools = field(default_factory=OfflineTools, compare=False)
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def record(self) -> str | None:
        """This provider's record for the account; None without an account or a record."""
        return self.account.record if self.account else None

    @classmethod
    def _read(cls, params: dict, tools: Tools, cancelled: threading.Event) -> Step:
        account, callback, state = params.get("account"), params.get("callback"), params.get("state")
        return cls(
            purpose=params["purpose"], fields=params["fields"], account=account and _account(account), identifier=_identifier(params.get("identifier")),
            state=json.loads(state) if state else None, flow=params["flow"], flow_purpose=params.get("flow_purpose", ""),
            callback=callback and Callback(callback["address"], callback["state"]), now=params["now"], tools=tools, cancelled=cancelled)


@dataclass(frozen=True)
class Message:
    """A code to deliver. Send `text` to `to.value`; in an SMS, put `domain_bound_line` last."""

    to: Identifier
    text: str
    code: str = ""
    domain_bound_line: str = ""
    service: str = ""
    now: int = 0
    tools: Tools = field(default_factory=OfflineTools, compare=False)
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)


@dataclass(frozen=True)
class Webhook:
    """A request of a vendor's server to /auth/hook/NAME. Verify its signature over `body` before anything else. Header names are in lower case."""

    headers: dict[str, str]
    body: bytes
    remote: str = ""
    now: int = 0
    tools: Tools = field(default_factory=OfflineTools, compare=False)


@dataclass(frozen=True)
class Known:
    """An identity that is rechecked. `state` is the last `recheck` of `proved`, or `state` of an answer. A secret."""

    identity: Identifier
    state: str
    now: int = 0
    tools: Tools = field(default_factory=OfflineTools, compare=False)


def _identifier(said: dict | None) -> Identifier | None:
    return said and Identifier(said["kind"], said["value"], said.get("display"), said.get("attributes") or {})


def _account(said: dict) -> Account:
    return Account(said["id"], said.get("record"), tuple(map(_identifier, said["identifiers"])), tuple(said["names"]))


# What a provider answers.


@dataclass(frozen=True)
class Answer:
    """The answer of a provider's method. Create it with ask, redirect, wait, refused, malformed and proved; failed; accepted and rejected."""

    result: dict

    @property
    def state(self) -> object:
        """The state for the next call, for tests."""
        state = next(iter(self.result.values())).get("state")
        return json.loads(state) if state else None


REMOVE = object()
"""As the `record` of `proved`: the account's record is removed."""


class Show:
    """Content that the page shows beside the fields."""

    @staticmethod
    def text(line: str) -> dict:
        return {"kind": "text", "text": line}

    @staticmethod
    def secret(text: str) -> dict:
        """A text that the user copies, such as a key."""
        return {"kind": "secret", "text": text}

    @staticmethod
    def qr(text: str) -> dict:
        """A text that the page shows as a QR code."""
        return {"kind": "qr", "text": text}

    @staticmethod
    def list(items: list[str]) -> dict:
        """Lines that the user keeps, such as recovery codes."""
        return {"kind": "list", "items": items}

    @staticmethod
    def ceremony(call: str, options: dict) -> dict:
        """A call of the browser's credential API: `create` or `get`. Ask for one field of kind json beside it."""
        return {"kind": "ceremony", "call": call, "options": json.dumps(options)}


def ask(*fields: Field, state: object = None, show: list[dict] = ()) -> Answer:
    """Ask for these fields. `state`, any JSON value, is part of the next call.

    After a `submit`, an `ask` refunds the attempt, so it must not depend on whether a secret was right.
    """
    said = {"fields": [_plain(one) for one in fields], "show": list(show)}
    return Answer({"ask": said if state is None else {**said, "state": json.dumps(state)}})


def redirect(to: str, state: object = None) -> Answer:
    """Send the user to another site, by https."""
    return Answer({"redirect": {"to": to} if state is None else {"to": to, "state": json.dumps(state)}})


def wait(seconds: float, state: object = None, show: list[dict] = ()) -> Answer:
    """The user decides elsewhere, such as in an app on their phone. The gateway calls `submit` again without fields after 1 to 60 seconds."""
    said = {"poll": round(seconds * 1000), "show": list(show)}
    return Answer({"wait": said if state is None else {**said, "state": json.dumps(state)}})


def refused(reason: str, then: Answer | None = None) -> Answer:
    """Refuse the answer for a declared reason. With `then=ask(…)` the step asks for the fields of that round."""
    return Answer({"refused": reason} if then is None else {"refused": reason, "then": then.result["ask"]})


def malformed(field: str, detail: str, reason: str | None = None) -> Answer:
    """The input cannot be judged: the user gets 422, and no attempt is counted. `detail` is a sentence for the user."""
    return Answer({"malformed": {"field": field, "detail": detail, **({"reason": reason} if reason else {})}})


def proved(
    *identifiers: Identifier, claimed: list[Identifier] = (), first_name: str | None = None,
    last_name: str | None = None, record: object = None, renewed: str | None = None,
    facts: dict[str, object] | None = None, multi_factor: bool = False, recheck: str | None = None,
) -> Answer:
    """The user has proved the claim. Only `submit` may answer it.

    `record` replaces the account's record, and REMOVE removes it; only one of several flows that were judged by the same record completes. `renewed` is the
    same secret in a newer form, such as a hash at the current cost; it is dropped if the record has changed meanwhile. Policies read `facts` for the rest
    of the flow, as `f.providers.NAME.FACT`. `multi_factor`: two factors were proved at once, such as a device and the fingerprint that unlocks it; declare `multi_factor = True`.
    `recheck` is what the method `recheck` needs to ask about the identity again, such as a refresh token.
    """
    said = {"first_name": first_name, "last_name": last_name, "multi_factor": multi_factor, "identifiers": [_plain(one) for one in identifiers], "claimed": [_plain(one) for one in claimed]}
    said = {name: value for name, value in said.items() if value}
    if record is REMOVE:
        said["record"] = {}
    elif record is not None:
        said["record"] = {"replace": _text("record", record), "once": True}
    elif renewed is not None:
        said["record"] = {"replace": _text("renewed", renewed)}
    if recheck is not None:
        said["recheck"] = _text("recheck", recheck)
    if facts:
        said["facts"] = {name: value if isinstance(value, str) else json.dumps(value) for name, value in facts.items()}
    return Answer({"proved": said})


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise Fault(f"`{name}` of proved() must be a text, and is {type(value).__name__}")
    return value


def failed(reason: str) -> Answer:
    """Of `deliver`: this identifier cannot be reached, for a declared delivery reason. Raise a Fault for all other problems."""
    return Answer({"failed": reason})


def accepted(text: str | None = None) -> Answer:
    """Of `hook`: accept the request. `text` is the answer to the vendor, such as the challenge of its handshake."""
    return Answer({"accepted": {} if text is None else {"text": text}})


def rejected(reason: str = "unauthenticated") -> Answer:
    """Of `hook`: reject the request. `reason` is unauthenticated (401), malformed (400) or too_large (413)."""
    return Answer({"refused": reason})


def confirmed(identity: Identifier, state: str | None = None) -> Answer:
    """Of `recheck`: the same identity, with its groups and attributes of now. `state` replaces the state."""
    return _rechecked("confirmed", _plain(identity), state)


def ended(because: str, state: str | None = None) -> Answer:
    """Of `recheck`: the user is gone or disabled, in a few words for the operator. The sessions end."""
    return _rechecked("ended", because, state)


def unanswered(because: str, state: str | None = None) -> Answer:
    """Of `recheck`: the site did not answer. Sessions go on until `recheck_grace` has passed. Return it with `state` if the site has replaced a token before."""
    return _rechecked("failed", because, state)


def _rechecked(kind: str, said: object, state: str | None) -> Answer:
    return Answer({kind: said} if state is None else {kind: said, "state": _text("state", state)})


def _plain(declared: object) -> dict:
    """A declaration in the form of the protocol, without members that have their defaults."""
    return {name: value for name, value in dataclasses.asdict(declared).items() if value not in (None, "", [], {})}


# Help for providers.


def equal(left: str, right: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


class _Log:
    """Writes lines into the gateway's log. Values are texts, numbers or flags. Never log user input, codes or secrets."""

    def info(self, message: str, **values: object) -> None:
        self._write("info", message, values)

    def notice(self, message: str, **values: object) -> None:
        self._write("notice", message, values)

    def warning(self, message: str, **values: object) -> None:
        self._write("warning", message, values)

    def error(self, message: str, **values: object) -> None:
        self._write("error", message, values)

    def _write(self, level: str, message: str, values: dict) -> None:
        if _pipe is None:
            print(f"{level}: {message} {values or ''}", file=sys.stderr)
        else:
            _pipe.write({"method": "log", "params": {"level": level, "message": message, "values": values}})


log = _Log()


# The provider and its loop.


class Provider:
    """A provider: its declaration and its methods. Define `deliver`, or `begin` and `submit`; define `hook`, `upgrade`, `maintain` and `recheck` if you need them."""

    settings: list[Setting] = []
    words: Words | None = None
    identifier: str | None = None
    """"phone" or "email": the gateway reads the identifier of a step and passes it in `to` or `identifier`."""
    begin_fields: list[Field] = []
    submit_fields: list[Field] = []
    outcomes: list[Outcome] = []
    delivery_reasons: list[DeliveryReason] = []
    callback_fields: list[Field] | None = None
    """The parameters that another site sends back with the user; None: code, state, iss and error."""
    record_version: int = 1
    maintenance_interval: int | None = None
    """The interval in seconds at which the gateway calls `maintain`, on one gateway of the installation."""
    facts: list[Fact] = []
    hashes: bool = False
    """Whether `submit` hashes: the gateway then takes a hashing permit before it charges the attempt."""
    multi_factor: bool = False
    """Whether `proved` may say `multi_factor`."""
    federated: bool = False
    presentation: dict | None = None
    entrance: dict | None = None
    page: str | None = None
    role: list[str] | None = None

    def configure(self, values: dict) -> None:
        """Receives the settings from gateway.lua, with defaults filled in. Raise Fault if a value is not valid."""
        self.values = values

    deliver = None
    """deliver(message): send a code. Return failed(…) for a declared reason; raise an exception for any other failure."""
    begin = None
    """begin(step): open a step. Returns ask, redirect, refused or malformed."""
    submit = None
    """submit(step): judge the user's input. Returns proved, refused, malformed, ask, wait or redirect."""
    hook = None
    """hook(webhook): a vendor's server has called. Returns accepted or rejected."""
    upgrade = None
    """upgrade(record, version): convert a record of an older `record_version`. Returns it in the current form."""
    maintain = None
    """maintain(tools, now): periodic work."""
    recheck = None
    """recheck(known): ask the site about an identity again. Returns confirmed, ended or unanswered."""

    def hello(self, name: str) -> dict:
        """The declaration that the gateway receives at the start, for the provider's name in gateway.lua."""
        if (self.deliver is None) == (self.submit is None):
            raise Fault("define `deliver` to send codes, or `begin` and `submit` to verify: one of the two")
        if self.submit is not None and self.begin is None:
            raise Fault("define `begin` beside `submit`: it opens the step, mostly by `return ask(*self.submit_fields)`")
        if self.record_version > 1 and self.upgrade is None:
            raise Fault("define `upgrade` beside `record_version`: it converts the records of older versions")
        if (self.maintain is None) != (self.maintenance_interval is None):
            raise Fault("define `maintain` and `maintenance_interval` together: the interval says how often it is called")
        folder = _Folder(self, name)
        said = {
            "protocol": 1, "library": "python", "shape": "full" if self.deliver is None else "code", "identifier": self.identifier,
            "policy": folder.policy, "flows": folder.flows, "cases": folder.cases,
            "settings": [_plain(one) for one in self.settings], "words": self.words and {**_plain(self.words), "translations": folder.translations},
            "presentation": self.presentation, "entrance": self.entrance, "page": self.page, "role": self.role,
            "begin": [_plain(one) for one in self.begin_fields], "submit": [_plain(one) for one in self.submit_fields],
            "outcomes": [dataclasses.asdict(one) for one in self.outcomes], "facts": [_plain(one) for one in self.facts], "federated": self.federated,
            "hashes": self.hashes, "multi_factor": self.multi_factor, "delivery_reasons": [_plain(one) for one in self.delivery_reasons], "hook": self.hook is not None,
            "record_version": self.record_version, "maintain": self.maintenance_interval, "recheck": self.recheck is not None,
        }
        said = {key: value for key, value in said.items() if value}
        # An empty list means that the provider has no callback.
        return said if self.callback_fields is None else {**said, "callback": [_plain(one) for one in self.callback_fields]}


class _Folder:
    """The files beside the program. If gateway.lua calls the provider by another name than policy.lua, the name is replaced in the Lua texts."""

    def __init__(self, provider: Provider, name: str) -> None:
        folder = pathlib.Path(sys.modules[type(provider).__module__].__file__).resolve().parent
        file = folder / "policy.lua"
        if not file.is_file():
            raise Fault(f"{file} is missing: write the provider's default policy there")
        text = file.read_text(encoding="utf-8")
        own = re.search(r'\bpolicy\s*"([a-z0-9_]+)"', text)
        if own is None:
            raise Fault(f'{file} has no `return policy "NAME" {{ … }}`')
        own = own.group(1)

        def renamed(text: str) -> str:
            return re.sub(rf'"{own}(_[a-z0-9_]+)?"', lambda found: f'"{name}{found.group(1) or ""}"', text)

        self.policy = renamed(text)
        # Only flows with the provider's name: if the program is in the configuration folder, the operator's flows are
        # beside it.
        flows = [file for file in sorted((folder / "flows").glob("*.lua")) if f"{file.stem}_".startswith(f"{own}_")]
        self.flows = {name + file.stem.removeprefix(own): renamed(file.read_text(encoding="utf-8")) for file in flows}
        cases = folder / "cases.lua"
        self.cases = renamed(cases.read_text(encoding="utf-8")) if cases.is_file() else None
        self.translations = {file.stem: _translations(file) for file in sorted((folder / "words").glob("*.words"))}


def _translations(file: pathlib.Path) -> dict[str, str]:
    """Reads `English text = translation`, one per line; `#` begins a comment."""
    found = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            english, equals, other = line.partition(" = ")
            if not equals or not other.strip():
                raise Fault(f"{file}:{number}: write `English text = translation`")
            found[english.strip()] = other.strip()
    return found


class _Pipe:
    """Writes messages, one per line, from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.out = os.fdopen(os.dup(1), "wb")
        # Output of other code must not be read as a message.
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def write(self, message: dict) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace") + b"\n"
        if len(line) > _LONGEST_LINE:
            if "result" not in message:
                raise Fault(f"the message has {len(line)} bytes; a line may have {_LONGEST_LINE}")
            error = {"code": 1, "message": f"the answer has {len(line)} bytes; a line may have {_LONGEST_LINE}"}
            return self.write({"id": message["id"], "error": error})
        with self.lock:
            self.out.write(line)
            self.out.flush()


_pipe: _Pipe | None = None


class _Reply:
    """An answer of the gateway for which a thread waits."""

    def __init__(self) -> None:
        self.is_there = threading.Event()
        self.message: dict = {}

    def give(self, message: dict) -> None:
        self.message = message
        self.is_there.set()

    def wait(self, method: str) -> dict:
        self.is_there.wait()
        if "error" in self.message:
            raise Fault(f"`{method}`: {self.message['error']['message']}")
        return self.message["result"]


class _Loop:
    """Reads calls and answers each in a thread. Threads are reused: there are as many as calls were ever open at once, which the gateway limits."""

    def __init__(self, provider: Provider, pipe: _Pipe) -> None:
        self.provider, self.pipe = provider, pipe
        self.lock = threading.Lock()
        self.open: dict[int, threading.Event] = {}
        self.calls: queue.SimpleQueue = queue.SimpleQueue()
        self.idle = 0
        self.asked: dict[str, _Reply] = {}
        self.last = 0

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            method = message.get("method")
            if method == "shutdown":
                return
            if method == "cancel":
                self.cancel(message["params"]["id"])
            elif method is not None and "id" in message:
                self.take(message)
            elif isinstance(message.get("id"), str):
                self.hear(message)

    def take(self, message: dict) -> None:
        cancelled = threading.Event()
        with self.lock:
            self.open[message["id"]] = cancelled
        if message["method"] in ("hello", "configure"):
            self.answer(message, cancelled)
        else:
            self.calls.put((message, cancelled))
            with self.lock:
                is_needed = self.idle == 0
                self.idle -= not is_needed
            if is_needed:
                threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        while True:
            self.answer(*self.calls.get())
            with self.lock:
                self.idle += 1

    def cancel(self, number: int) -> None:
        with self.lock:
            cancelled = self.open.pop(number, None)
        if cancelled is not None:
            cancelled.set()

    def request(self, call: int, method: str, params: dict) -> dict:
        """Sends a request to the gateway and waits for its answer."""
        reply = _Reply()
        with self.lock:
            self.last += 1
            number = f"p{self.last}"
            self.asked[number] = reply
        self.pipe.write({"id": number, "method": method, "params": {"call": call, **params}})
        try:
            return reply.wait(method)
        finally:
            with self.lock:
                self.asked.pop(number, None)

    def hear(self, message: dict) -> None:
        with self.lock:
            reply = self.asked.get(message["id"])
        if reply is not None:
            reply.give(message)

    def answer(self, message: dict, cancelled: threading.Event) -> None:
        method, params = message["method"], message.get("params") or {}
        try:
            said = {"result": self.call(message["id"], method, params, cancelled)}
        except NotImplementedError as error:
            said = {"error": {"code": -32601, "message": str(error)}}
        except Exception as error:
            said = {"error": {"code": 1, "message": _reason(error, method, params)}}
        with self.lock:
            if self.open.pop(message["id"], None) is None:
                return  # The call was cancelled.
        self.pipe.write({"id": message["id"], **said})

    def call(self, number: int, method: str, params: dict, cancelled: threading.Event) -> dict:
        provider = self.provider
        tools = Tools(functools.partial(self.request, number))
        if method == "hello":
            return provider.hello(params["name"])
        if method == "configure":
            provider.configure(params["settings"])
            return {}
        if method == "deliver" and provider.deliver is not None:
            answer = provider.deliver(Message(
                _identifier(params["to"]), params["text"], params["code"], params["domain_bound_line"], params["service"], params["now"], tools, cancelled))
            return {} if answer is None else _check(answer, method, provider)
        if method == "hook" and provider.hook is not None:
            body = params["body"].encode() if "body" in params else base64.b64decode(params["body_base64"])
            return _check(provider.hook(Webhook(params["headers"], body, params["remote"], params["now"], tools)), method, provider)
        if method == "upgrade" and provider.upgrade is not None:
            return {"record": _text("record", provider.upgrade(params["record"], params["version"]))}
        if method == "maintain" and provider.maintain is not None:
            provider.maintain(tools, params["now"])
            return {}
        if method == "recheck" and provider.recheck is not None:
            known = Known(_identifier(params["identity"]), params["state"], params["now"], tools)
            return _check(provider.recheck(known), method, provider)
        if method in ("begin", "submit") and provider.submit is not None:
            return _check(getattr(provider, method)(Step._read(params, tools, cancelled)), method, provider)
        raise NotImplementedError(f"this provider has no `{method}`")


_STEP = {"ask", "redirect", "wait", "refused", "malformed", "proved"}
_ANSWERS = {"begin": _STEP - {"proved"}, "submit": _STEP, "deliver": {"failed"}, "hook": {"accepted", "refused"},
            "recheck": {"confirmed", "ended", "failed"}}
_DECLARED = {"begin": ("refused", "outcomes"), "submit": ("refused", "outcomes"), "deliver": ("failed", "delivery_reasons")}


def _check(answer: object, method: str, provider: Provider) -> dict:
    """Reports mistakes that the gateway would answer with 503, in sentences for the author."""
    kinds = answer.result.keys() if isinstance(answer, Answer) else set()
    if method == "begin" and "proved" in kinds:
        raise Fault("`begin` answered proved(); only `submit` may, because the gateway counts attempts there")
    if not _ANSWERS[method] & kinds:
        raise Fault(f"`{method}` returned {', '.join(kinds) or type(answer).__name__}; return {', '.join(sorted(_ANSWERS[method]))}")
    kind, name = _DECLARED.get(method, (None, ""))
    reason = answer.result.get(kind)
    if reason is not None and reason not in {one.reason for one in getattr(provider, name)}:
        raise Fault(f"{kind}({reason!r}) is not declared; add {reason!r} and its sentence to `{name}`")
    return answer.result


def _reason(error: Exception, method: str, params: dict) -> str:
    """The text for the operator's log: the error and where it was raised, without user input."""
    if isinstance(error, Fault):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    place = f" ({pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__} in {method}{place}: {_redacted(str(error), params)}"[:500]


def _redacted(text: str, params: dict) -> str:
    """Attack: an exception quotes invalid input, which may be half of a secret. The gateway redacts whole values; this redacts their words."""
    account = params.get("account") or {}
    values = [*(params.get("fields") or {}).values(), params.get("code"), params.get("state"), params.get("record"), account.get("record"), *(params.get("settings") or {}).values()]
    pieces = {piece for value in values if isinstance(value, str) for piece in [value, *re.split(r"[\W_]+", value)] if len(piece) > 2}
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, "[redacted]")
    return " ".join(text.split())


def run(provider: Provider) -> None:
    """Exchanges messages with the gateway until `shutdown` or the end of standard input."""
    global _pipe
    _pipe = _Pipe()
    _Loop(provider, _pipe).run()
    # Threads that are still waiting must not keep the process alive: their answers cannot be sent any more.
    os._exit(0)
