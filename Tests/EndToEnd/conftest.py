import itertools

import pytest

from house import House

_numbers = itertools.count(10000)


@pytest.fixture
def house(tmp_path):
    """A house that runs, of this test alone."""
    house = House(tmp_path)
    try:
        yield house.start()
    finally:
        house.stop()


@pytest.fixture
def empty_house(tmp_path):
    """A house whose gateway the test starts itself."""
    house = House(tmp_path)
    try:
        yield house
    finally:
        house.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A house that runs, for tests that take a number of their own and change nothing else."""
    house = House(tmp_path_factory.mktemp("house"))
    try:
        yield house.start()
    finally:
        house.stop()


@pytest.fixture
def number():
    """A number that no other test has, in E.164."""
    return f"+9198765{next(_numbers)}"
