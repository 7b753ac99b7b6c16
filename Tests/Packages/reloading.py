"""A reload of the service, which both tests of units run: by a user manager, and by systemd as process 1."""

from processes import wait_for


def check_reload(manager, log, routes, answer):
    """Reloads the same files, broken ones, and repaired ones. `log` returns the gateway's log."""

    def reload():
        line = "SIGHUP: reloading the configuration"
        reloads = log().count(line)
        manager.ctl("reload", "moongate.service")
        wait_for(lambda: log().count(line) > reloads, "SIGHUP")

    before = manager.show("StatusText")
    text = routes.read_text()
    reload()
    wait_for(lambda: manager.show("StatusText") == before, "the reload of the same files")
    assert text.count("flow =") == 1
    routes.write_text(text.replace("flow =", "floww ="))
    try:
        reload()
        wait_for(lambda: "current files are refused (problems: " in manager.show("StatusText"), "the refusal")
        assert answer() == 200
    finally:
        routes.write_text(text)
    reload()
    wait_for(lambda: manager.show("StatusText") == before, "the reload of the repaired files")
    wait_for(lambda: manager.show("ActiveState") == "active", "the end of the reload")
