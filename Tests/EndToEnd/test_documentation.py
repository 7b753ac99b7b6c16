"""Documentation/ says what is true: its links lead somewhere, its tests exist, and no requirement of a standard is left
out."""

import re
import subprocess
import sys

import pytest

from processes import ROOT

DOCUMENTATION = ROOT / "Documentation"
SECURITY = DOCUMENTATION / "security"
STATES = {"met", "not applicable", "not met"}

# The number of requirements in each section of OWASP ASVS 5.0.
ASVS = {
    "6.1": 3,
    "6.2": 12,
    "6.3": 8,
    "6.4": 6,
    "6.5": 8,
    "6.6": 4,
    "6.7": 2,
    "6.8": 4,
    "7.1": 3,
    "7.2": 4,
    "7.3": 2,
    "7.4": 5,
    "7.5": 3,
    "7.6": 2,
    "10.1": 2,
    "10.2": 3,
    "10.3": 5,
    "10.4": 16,
    "10.5": 5,
    "10.6": 2,
    "10.7": 3,
    "11.1": 4,
    "11.2": 5,
    "11.3": 5,
    "11.4": 4,
    "11.5": 2,
    "11.6": 2,
    "11.7": 2,
    "16.1": 1,
    "16.2": 5,
    "16.3": 4,
    "16.4": 3,
    "16.5": 4,
}
# The same for sections 2 to 5 of NIST SP 800-63B-4, by the names of its conformance criteria, including inserted
# numbers.
NIST = {
    "AAL": 4,
    "AAL1PAT": 1,
    "AAL1AVR": 3,
    "AAL1REA": 2,
    "AAL2PAT": 2,
    "AAL2AVR": 7,
    "AAL2REA": 1,
    "AAL3PAT": 1,
    "AAL3AVR": 8,
    "AAL3REA": 2,
    "SC": 1,
    "RRP": 2,
    "PR": 7,
    "REDAUTH": 3,
    "PASSAUTH": 3,
    "PV": 20,
    "LSA": 3,
    "LSV": 10,
    "OBA": 5,
    "OBV": 7,
    "AUPSTN": 3,
    "MFOBA": 4,
    "SFOA": 3,
    "SFOV": 6,
    "MFOA": 7,
    "MFOV": 6,
    "SFCATION": 1,
    "SFCATORS": 3,
    "SFCVER": 4,
    "MFCTION": 1,
    "MFCTORS": 8,
    "MFCFIERS": 1,
    "UWSCW": 7,
    "PHYSA": 2,
    "RL": 6,
    "UB": 4,
    "BA": 5,
    "PAD": 2,
    "IAD": 5,
    "UBS": 2,
    "ATT": 1,
    "PHIRES": 3,
    "CB": 3,
    "VNB": 3,
    "VCIC": 1,
    "AI": 2,
    "RESTA": 5,
    "AS": 8,
    "CONNAUTH": 3,
    "WC": 7,
    "HYBC": 2,
    "RANV": 1,
    "EXPO": 2,
    "AUTHB": 5,
    "BAA": 3,
    "BINAE": 10,
    "BSPA": 2,
    "ARM": 2,
    "SRC": 5,
    "IRC": 6,
    "RECC": 2,
    "RIP": 1,
    "RWIP": 1,
    "RAAL2": 1,
    "RAAL3": 1,
    "ACCRN": 1,
    "LTDC": 2,
    "EXP": 2,
    "INVAL": 2,
    "ANOT": 7,
    "SB": 10,
    "AT": 1,
    "REAUTH": 5,
    "SESSM": 1,
}
NIST_BETWEEN = [
    "AAL3AVR-3.5",
    "AAL3AVR-3.7",
    "LSA-1.5",
    "OBV-5.5",
    "MFCFIERS-0.5",
    "IAD-5.1",
    "IAD-5.2",
    "WC-2.1",
    "WC-2.2",
    "WC-2.3",
    "HYBC-1.1",
    "SB-8.1",
    "SB-8.2",
    "SB-8.3",
    "SB-8.4",
    "SB-8.5",
]

# The security considerations of the standards of the OpenID endpoints: the sections of each.
OAUTH = {
    "6749-10": range(1, 17),
    "6819-4.1": range(1, 6),
    "6819-4.2": range(1, 5),
    "6819-4.3": range(1, 6),
    "6819-4.4.1": range(1, 14),
    "6819-4.4.2": range(1, 7),
    "6819-4.4.3": range(1, 7),
    "6819-4.4": [4],
    "6819-4.5": range(1, 5),
    "6819-4.6": range(1, 8),
    "9700-2": [1, "1.1", "1.2", "2.1", "2.2", 3, 4, 5, 6],
    "9700-4": range(1, 18),
    "8252-8": range(1, 13),
    "8628-5": range(1, 8),
    "9126-7": range(1, 6),
}
# The number of modules of each certification plan of the OpenID Foundation.
CERTIFICATION = {"Basic OP": 38, "Config OP": 1, "RP-Initiated Logout OP": 11, "Back-Channel Logout OP": 2}

REQUIREMENTS = {
    "asvs.md": (
        r"\d+\.\d+\.\d+",
        [f"{section}.{number}" for section, count in ASVS.items() for number in range(1, count + 1)],
    ),
    "nist-800-63b.md": (
        r"[A-Z]+\d?[A-Z]*-[\d.]+",
        [f"{group}-{number}" for group, count in NIST.items() for number in range(1, count + 1)] + NIST_BETWEEN,
    ),
    "oauth.md": (
        r"\d{4}-[\d.]+",
        [f"{section}.{number}" for section, numbers in OAUTH.items() for number in numbers],
    ),
}


def rows(text):
    """The cells of every table row, without the head."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|\n").split(" | ")]


def requirements(name):
    """The rows of a table by their first cell, the name of a requirement."""
    pattern, _ = REQUIREMENTS[name]
    return [row for row in rows((SECURITY / name).read_text()) if re.fullmatch(pattern, row[0].strip("| "))]


def named_tests(text):
    """Names of tests in code spans: a file in Python, `::` and its test, or Suite.test, or Folder/Suite.test."""
    return re.findall(r"`(test_\w+\.py::test_\w+|(?:\w+/)?\w+Tests\.\w+)`", text)


def swift_tests():
    """Every Swift test as (folders, suite, name); the suite is the file's name."""
    found = set()
    for file in [*ROOT.glob("Tests/**/*Tests.swift"), *ROOT.glob("Plugins/**/*Tests.swift")]:
        for name in re.findall(r"@Test\b(?:(?!\bfunc\b).)*?\bfunc\s+(\w+)", file.read_text(), re.S):
            found.update((folder, file.stem, name) for folder in ["", *file.relative_to(ROOT).parts[:-1]])
    return found


def exists(test, known):
    if "::" in test:
        file, name = test.split("::")
        path = ROOT / "Tests" / "EndToEnd" / file
        return path.exists() and re.search(rf"^def {name}\(", path.read_text(), re.M) is not None
    folder, _, rest = test.rpartition("/")
    suite, name = rest.split(".")
    return (folder, suite, name) in known


def pages():
    return sorted(DOCUMENTATION.rglob("*.md"))


def test_named_tests_exist():
    known = swift_tests()
    assert len(known) > 1000, "the Swift tests are found"
    missing = [
        f"{page.relative_to(ROOT)}: {test}"
        for page in pages()
        for test in named_tests(page.read_text())
        if not exists(test, known)
    ]
    assert missing == []


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_requirement_is_listed_once(name):
    _, expected = REQUIREMENTS[name]
    listed = [row[0].strip("| ") for row in requirements(name)]
    assert sorted(set(expected) - set(listed)) == [], "missing"
    assert sorted({number for number in listed if listed.count(number) > 1}) == [], "twice"
    assert sorted(set(listed) - set(expected)) == [], "not in the standard"


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_state_has_its_evidence(name):
    for row in requirements(name):
        state, evidence = row[-2], row[-1]
        assert state in STATES, row
        if state == "met":
            assert named_tests(evidence), f"{row[0]} is met, and no test shows it"
        else:
            assert len(evidence.split()) >= 2, f"{row[0]} is {state}, and nothing says why"


def test_every_module_of_certification_has_a_test_of_its_name():
    page, names = (SECURITY / "openid-certification.md").read_text(), []
    for plan, count in CERTIFICATION.items():
        section = page.split(f"\n## {plan}\n")[1].split("\n## ")[0]
        modules = [row for row in rows(section) if row[0].strip("| ").startswith("oidcc-")]
        assert len(modules) == count, plan
        names += [row[0].strip("| ").removeprefix("oidcc-").replace("-", "_") for row in modules]
        assert [f"test_openid_certification.py::test_{name}" for name in names[-count:]] == [
            named_tests(row[-1])[0] for row in modules
        ]
    text = (ROOT / "Tests/EndToEnd/test_openid_certification.py").read_text()
    assert sorted(names) == sorted(re.findall(r"^def test_(\w+)\(", text, re.M))


def test_threats_name_their_tests():
    threats = [
        row for row in rows((SECURITY / "threat-model.md").read_text()) if re.fullmatch(r"T\d+", row[0].strip("| "))
    ]
    numbers = [int(row[0].strip("| ")[1:]) for row in threats]
    assert numbers == sorted(set(numbers)) and len(numbers) >= 30
    for row in threats:
        assert named_tests(row[-1]), f"{row[0]} names no test"


def test_behaviour_names_a_test_in_every_row():
    page = (DOCUMENTATION / "plugins" / "behaviour.md").read_text()
    tables = re.findall(r"^\| .* \| Test \|\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.M)
    assert len(tables) >= 9
    without = [
        line for table in tables for line in table.splitlines() if not named_tests(line.rstrip("|").split(" | ")[-1])
    ]
    assert without == []


def test_every_page_is_linked_from_the_index():
    reached, waiting = set(), [DOCUMENTATION / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for address, _ in links(page):
            target = (page.parent / address).resolve()
            if target.suffix == ".md" and DOCUMENTATION in target.parents:
                waiting.append(target)
    texts = {file for file in DOCUMENTATION.rglob("*") if file.is_file() and file.suffix in (".md", ".txt", ".mermaid")}
    assert sorted(str(file.relative_to(ROOT)) for file in texts - reached) == []


def linked_pages():
    """The pages of which every link is checked: Documentation/ and the texts beside the code."""
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "config/README.md")
    beside = [ROOT / name for name in names]
    folders = [ROOT / "Plugins", ROOT / "Packaging", ROOT / "Sources"]
    found = [file for folder in folders for file in folder.rglob("*.md") if "Templates" not in file.parts]
    return [*pages(), *beside, *sorted(file for file in found if "node_modules" not in file.parts)]


def prose(page):
    """The text of a page without its blocks of code and its code spans."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def links(page):
    """The links of a page into the repository: an address, which is empty within the page, and an anchor or None."""
    for address, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(page)):
        if "://" not in address and not address.startswith("mailto:"):
            yield address, anchor or None


def anchors(page):
    """The names that GitHub gives to the headings of a page; a second heading of one name gets a number."""
    counts, found = {}, set()
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        counts[name] = counts.get(name, -1) + 1
        found.add(f"{name}-{counts[name]}" if counts[name] else name)
    return found


def test_every_link_leads_somewhere():
    checked, broken = 0, []
    for page in linked_pages():
        for address, anchor in links(page):
            checked += 1
            target = (page.parent / address).resolve() if address else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {address} does not exist")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: {address}#{anchor} is no heading")
    assert broken == [], "\n".join(broken)
    assert checked > 400, "the links are found"


def test_pages_for_operators_lead_only_to_what_a_package_has(tmp_path):
    """A package has Documentation/ and the pages and policies of the providers, and no sources."""
    package = packaged(tmp_path)
    pages = [page for page in DOCUMENTATION.rglob("*.md") if is_for_operators(page)]
    assert len(pages) > 40
    missing = [
        f"{page.relative_to(ROOT)}: {address}"
        for page in [*pages, *(ROOT / "Plugins").glob("*/README.md")]
        for address, _ in links(page)
        if address and not (package / (page.parent / address).resolve().relative_to(ROOT)).exists()
    ]
    assert missing == []


def test_every_link_of_a_package_leads_somewhere(tmp_path):
    """Pages for contributors are packaged too. What they say of the sources is plain text there."""
    package, checked, broken = packaged(tmp_path), 0, []
    for page in package.rglob("*.md"):
        for address, anchor in links(page):
            checked += 1
            target = (page.parent / address).resolve() if address else page
            if not target.exists() or anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{page.relative_to(package)}: {address}#{anchor or ''}")
    assert broken == [], "\n".join(broken)
    assert checked > 400, "the links are found"
    policies = (package / "Documentation" / "architecture" / "policies.md").read_text()
    assert "Sources/MoongatePolicy/README.md)" not in policies and "`ConfigurationWatcher`" in policies
    assert "(../Plugins/README.md)" in (package / "Documentation" / "README.md").read_text()


def packaged(folder):
    """The documents of a package, in a folder."""
    subprocess.run([sys.executable, ROOT / "Packaging" / "tools" / "documents.py", folder], check=True, timeout=60)
    assert "tools/documents.py" in (ROOT / "Packaging" / "tools" / "stage.sh").read_text()
    return folder


def is_for_operators(page):
    path = page.relative_to(DOCUMENTATION)
    # The index leads everybody, contributors too.
    return path.name != "README.md" and path.parts[0] not in ("architecture", "plugins", "security")


def test_the_page_of_the_configuration_stays_short():
    lines = (ROOT / "config" / "README.md").read_text().splitlines()
    assert len(lines) <= 60, "config/README.md explains the folder; guides belong in Documentation/guides"


def test_inventory_names_every_key_purpose():
    inventory = (SECURITY / "cryptography.md").read_text()
    source = (ROOT / "Sources/MoongateCore/Secrets/DerivedKeys.swift").read_text()
    purposes = set(re.findall(r'derive\("([^"]+)"\)', source)) | {
        text.split(r" \(")[0] for text in re.findall(r'info: Data\("([^"]+)"', source)
    }
    assert len(purposes) >= 8
    assert sorted(purpose for purpose in purposes if f"`{purpose}`" not in inventory) == []


def test_inventory_names_every_source_file_that_uses_cryptography():
    inventory = set(re.findall(r"`(\w+\.swift)`", (SECURITY / "cryptography.md").read_text()))
    library = re.compile(
        r"^(?:@\w+ )*import (?:Crypto|CryptoKit|CryptoExtras|_CryptoExtras|JWTKit|NIOSSL|CArgon2|X509|CommonCrypto)\b",
        re.M,
    )
    using = {
        file.name
        for folder in ("Sources", "Plugins")
        for file in (ROOT / folder).rglob("*.swift")
        if "Tests" not in file.parts and library.search(file.read_text())
    }
    assert len(using) > 15
    assert sorted(using - inventory) == [], "not in the inventory"
    assert sorted(inventory - using) == [], "in the inventory and not using any"
