"""A pytest plugin: several pytest processes, the workers, run the same tests, each module in the worker that is free first.

    LOAM_TEST_TAKEN=FOLDER python -m pytest -p loam_lab.dev.testing.workers tests/lab     one worker; two such, two workers

All workers collect the same modules in the same order, those with slow tests first, so that none of these is left for
the end. A worker that comes to a module makes a file of its name in the folder. Where another one has made it, the module
is not this worker's, and none of its tests is run or counted. A module is never split: what its tests share is made once.
"""

from __future__ import annotations

import itertools
import os
import zlib
from pathlib import Path

import pytest

from loam_lab.dev.testing.suites import TAKEN


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with slow tests first; the order stays otherwise."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtestloop(session: pytest.Session) -> bool:
    """pytest's own loop, over the modules that no other worker has."""
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    if session.config.option.collectonly:
        return True
    for module, tests in itertools.groupby(session.items, key=lambda item: item.path):
        if not _take(module):
            continue
        # After the last test of a module everything is taken down: which module comes next is not known yet.
        for test, following in itertools.pairwise([*tests, None]):
            assert test is not None
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    return True


def _take(module: Path) -> bool:
    """Whether this worker is the first that comes to a module."""
    name = f"{module.stem}-{zlib.crc32(str(module).encode()):08x}"
    try:
        (Path(os.environ[TAKEN]) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
