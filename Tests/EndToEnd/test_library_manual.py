"""Documentation/plugins/programs.md, "The objects of the libraries": it names each object that a library has, and none that it does not have."""

import inspect
import importlib.util
import json
import re
import shutil
import subprocess

import pytest
from processes import ROOT

TEMPLATES = ROOT / "Sources" / "moongate-provider" / "Templates"
MANUAL = (ROOT / "Documentation" / "plugins" / "programs.md").read_text()
COLUMNS = ("python", "node", "go")
# Plain objects of the program or of the protocol, whose members are not part of the library.
PLAIN = {
    "field",
    "choice",
    "setting",
    "outcome",
    "reason",
    "fact",
    "words",
    "account",
    "identifier",
    "callback",
    "verdict",
}


def described(language):
    """The names in the section's tables for a language."""
    section = MANUAL.split("\n## The objects of the libraries\n")[1].split("\n## ")[0]
    rows = [line.strip().strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    cells = [row[COLUMNS.index(language)] for row in rows if len(row) == 4]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def python():
    """The public names of moongate.py: functions, values, and members of classes."""
    spec = importlib.util.spec_from_file_location("moongate_library", TEMPLATES / "moongate.py")
    library = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = library
    spec.loader.exec_module(library)
    found = set()
    for name, value in vars(library).items():
        if (
            name.startswith("_")
            or inspect.ismodule(value)
            or getattr(value, "__module__", spec.name) not in (spec.name, None)
        ):
            continue
        if inspect.isclass(value):
            # The members of the class itself, without inherited ones.
            own = {**vars(value), **vars(value).get("__annotations__", {})}
            instance = vars(value()) if name == "OfflineTools" else vars(value(None)) if name == "Tools" else {}
            members = {member for member in {**own, **instance} if not member.startswith("_")}
            if name == "OfflineTools":
                members -= {"store"}
            found |= {f"{name}.{member}" for member in members} or {name}
        elif name == "log":
            found |= {f"log.{member}" for member in dir(value) if not member.startswith("_")}
        elif name not in ("annotations", "Callable"):
            found.add(name)
    return found


def node():
    """The exports of moongate.mjs, and the members of the objects that it creates."""
    script = """
      import * as library from %s;
      const members = (value) => [...Object.keys(value), ...Object.getOwnPropertyNames(Object.getPrototypeOf(value))]
        .filter((name) => name !== "constructor" && name !== "request" && !(name in Object.prototype));
      const tools = library.offlineTools();
      const step = library.step({ account: { record: "r" }, identifier: 0, state: 0, callback: 0 });
      const made = {
        step, message: library.message({ to: 0 }), webhook: library.webhook({}), tools, store: tools.store, show: library.show, log: library.log,
        answer: library.ask([]),
      };
      const names = Object.keys(library).filter((name) => !["Answer", "show", "log"].includes(name));
      for (const [name, value] of Object.entries(made)) names.push(...members(value).map((member) => `${name}.${member}`));
      console.log(JSON.stringify(names));
    """ % json.dumps((TEMPLATES / "moongate.mjs").as_uri())
    said = subprocess.run(["node", "--input-type=module", "--eval", script], capture_output=True, text=True, check=True)
    # The members of a provider are listed in the head of the file.
    head = " ".join(
        line.removeprefix("//").strip()
        for line in (TEMPLATES / "moongate.mjs").read_text().split("\nimport ")[0].splitlines()
    )
    fields, functions = re.search(r"Its fields: (.*?)\. Its functions: (.*?)\.", head).groups()
    return set(json.loads(said.stdout)) | set(fields.split(", ")) | set(re.findall(r"(\w+)\(", functions))


def go():
    """The exported functions, methods and fields of moongate.go, and its types without any."""
    text = (TEMPLATES / "moongate.go").read_text()
    found = set(re.findall(r"^func ([A-Z]\w*)", text, re.M))
    found |= {f"{of}.{name}" for of, name in re.findall(r"^func \(\w+ \*?([A-Z]\w*)\) ([A-Z]\w*)", text, re.M)}
    for name, body in re.findall(r"^type ([A-Z]\w*) struct \{\n(.*?)^\}", text, re.M | re.S):
        found |= {
            f"{name}.{field}"
            for line in body.splitlines()
            if (field := (re.match(r"\t([A-Z]\w*)\s", line) or [None, None])[1])
        }
    types = set(re.findall(r"^type ([A-Z]\w*) ", text, re.M))
    # Methods for encoding and errors are not called by authors.
    found -= {"Field.MarshalJSON", "Outcome.MarshalJSON", "Undelivered.Error"}
    return found | {name for name in types if not any(one.startswith(f"{name}.") for one in found)}


NAMES = {"python": python, "node": node, "go": go}


@pytest.mark.parametrize("language", NAMES)
def test_the_manual_lists_the_library(language):
    if language == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    manual, library = described(language), NAMES[language]()
    checked = {name for name in manual if not (language == "node" and name.split(".")[0] in PLAIN and "." in name)}
    assert library - checked == set(), "these are not in the manual"
    assert checked - library == set(), "these are in the manual, and not in the library"
    assert len(manual) == len(set(manual)), "each is described once"
