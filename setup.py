"""Puts the sources of the runtime, the workloads and the lab's data into the wheel: loam builds what it measures with.

All else stands in pyproject.toml.
"""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent / "lab"))

from loam_lab.base import paths
from loam_lab.campaign.fleet import archive


class BuildWithSources(build_py):
    """Adds loam_lab/sources.tar, without documents."""

    def run(self) -> None:
        super().run()
        files = [name for name in archive.names() if not name.startswith("docs/")]
        (Path(self.build_lib) / "loam_lab" / paths.SOURCES).write_bytes(archive.packed(files))


setup(cmdclass={"build_py": BuildWithSources})
