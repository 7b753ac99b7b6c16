"""The cgroups of a test that runs a systemd of its own."""

import os
import pathlib
import signal

from processes import wait_for


def hierarchies(*kinds):
    """The folders of this process's cgroups that systemd uses, by kind: "name=systemd" and "cgroup2"."""
    own = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    paths = {"cgroup2" if number == "0" else name: path for number, name, path in own}
    found = []
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        name = "cgroup2" if kind == "cgroup2" else "name=systemd"
        if name in kinds and (kind == "cgroup2" or (kind == "cgroup" and name in options.split(","))) and name in paths:
            found.append(pathlib.Path(where + paths[name]))
    return found


def cgroups_missing(folders):
    """Why this process can make no cgroups in the folders, or None."""
    if not folders:
        return "no cgroup hierarchy of systemd is mounted"
    for folder in folders:
        probe = folder / f"moongate-probe-{os.getpid()}"
        try:
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            return f"no cgroup can be made: {error}"
    return None


class Cgroups:
    """One cgroup in each hierarchy. `end` kills the processes that are left in them and removes them."""

    def __init__(self, hierarchies):
        self.folders = [base / f"moongate-test-{os.getpid()}" for base in hierarchies]
        for folder in self.folders:
            folder.mkdir()

    def processes(self):
        found = set()
        for folder in self.folders:
            for file in folder.rglob("cgroup.procs"):
                try:
                    found.update(map(int, file.read_text().split()))
                except OSError:
                    pass  # The cgroup is gone.
        return found

    def _is_empty(self):
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not self.processes()

    @staticmethod
    def _is_removed(folder):
        try:
            folder.rmdir()
        except OSError:
            return False  # The kernel is not done with its last process.
        return True

    def end(self):
        wait_for(self._is_empty, "the processes of the cgroups to end")
        for top in self.folders:
            for folder in [*sorted(top.rglob("*/"), reverse=True), top]:
                wait_for(lambda folder=folder: self._is_removed(folder), f"the end of {folder}")
