"""Documentation/architecture names files, types and cases that exist, and comments name files that exist."""

import ast
import io
import re
import subprocess
import tokenize

import pytest

from processes import ROOT

FOLDER = ROOT / "Documentation" / "architecture"
PAGES = sorted(FOLDER.glob("*.md"))
SOURCES = [*ROOT.glob("Sources/**/*.swift"), *ROOT.glob("Plugins/*/*.swift")]
# Names in code spans that are not of this code base.
OTHERS = {"String", "Transfer-Encoding", "Host", "Remote-User", "X-Moongate-Assertion", "OPTIONS", "HEAD", "GET"}


@pytest.fixture(scope="module")
def code():
    text = "\n".join(file.read_text() for file in SOURCES)
    types = set(re.findall(r"\b(?:struct|class|enum|protocol|actor|typealias) ([A-Z]\w*)", text))
    members = set(re.findall(r"\b(?:func|var|let|case) (\w+)", text))
    # `case one, two, three` declares several.
    for line in re.findall(r"^\s*(?:indirect )?case ([\w, ]+)$", text, re.M):
        members.update(line.replace(",", " ").split())
    folders = {file.parent.name for file in SOURCES}
    return types, members, folders


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_exist(page, code):
    types, members, folders = code
    text = page.read_text()
    missing = []
    for name in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        if re.fullmatch(r"[\w+-]+(?:\+\w+)?\.swift", name):
            found = (ROOT / name).exists() or any(file.name == name for file in SOURCES)
        elif re.fullmatch(r"(?:Sources|Tests|Plugins|Documentation)/[\w/.+-]*", name) and "NAME" not in name:
            found = (ROOT / name).exists()
        elif re.fullmatch(r"[A-Z][a-z]\w*(?:\.\w+)?", name):
            owner, _, member = name.partition(".")
            targets = {file.name for file in (ROOT / "Sources").iterdir()} | {
                "MoongateGateway",
                "MoongateProviderTools",
            }
            found = owner in types | folders | targets | OTHERS and (not member or member in members | types)
        else:
            continue
        if not found:
            missing.append(name)
    assert missing == []


# Names of documents that are not in the repository.
ABSENT = re.compile(r"(?:\b[Tt]|T)he[ _]?(?:[Ss]eeds\b|[Dd]esign(?:\b|[A-Z]))|\b[Ss]eeds'|\bseed \d{3}\b")
COMMENTS = {".swift": "//+", ".c": "//+", ".h": "//+", ".lua": "--+"}


def comments(file):
    """The comments of a file and Python's docstrings, each line as (number, text)."""
    text = file.read_text()
    if file.suffix != ".py":
        for number, line in enumerate(text.splitlines(), 1):
            if comment := re.search(rf"(?:^|\s){COMMENTS[file.suffix]}(.*)", line):
                yield number, comment[1]
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node):
            start = node.body[0].lineno
            yield from enumerate(text.splitlines()[start - 1 : node.body[0].end_lineno], start)


def test_files_in_comments_exist():
    """A file that a comment names, such as `Session.swift` or `guides/flows.md`, is in the repository, and no line
    refers to a document that is not. Lua files and words are those of operators."""
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    files = [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]
    assert len(files) > 1000
    ends = set()
    for file in files:
        parts = file.relative_to(ROOT).parts
        ends.update("/".join(parts[start:]) for start in range(len(parts)))
    named = re.compile(r"(?<![\w./-])\w[\w+./-]*\.(?:swift|c|h|md|mermaid|py)\b(?!\.?\w)")
    missing, found = [], 0
    for file in files:
        place = file.relative_to(ROOT)
        if file.suffix not in (*COMMENTS, ".py") or place.parts[0] not in ("Sources", "Plugins", "Tests", "config"):
            continue
        for number, comment in comments(file):
            for name in named.findall(comment):
                found += 1
                if name not in ends:
                    missing.append(f"{place}:{number}: {name}")
        # The tests of this rule quote what it refuses.
        lines = [] if file.name == "test_architecture_pages.py" else file.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            missing += [f"{place}:{number}: {absent[0]}" for absent in ABSENT.finditer(line)]
    assert found > 50 and missing == []


def test_absent_documents_are_found(tmp_path):
    for text in ("row 3 of the seeds", "as The design says", "theExampleOfTheDesignHolds", "Seeds' rows", "seed 003"):
        assert ABSENT.search(text), text
    for text in ("the seed of a generator", "the designated port", "seeds"):
        assert not ABSENT.search(text), text
    for name, text in (("a.py", 'x = 1\n\n\ndef f():\n    """Has\n    b.md."""  # c\n'), ("a.lua", "x = 1 -- b.md\n")):
        (tmp_path / name).write_text(text)
        assert any("b.md" in comment for _, comment in comments(tmp_path / name)), name


def test_phases_of_a_connection():
    """The diagram of a connection has the phases of the code, and each is reached and left."""
    source = code_of("MoongateProxy/Connection/ConnectionState.swift")
    phases = cases_of("Phase", source)
    assert len(phases) >= 8
    diagram = state_diagram(FOLDER / "request.md")
    drawn = {name for line in diagram.splitlines() for name in re.findall(r"\b[a-z]+\b", line.split(" : ")[0])}
    assert drawn == phases
    arrows = [re.findall(r"\[\*\]|\b[a-z]+\b", line.split(" : ")[0]) for line in diagram.splitlines() if "-->" in line]
    assert {start for start, _ in arrows} - {"[*]"} == {end for _, end in arrows} - {"[*]"} == phases


def test_outcomes_of_an_access_decision():
    """The table of the page has each outcome of the code, and no others."""
    cases = cases_of("Outcome", code_of("MoongateProxy/Access/AccessDecision.swift"))
    table = (FOLDER / "request.md").read_text().split("| Outcome |")[1].split("\n\n")[0]
    assert len(cases) >= 6 and sorted(re.findall(r"^\| `(\w+)` \|", table, re.M)) == sorted(cases)


def test_actions_of_a_flow():
    """The page names each action of the machine."""
    cases = cases_of("Action", code_of("MoongateCore/FlowRules/FlowMachine.swift"))
    page = (FOLDER / "sign-in.md").read_text()
    assert len(cases) >= 4 and [case for case in cases if f"`{case}`" not in page] == []


def test_states_of_a_flow():
    """Both diagrams of a flow have the states of the machine, and those of an open step, and no others."""
    source = code_of("MoongateCore/FlowRules/FlowState.swift")
    states = cases_of("State", source)
    phases = cases_of("StepPhase", source)
    assert len(states) >= 7 and len(phases) >= 5
    assert states_drawn(state_diagram(FOLDER / "sign-in.md")) == states
    assert states_drawn(code_of("MoongateCore/FlowRules/flow.mermaid")) == states | phases


def code_of(path):
    return (ROOT / "Sources" / path).read_text()


def cases_of(name, source):
    """The cases of an enum inside a type."""
    body = re.search(rf"^  (?:package )?enum {name}\b[^{{]*\{{(.*?)^  \}}", source, re.M | re.S)[1]
    return set(re.findall(r"^\s*(?:indirect )?case (\w+)", body, re.M))


def state_diagram(page):
    return re.search(r"```mermaid\nstateDiagram-v2\n(.*?)```", page.read_text(), re.S)[1]


def states_drawn(diagram):
    """The states at the ends of the arrows of a diagram."""
    arrows = re.findall(r"^\s*(\S+) --> (\S+)", diagram, re.M)
    return {name for arrow in arrows for name in arrow} - {"[*]"}


def test_module_imports_match_the_diagram():
    """The arrows are the dependencies in Package.swift that no others imply."""
    package = (ROOT / "Package.swift").read_text()
    diagram = re.search(r"```mermaid\nflowchart BT\n(.*?)```", (FOLDER / "README.md").read_text(), re.S)[1]
    arrows = {
        (line.split(" --> ")[0].strip(), target.strip())
        for line in diagram.splitlines()
        if " --> " in line
        for target in line.split(" --> ")[1].split(" & ")
    }
    modules = {end for arrow in arrows for end in arrow} - {"Plugins"}
    direct = {}
    for module in modules:
        target = re.search(rf'\.target\(\s*name: "{module}"(.*?)\n    (?:\.|//)', package, re.S)[1]
        direct[module] = {name for name in modules - {module} if f'"{name}"' in target}

    def implied(module):
        return set().union(*(direct[name] | implied(name) for name in direct[module]))

    expected = {(module, name) for module in modules for name in direct[module] - implied(module)}
    assert {arrow for arrow in arrows if "Plugins" not in arrow} == expected
    assert {arrow for arrow in arrows if "Plugins" in arrow} == {
        ("Plugins", "MoongateSDK"), ("MoongateProgram", "Plugins")
    }
    named = set(re.findall(r'\n    \.target\(\s*name: "(Moongate\w+)"', package)) - {"MoongateTesting"}
    assert modules == named
