"""Texts are spelled right, in plain English, and no line is too long to read. Needs no gateway."""

import re
import subprocess
import sys

import pytest

from processes import ROOT

WIDTH = 120
WORDS = ROOT / "Tests" / "EndToEnd" / "words"
# Texts that readers see, besides the generated reference.
PAGES = sorted(
    page
    for pattern in (
        "*.md",
        "Documentation/**/*.md",
        "Plugins/**/README.md",
        "Packaging/**/*.md",
        "Sources/*/README.md",
        "config/*.md",
        "Tests/**/README.md",
    )
    for page in ROOT.glob(pattern)
    if page.relative_to(ROOT).parts[:2] != ("Documentation", "reference")
)
# Folders that hold no sources. `git` is not asked, because a tarball has no repository.
SKIPPED = {".git", ".build", "data", "node_modules", "__pycache__"}


def files(*suffixes):
    return sorted(
        file
        for file in ROOT.rglob("*")
        if file.suffix in suffixes
        and not any(
            part in SKIPPED or part.startswith(".build") for part in file.relative_to(ROOT).parts
        )
        and file.is_file()
    )


def prose(text):
    """The lines of a Markdown text as (number, text): without code fences and indented code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            if mark and line.strip() == fence:
                fence = None
        elif mark:
            fence = mark[1]
        elif not line.startswith(("    ", "\t")):
            yield number, line


def place(file, number):
    return f"{file.relative_to(ROOT)}:{number}"


def listed(name):
    """The entries of a list of ours: a line each, without comments."""
    lines = (WORDS / name).read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


LITERAL = r"""\"(?:[^\"\\\n]|\\.)*\"|`[^`\n]*`|'(?:[^'\\\n]|\\.)*'"""


def misspelled(texts, *options):
    """What codespell finds. `words/spelling.txt` has our own words."""
    told = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "--ignore-words", WORDS / "spelling.txt", *options, *texts],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.stderr == "", told.stderr
    return told.stdout.splitlines()


def test_spelling():
    """Markdown, comments, names and messages."""
    texts = files(".md", ".swift", ".py", ".lua", ".c", ".h", ".js", ".mjs", ".css", ".go", ".mustache")
    texts += [file for file in files(".words") if file.stem == "en"]
    tests = [file for file in texts if "Tests" in file.relative_to(ROOT).parts and file.suffix != ".md"]
    assert len(texts) > 1000 and len(tests) > 300
    assert misspelled([file for file in texts if file not in set(tests)]) == []
    # Tests misspell string literals on purpose, some of them in several lines.
    options = ["--ignore-words", WORDS / "misspelled_on_purpose.txt", "--ignore-regex", LITERAL]
    assert misspelled(tests, *options) == []


def test_spelling_finds_mistakes(tmp_path):
    (tmp_path / "a.md").write_text("This is teh gateway.\n")
    assert "teh ==> the" in misspelled([tmp_path / "a.md"])[0]


def old_manner(lines, name="old_manner.txt"):
    """The phrases of the list in lines that must not have them, as (line, words)."""
    phrases = re.compile("|".join(f"(?:{phrase})" for phrase in listed(name)), re.I)
    for number, line in lines:
        # Names in code are not prose, nor are the addresses of links.
        plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`…`", line))
        for found in phrases.finditer(plain):
            yield number, found[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_plain_english(page):
    """No text has words of the old manner: `words/old_manner.txt`, each with what to write instead."""
    found = [f"{place(page, number)}: {words}" for number, words in old_manner(prose(page.read_text()))]
    assert found == []


def test_the_old_manner_is_found():
    text = "Whoever comes is told so.\n\n```\nwhoever\n```\n\nA `whoever` in code.\n"
    assert [number for number, _ in old_manner(prose(text))] == [1, 1]


STRING = r'"(?:[^"\\\n]|\\.)*"'
QUOTED = r"'(?:[^'\\\n]|\\.)*'"
C_TEXTS = STRING + r"|//[^\n]*|/\*.*?\*/"
# What of a source is text: comments and string literals. Literals inside an interpolation are not found.
TEXTS = {
    ".swift": r'""".*?"""|' + C_TEXTS,
    ".c": C_TEXTS,
    ".h": C_TEXTS,
    ".py": r'""".*?"""|#[^\n]*|' + STRING + "|" + QUOTED,
    ".lua": r"--\[\[.*?\]\]|--[^\n]*|\[\[.*?\]\]|" + STRING + "|" + QUOTED,
}


def comments_and_literals(source, suffix):
    """The lines of comments and string literals as (number, text), without the code of interpolations."""
    for found in re.finditer(TEXTS[suffix], source, re.S):
        first = source.count("\n", 0, found.start()) + 1
        for number, line in enumerate(found[0].splitlines(), first):
            yield number, re.sub(r"\\\((?:[^()]|\([^()]*\))*\)", "…", line) if suffix == ".swift" else line


def test_plain_english_of_sources():
    """No comment or message has words that the glossary has replaced: `words/old_manner_sources.txt`. Tests may."""
    sources = [
        file
        for file in files(*TEXTS)
        if file.relative_to(ROOT).parts[0] in ("Sources", "Plugins", "config", "Packaging")
        and "Tests" not in file.relative_to(ROOT).parts
    ]
    assert len(sources) > 1000
    found = [
        f"{place(file, number)}: {words}"
        for file in sources
        for number, words in old_manner(
            comments_and_literals(file.read_text(), file.suffix), "old_manner_sources.txt"
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "suffix, source",
    [
        (".swift", 'let door = 1  // Which `door`?\n/// Every door.\nprint("\\(gathered) strangers")\n'),
        (".swift", 'let text = """\n  An unproved number, at any door.\n  """\nlet doors = gathered\n'),
        (".lua", "local door = 1\n-- Every door.\nreturn 'three wrong tries'\n"),
        (".py", "door = 1\n# Every door.\ntext = 'a stranger' + \"doors\"\n"),
        (".c", "int door;\n/* Every door,\n   every vault. */\n"),
    ],
)
def test_the_old_manner_is_found_in_sources(suffix, source):
    lines = comments_and_literals(source, suffix)
    expected = [2, 2] if '"""' in source else [2, 3]
    assert [number for number, _ in old_manner(lines, "old_manner_sources.txt")] == expected


def test_lines_of_markdown():
    """Prose has at most 120 columns: not tables, code, headings, and lines that one address or name makes long."""
    long = []
    for page in PAGES:
        for number, line in prose(page.read_text()):
            if len(line) > WIDTH and not re.match(r"\s*(\||#|<|!\[)", line):
                # A link or a code span is not broken.
                rest = re.sub(r"\]\([^)]*\)|`[^`]*`|https?://\S+", "", line)
                if len(rest) > WIDTH - 20 or "](" not in line and "`" not in line and "://" not in line:
                    long.append(f"{place(page, number)}: {len(line)}")
    assert long == []


SOURCES = {
    ".swift": r'"(?:[^"\\]|\\.)*"|"""|^\s*/[^/*].*/$',
    ".c": r'"(?:[^"\\]|\\.)*"',
    ".h": r'"(?:[^"\\]|\\.)*"',
    ".py": r"""[rfb]*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""",
    ".lua": r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""",
    ".js": r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|/(?:[^/\\\n]|\\.)+/)""",
    ".mjs": r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|/(?:[^/\\\n]|\\.)+/)""",
    ".css": r"""(?:"[^"]*"|'[^']*'|url\([^)]*\))""",
    ".go": r'(?:"(?:[^"\\]|\\.)*"|`[^`]*`)',
}


def long_lines(text, suffix):
    """The lines of a source that are too long and have no string literal, regular expression or address."""
    mark = "`" if suffix in (".js", ".mjs", ".go") else '"""'
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        # A literal of several lines.
        changes = line.count(mark) % 2 == 1 and not line.lstrip().startswith(("//", "*", "#"))
        whole = inside or changes
        inside = inside != changes
        if len(line) > WIDTH and not whole and not re.search(SOURCES[suffix] + r"|https?://\S+", line):
            yield number, len(line)


def test_lines_of_sources():
    """At most 120 columns, where no string literal or address makes the line longer."""
    found = [
        f"{place(file, number)}: {length}"
        for file in files(*SOURCES)
        # Generated from the descriptions of fields.
        if file.parent.name != "editor"
        for number, length in long_lines(file.read_text(), file.suffix)
    ]
    assert found == []


def test_long_lines_are_found():
    assert list(long_lines("x" * 121, ".c")) == [(1, 121)]
    assert list(long_lines('say("' + "x" * 121 + '")', ".c")) == []
    assert list(long_lines("`\n" + "x" * 121 + "\n`\n" + "y" * 121, ".js")) == [(4, 121)]
    assert list(long_lines('"""\n' + "x" * 121 + '\n"""\n' + "y" * 121, ".swift")) == [(4, 121)]
