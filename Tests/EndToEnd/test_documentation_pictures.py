"""The pictures in Documentation/images are those that documentation_pictures.py makes, and show pages that still exist."""

import re

import pytest
from documentation_pictures import FOLDER, PICTURES
from local_gateway import LocalGateway
from processes import ROOT
from screens import Screen


def test_each_picture_is_made_and_used():
    files = {file.stem: file for file in FOLDER.iterdir()}
    assert sorted(files) == sorted(PICTURES), "make pictures"
    for file in files.values():
        assert file.suffix == ".png" and file.stat().st_size < 150_000, file.name
    pages = [ROOT / "README.md", *(ROOT / "Documentation").rglob("*.md")]
    used = re.findall(r"!\[[^\]]{20,}\]\([^)]*images/([\w-]+)\.png\)", "\n".join(page.read_text() for page in pages))
    assert sorted(set(used)) == sorted(PICTURES), "each picture is shown, with a description"


@pytest.mark.parametrize("name", PICTURES)
def test_the_page_still_looks_like_that(tmp_path, driver, name):
    """The steps of the picture still work, and its page still shows the text that it is made for."""
    gateway = LocalGateway(tmp_path)
    try:
        screen = Screen(driver, gateway.start()).forget()
        story, sentences = PICTURES[name]
        story(screen)
        screen.reads(*sentences)
    finally:
        gateway.stop()
