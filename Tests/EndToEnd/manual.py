"""The code blocks that the pages of Documentation/ show. If a block is a file, its first line names it."""

import re

from processes import ROOT

DOCUMENTATION = ROOT / "Documentation"


def page_text(page):
    """The text of a page, such as "guides/nginx.md"."""
    return (DOCUMENTATION / page).read_text()


def fenced(text):
    """The code blocks of a text, in order, as (language, text)."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def blocks(language, page):
    """All blocks of a language on a page, in order."""
    return [text for name, text in fenced(page_text(page)) if name == language]


def block(name, page=None):
    """The one block for a file: of all pages, or of this page."""
    pages = [page] if page else [file.relative_to(DOCUMENTATION) for file in sorted(DOCUMENTATION.rglob("*.md"))]
    pattern = re.compile(rf"^```\w+\n((?:<\?php )?(?:#|//|--) {re.escape(name)}(?=[:\s]).*?)^```$", re.M | re.S)
    found = [(one, text) for one in pages for text in pattern.findall(page_text(one))]
    assert len(found) == 1, f"{len(found)} blocks for {name} on {[str(one) for one, _ in found] or page or 'all pages'}"
    return found[0][1]
