import itertools
import pathlib
import zlib

import pytest

import screens
from local_gateway import LocalGateway

_numbers = itertools.count(10000)


@pytest.fixture
def gateway(tmp_path):
    """A running gateway for a single test."""
    gateway = LocalGateway(tmp_path)
    try:
        yield gateway.start()
    finally:
        gateway.stop()


@pytest.fixture
def new_gateway(tmp_path):
    """A gateway that the test starts itself."""
    gateway = LocalGateway(tmp_path)
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A running gateway for tests that use their own phone number and change nothing else."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    try:
        yield gateway.start()
    finally:
        gateway.stop()


@pytest.fixture
def number():
    """A unique phone number in E.164."""
    return f"+9198765{next(_numbers)}"


@pytest.fixture
def other_number():
    """A function that returns further unique numbers."""
    return lambda: f"+9198765{next(_numbers)}"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A browser with scripts."""
    driver = screens.start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The default configuration, except for limits that a whole module would exceed."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/phone_otp.lua", screens.many)
    gateway.edit("policies/password.lua", screens.registrations)
    gateway.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"1s"'))
    yield gateway.start()
    gateway.stop()


def pytest_addoption(parser):
    parser.addoption(
        "--looks",
        choices=["one", "all"],
        default="one",
        help="whether tests of pages are run in one look each, or in all of them",
    )
    parser.addoption(
        "--renew-pictures", action="store_true", help="keep how the pages look now (test_pages_pictures.py)"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "timed: measures milliseconds, so `make end-to-end` runs it last with nothing else")
    config.addinivalue_line(
        "markers", "alone: measures time or memory, so `make end-to-end` runs it with at most three others beside it"
    )


def pytest_generate_tests(metafunc):
    # Tests that set the look themselves are not parametrized.
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    own = [name for names in named for name in (names.split(", ") if isinstance(names, str) else names)]
    if "look" in metafunc.fixturenames and "look" not in own:
        names = list(screens.LOOKS)
        if metafunc.config.getoption("looks") == "one":
            names = [names[zlib.crc32(metafunc.definition.name.encode()) % len(names)]]
        metafunc.parametrize("look", names, ids=names)


@pytest.fixture
def screen(driver, shipped, look):
    """A new visitor of the module's gateway."""
    return screens.Screen(driver, shipped, look).forget()


# The slowest files, which start first, and the parts that they are split into. Other files fill the gaps.
LONG = {
    "test_pages_looks": 3,
    "test_languages": 3,
    "test_presentations": 2,
    "test_passkey": 2,
    "test_guide": 2,
    "test_pages_site": 1,
    "test_presentations_steps": 1,
    "test_reload": 1,
    "test_pages_pin": 1,
    "test_pages_account": 1,
    "test_pages_code": 1,
    "test_attack_floods": 1,
    "test_description": 1,
    "test_postgres": 1,
    "test_ldap": 2,
    "test_pages_login": 1,
    "test_safe_configuration": 1,
    "test_start": 1,
    "test_exec": 1,
    "test_pages_layout": 1,
    "test_upgrade": 1,
    "test_cluster": 6,
    "test_openid_provider_cluster": 3,
    "test_openid_certification": 2,
    "test_openid_provider_attacks": 2,
    "test_openid_provider_clients": 2,
    "test_cluster_maintenance": 1,
    "test_crowds": 1,
    "test_routes_frames": 1,
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs all tests of a file, because they share gateways and browsers; a long file is split into
    parts."""
    from xdist.scheduler import LoadFileScheduling

    class LoadPartScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            return f"{file}, {zlib.crc32(test.encode()) % LONG.get(pathlib.Path(file).stem, 1)}"

    return LoadPartScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG)))
