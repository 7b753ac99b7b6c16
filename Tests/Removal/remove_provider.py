"""Takes a shipped provider out of a copy of the sources, the way a person would: its folder, its lines in Package.swift, its import and its
entry in Sources/moongate/Providers.swift. Then builds the rest and asks it for its providers.

    python3 Tests/Removal/remove_provider.py EmailCode SCRATCH_FOLDER [--no-build]

What it has to do beyond that is a place that names a provider and should not. Tests that are about the provider go with it.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys


def without_target(text: str, name: str) -> str:
    """Package.swift without the target of a name: from its line to the closing parenthesis."""
    at = re.search(r'\n *\.(?:target|testTarget)\(\s*name: "%s"' % re.escape(name), text)
    if not at:
        return text
    depth, end = 0, text.index("(", at.start())
    for end in range(end, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            break
    return text[: at.start()] + text[end + 1 :].removeprefix(",")


def targets_in(text: str, folder: str) -> list[str]:
    """The names of the targets whose sources lie in a folder."""
    return re.findall(r'\.(?:target|testTarget)\(\s*name: "(\w+)"(?:(?!\.(?:target|testTarget|executableTarget)\().)*?path: "%s[/"]' % folder, text, re.S)


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("plugin")
    arguments.add_argument("scratch", type=pathlib.Path)
    arguments.add_argument("--no-build", action="store_true")
    given = arguments.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    plugin, copy = given.plugin, given.scratch / "moongate"
    if not (root / "Plugins" / plugin).is_dir():
        print(f"There is no Plugins/{plugin}.", file=sys.stderr)
        return 2
    if copy.exists():
        shutil.rmtree(copy)
    for name in subprocess.check_output(["git", "-C", root, "ls-files", "-z"]).decode().split("\0"):
        if name and (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)

    # What a person does.
    shutil.rmtree(copy / "Plugins" / plugin)
    package = copy / "Package.swift"
    text = package.read_text()
    for target in targets_in(text, f"Plugins/{plugin}"):
        text = without_target(text, target)
        text = re.sub(r'"%s", ?' % target, "", text)
        text = re.sub(r', "%s"(?=\])' % target, "", text)
    package.write_text(text)
    providers = copy / "Sources" / "moongate" / "Providers.swift"
    lines = providers.read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.strip() not in (f"import {plugin}", f"{plugin}(),")]
    if len(lines) - len(kept) != 2:
        print(f"Providers.swift has {len(lines) - len(kept)} lines about {plugin}, not its import and its entry.", file=sys.stderr)
        return 1
    providers.write_text("".join(kept))

    # Tests that are about it; a list of all shipped providers only loses an entry.
    for test in (copy / "Tests").rglob("*.swift"):
        text = test.read_text()
        if not re.search(rf"^(?:@testable )?import {plugin}$", text, re.M):
            continue
        shorter = re.sub(rf"^(?:@testable )?import {plugin}\n", "", text, flags=re.M)
        if test.name == "ShippedProviders.swift":
            test.write_text(re.sub(rf", {plugin}\(\)|{plugin}\(\), ", "", shorter))
        else:
            print(f"goes too: {test.relative_to(copy)}")
            test.unlink()
    left = [
        str(file.relative_to(copy))
        for file in [*(copy / "Sources").rglob("*.swift"), *(copy / "Plugins").rglob("*.swift"), package]
        if re.search(rf'\bimport {plugin}\b|"{plugin}"', file.read_text())
    ]
    if left:
        print(f"Still named in {', '.join(left)}.", file=sys.stderr)
        return 1
    print(f"{plugin} is out of {copy}")
    if given.no_build:
        return 0
    build = ["swift", "build", "--explicit-target-dependency-import-check", "error"]
    if subprocess.run(build, cwd=copy).returncode != 0:
        print(f"Without {plugin} the rest does not build.", file=sys.stderr)
        return 1
    bin_path = subprocess.check_output([*build, "--show-bin-path"], cwd=copy).decode().strip()
    listed = json.loads(subprocess.check_output([f"{bin_path}/moongate", "provider", "list", "--json"], cwd=copy))
    shipped = len(re.findall(r"^    \w+\(\),$", providers.read_text(), re.M))
    if len(listed) != shipped:
        print(f"{len(listed)} providers are listed, and {shipped} are left.", file=sys.stderr)
        return 1
    for entry in listed:
        tested = subprocess.run([f"{bin_path}/moongate", "provider", "test", entry["name"]], cwd=copy, stdout=subprocess.DEVNULL)
        if tested.returncode != 0:
            print(f"Without {plugin}, {entry['name']} does not pass its suite.", file=sys.stderr)
            return 1
    print(f"Without {plugin} the rest builds, and its {shipped} providers pass.")
    # The configuration is the operator's: what it says of the provider is told by its file and line, as for any name that there is not.
    check = subprocess.run([f"{bin_path}/moongate", "check", "--config", "config"], cwd=copy, capture_output=True, text=True)
    told = [line for line in check.stdout.splitlines() if re.match(r"^\S+\.lua:?\d*: ", line)]
    if told:
        print("What config/ still says of it, and check tells:\n  " + "\n  ".join(told))
    return 0 if check.returncode in (0, 1) and check.stdout.strip() else 1


sys.exit(main())
