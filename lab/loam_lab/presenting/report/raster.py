"""PNG pictures of a report's figures, for papers and slides: by a converter that is installed when it is first asked for."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping

from loam_lab.base.errors import LoamError
from loam_lab.presenting.report import svg
from loam_lab.setup import environments

CONVERTER = ("png", "the converter to PNG")
SCALE = 2.0
TIMEOUT_S = 600
# Runs in the converter's environment, once for all pictures: SVG texts in, PNG files as base64 out.
_SCRIPT = """
import base64, json, sys, vl_convert
pictures = [vl_convert.svg_to_png(document, scale=float(sys.argv[1])) for document in json.load(sys.stdin)]
json.dump([base64.b64encode(picture).decode() for picture in pictures], sys.stdout)
"""


def draw(documents: Mapping[str, str]) -> dict[str, bytes]:
    """Stand-alone SVG documents as PNG, dark ink on white, under the same names.

    raises: LoamError if the converter cannot be installed or fails
    """
    python = environments.interpreter(*CONVERTER)
    work = json.dumps([svg.paper(document) for document in documents.values()])
    done = subprocess.run(
        [str(python), "-c", _SCRIPT, str(SCALE)],
        input=work,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise LoamError("png", None, f"cannot be drawn: {done.stderr.strip()[-300:]}", "use the SVG pictures")
    return {name: base64.b64decode(each) for name, each in zip(documents, json.loads(done.stdout), strict=True)}
