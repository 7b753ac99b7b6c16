"""The files that the pages of Documentation/ show: a block's first line names its file."""

import re

from processes import ROOT

DOCUMENTATION = ROOT / "Documentation"


def page_text(page):
    """The text of a page, such as "guides/nginx.md"."""
    return (DOCUMENTATION / page).read_text()


def blocks(language, page):
    """All blocks of a language on a page, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page_text(page), re.M | re.S)


def block(name, page=None):
    """The one block for a file: of all pages, or of this page."""
    pages = [page] if page else [file.relative_to(DOCUMENTATION) for file in sorted(DOCUMENTATION.rglob("*.md"))]
    pattern = re.compile(rf"^```\w+\n((?:<\?php )?(?:#|//|--) {re.escape(name)}(?=[:\s]).*?)^```$", re.M | re.S)
    found = [(one, text) for one in pages for text in pattern.findall(page_text(one))]
    assert len(found) == 1, f"{len(found)} blocks for {name} on {[str(one) for one, _ in found] or page or 'all pages'}"
    return found[0][1]
