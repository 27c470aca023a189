"""Start of the command line: `python -m loam_lab.cli`, and the program `loam` of the wheel."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line of this process and return the exit status."""
    # Ctrl-C ends a program whose modules are still loading, at once and without a traceback. run() takes over from there.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from loam_lab.cli.main import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
