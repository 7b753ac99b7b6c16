"""Takes a shipped provider out of a copy of the sources as a person would: its folder, its line in Package.swift, its import and its entry in
Sources/MoongateProgram/Providers.swift. Then checks that nothing of it is left, builds the rest and plays it.

    python3 Tests/Removal/remove_provider.py PIN SCRATCH_FOLDER [--no-build]

The scratch folder keeps its `.build`: the first removal builds everything, and each one after it only what differs. Tests that are about the
provider go with it.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Left(Exception):
    """Something of the provider is left."""


def closing(text: str, start: int, pair: str) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for end in range(start, len(text)):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[end], 0)
        if depth == 0:
            return end
    return len(text) - 1


def write(file: pathlib.Path, data: bytes) -> None:
    """Writes a file where it differs: what is the same keeps its time, and is not built again."""
    if not file.is_file() or file.read_bytes() != data:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def wanted(plugin: str) -> dict[str, bytes]:
    """The files of the repository without the provider."""
    names = (
        subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .decode()
        .split("\0")
    )
    files = {name: (ROOT / name).read_bytes() for name in names if name and (ROOT / name).is_file()}
    files = {name: data for name, data in files.items() if not name.startswith(f"Plugins/{plugin}/")}
    package = files["Package.swift"].decode().splitlines(keepends=True)
    others = [line for line in package if not line.startswith(f'  CompiledIn("{plugin}"')]
    if len(package) - len(others) != 1:
        raise Left(f"Package.swift has {len(package) - len(others)} lines for {plugin}, not one.")
    files["Package.swift"] = "".join(others).encode()
    lines = files["Sources/MoongateProgram/Providers.swift"].decode().splitlines(keepends=True)
    # A provider of several kinds of sites has an entry for each.
    own = re.compile(rf"\s*(import {plugin}|{plugin}\((\.\w+)?\),)\s*")
    kept = [line for line in lines if not own.fullmatch(line)]
    if len(lines) - len(kept) < 2:
        raise Left(f"Providers.swift has {len(lines) - len(kept)} lines about {plugin}, not its import and its entry.")
    files["Sources/MoongateProgram/Providers.swift"] = "".join(kept).encode()
    # Tests that are about it; a list of all shipped providers only loses an entry.
    for name in [name for name in files if name.startswith("Tests/") and name.endswith(".swift")]:
        text = files[name].decode()
        if not re.search(rf"^(?:@testable )?import {plugin}$", text, re.M):
            continue
        if name.endswith("/ShippedProviders.swift"):
            text = re.sub(rf"^(?:@testable )?import {plugin}\n", "", text, flags=re.M)
            text = re.sub(rf"(static let kinds: \[any Provider\] = )\[{plugin}\..*", r"\1[]", text)
            files[name] = re.sub(rf", {plugin}\(\)|{plugin}\(\), ", "", text).encode()
        else:
            print(f"goes too: {name}")
            del files[name]
    return files


def check_names(files: dict[str, bytes], plugin: str) -> None:
    """Nothing else names the module."""
    left = [
        name
        for name, data in files.items()
        if name == "Package.swift" or (name.startswith(("Sources/", "Plugins/")) and name.endswith(".swift"))
        if re.search(rf'\bimport {plugin}\b|"{plugin}"', data.decode())
    ]
    if left:
        raise Left(f"Still named in {', '.join(left)}.")


def check_flows(files: dict[str, bytes], name: str) -> None:
    """No flow or case of another provider is about this one."""
    for path, data in files.items():
        if not re.match(r"Plugins/\w+/(flows/\w+|cases)\.lua$", path):
            continue
        text = data.decode()
        # A step may offer it beside others, and is then without it.
        if re.search(rf'provider = "{name}"|flow "{name}_|(?<!any_of ){{ "{name}"', text):
            raise Left(f"{path} is about {name}.")


# A page may ask any provider for a field of these kinds, and has words for it.
FIELD_KINDS = ("digits", "text", "phone", "email", "password", "region", "json", "choice")


def check_words(files: dict[str, bytes], plugin: str, name: str) -> None:
    """No word of the pages is named after it, and no translation is left of a text that nothing says any more."""
    pages = "Sources/MoongateHTTP/Pages/Templates/"
    if name not in FIELD_KINDS:
        # Tests hold that every other language has the same words.
        keys = re.findall(r"^(\w+) = ", files[pages + "en.words"].decode().split("[sentences]")[0], re.M)
        named = [key for key in keys if f"_{name}_" in f"_{key}_"]
        if named:
            raise Left("en.words of the pages has words of it, which belong into its folder: " + ", ".join(named))
    words = files[pages + "hi.words"].decode()
    sentences = words[words.find("[sentences]") :] if "[sentences]" in words else ""
    # Tests hold that every other language has the same sentences.
    said = [
        line.split(" = ", 1)[0] for line in sentences.splitlines()[1:] if " = " in line and not line.startswith("#")
    ]
    suffixes = (".swift", ".words", ".mustache", ".js")
    now = "\n".join(
        data.decode()
        for path, data in files.items()
        if path.endswith(suffixes)
        and path.startswith(("Sources/", "Plugins/"))
        and not (path.endswith(".words") and not path.endswith("/en.words"))
    )
    own = "\n".join(
        file.read_text() for file in (ROOT / "Plugins" / plugin).rglob("*.swift") if "Tests" not in file.parts
    )
    dead = [text for text in said if text not in now and text in own]
    if dead:
        raise Left("hi.words of the pages still translates: " + "; ".join(dead))


def sync(copy: pathlib.Path, files: dict[str, bytes]) -> None:
    """Makes the folder hold exactly these files, beside `.build`."""
    copy.mkdir(parents=True, exist_ok=True)
    for file in sorted(copy.rglob("*"), reverse=True):
        path = file.relative_to(copy)
        if path.parts[0] == ".build":
            continue
        if file.is_dir() and not file.is_symlink():
            if not any(file.iterdir()):
                file.rmdir()
        elif str(path) not in files:
            file.unlink()
    for name, data in files.items():
        write(copy / name, data)
        shutil.copymode(ROOT / name, copy / name)


def gateway_without(copy: pathlib.Path, name: str) -> str:
    """The shipped gateway.lua without the entry of the provider."""
    gateway = (copy / "config/gateway.lua").read_text()
    at = re.search(rf"^    {name} = {{", gateway, re.M)
    return gateway[: at.start()] + gateway[closing(gateway, at.end() - 1, "{}") + 2 :] if at else gateway


def check_shipped(run, copy: pathlib.Path, plugin: str, name: str) -> None:
    """What an operator's configuration still says of the provider is told by file and line, and nothing else is a problem.

    (While the program has the provider, it is taken out of gateway.lua by one line: test_tools.py. A name that the program does not know is a mistake.)
    """
    folder = copy / ".build/shipped"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(copy / "config", folder, ignore=shutil.ignore_patterns("data"))

    def problems() -> list[dict]:
        return json.loads(run("check", "--config", str(folder), "--json").stdout)["problems"]

    shipped = (copy / "config/gateway.lua").read_text()
    entry = re.search(rf"^    {name} = {{", shipped, re.M)
    told = problems()
    line = shipped[: entry.start()].count("\n") + 1 if entry else None
    if entry and not any(
        problem["file"] == "gateway.lua" and problem["line"] == line and name in problem["message"] for problem in told
    ):
        raise Left(f"check does not tell that {name} is gone, at gateway.lua:{line}: {told}")
    (folder / "gateway.lua").write_text(gateway_without(copy, name))
    # The flows that came with it are gone, too.
    own = [name, *(file.stem for file in (ROOT / "Plugins" / plugin / "flows").glob("*.lua"))]
    places = [
        (f"{problem['file']}:{problem['line']}", problem["message"].split("; there are ")[0], problem["line"])
        for problem in problems()
    ]
    other = [
        f"{place}: {message}"
        for place, message, _ in places
        if not re.search(rf"\b({'|'.join(own)})\b", f"{place} {message}")
    ]
    if other:
        raise Left(f"Without {name}, check finds problems that are not about it:\n  " + "\n  ".join(other))
    lost = [
        f"{place}: {message}"
        for place, message, line in places
        if line is None and place != f"policies/{name}.lua:None"
    ]
    if lost:
        raise Left("check names no line:\n  " + "\n  ".join(lost))
    print(f"config/ still names it in {len(places)} places, and check tells each.")


def configuration(folder: pathlib.Path, copy: pathlib.Path, name: str, providers: list[dict]) -> None:
    """A configuration of all providers that are left: the shipped gateway.lua without the entry, and one flow."""
    gateway = gateway_without(copy, name)
    # Fewer ways to sign in are what is left: the budget is not what is checked here.
    shutil.rmtree(folder, ignore_errors=True)
    write(folder / "gateway.lua", gateway.encode())
    choices = ", ".join(f'"{entry["name"]}"' for entry in providers if entry["shape"] == "code")
    write(
        folder / "flows/login.lua",
        f'return flow "login" {{ account = "any", steps = {{ any_of {{ {choices} }} }} }}\n'.encode(),
    )
    write(folder / "routes.lua", b'return routes { { path = "/**", to = "http://127.0.0.1:3000" } }\n')
    for entry in providers:
        write(folder / f"policies/{entry['name']}.lua", f'return policy "{entry["name"]}" {{}}\n'.encode())


def build_and_play(copy: pathlib.Path, plugin: str, name: str) -> None:
    """Builds the rest, and asks it for its providers, their suites, flows and cases."""
    build = shlex.split(os.environ.get("SWIFT_BUILD", "swift build -c debug"))
    for product in ("moongate", "moongate-provider"):
        if subprocess.run([*build, "--product", product], cwd=copy).returncode != 0:
            raise Left(f"Without {plugin} the rest does not build.")
    moongate = subprocess.check_output([*build, "--show-bin-path"], cwd=copy).decode().strip() + "/moongate"

    def run(*words):
        return subprocess.run([moongate, *words], cwd=copy, capture_output=True, text=True)

    listed = json.loads(run("provider", "list", "--json").stdout)
    shipped = len(
        re.findall(r"^    \w+\(\),$", (copy / "Sources/MoongateProgram/Providers.swift").read_text(), re.M)
    )
    if len(listed) != shipped or any(entry["name"] == name for entry in listed):
        raise Left(f"{len(listed)} providers are listed, and {shipped} are left.")
    for entry in listed:
        if run("provider", "test", entry["name"]).returncode != 0:
            raise Left(f"Without {plugin}, {entry['name']} does not pass its suite.")
    if re.search(rf"Provider\.{name}\b|function {name}\(", run("policy", "types").stdout):
        raise Left(f"The editor's types still know {name}.")
    folder = copy / ".build/configuration"
    configuration(folder, copy, name, listed)
    # Plays the cases that come with the providers that are left.
    check = run("check", "--config", str(folder))
    if check.returncode != 0 or re.search(rf"\b{name}_\w+", check.stdout):
        raise Left(f"Without {plugin}, the flows and cases of the rest do not hold:\n{check.stdout}{check.stderr}")
    check_shipped(run, copy, plugin, name)
    print(f"Without {plugin} the rest builds, its {shipped} providers pass, and their flows and cases hold.")


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("plugin")
    arguments.add_argument("scratch", type=pathlib.Path)
    arguments.add_argument("--no-build", action="store_true")
    given = arguments.parse_args()
    plugin, copy = given.plugin, given.scratch
    policy = ROOT / "Plugins" / plugin / "policy.lua"
    if not (ROOT / "Plugins" / plugin / f"{plugin}.swift").is_file():
        print(f"There is no provider in Swift in Plugins/{plugin}.", file=sys.stderr)
        return 2
    name = re.search(r'^return policy "(\w+)"', policy.read_text(), re.M)[1]
    try:
        files = wanted(plugin)
        check_names(files, plugin)
        check_flows(files, name)
        check_words(files, plugin, name)
        sync(copy, files)
        print(f"{plugin} is out of {copy}")
        if not given.no_build:
            build_and_play(copy, plugin, name)
    except Left as left:
        print(left, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
