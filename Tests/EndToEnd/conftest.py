import itertools

import pytest

import screens
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


@pytest.fixture
def other_number():
    """Gives more of them, one at each call."""
    return lambda: f"+9198765{next(_numbers)}"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A browser with scripts."""
    driver = screens.start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The shipped numbers, but for those that a module full of tests would use up."""
    house = House(tmp_path_factory.mktemp("house"))
    house.edit("policies/phone_otp.lua", screens.many)
    house.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"1s"'))
    yield house.start()
    house.stop()


@pytest.fixture
def screen(driver, shipped):
    """Someone who comes to the module's house for the first time."""
    return screens.Screen(driver, shipped).forget()
