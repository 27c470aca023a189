"""One run of a server under a load, for those who look at the server and compare nothing: trace record, explain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loam_lab.campaign.process.execute import RECORDS_FD, execute
from loam_lab.commands.bench import job_description
from loam_lab.model import records
from loam_lab.model.protocol import ALLOCATOR_VARIABLES

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome, Watch
    from loam_lab.commands.bench.job import Job


def serve(
    job: Job, user: Mapping[str, str], variables: Mapping[str, str], watch: Watch | None = None
) -> tuple[Outcome, Mapping[str, Any] | None]:
    """Let the driver of bench start, fill, load and stop a server.

    variables: what the server has beyond the user's environment; watch: as of execute()
    returns: how the driver ended, and what it said at its end: None if it was ended before
    raises: OSError if the driver does not start
    """
    subject = job_description.subject(job)
    environment = {**user, **dict(subject.environment), ALLOCATOR_VARIABLES: json.dumps(variables)}
    outcome = execute(
        [*subject.argv, "server", "--records", str(RECORDS_FD)], environment, timeout_s=job_description.timeout_s(job),
        records=True, keep_stdout=True, watch=watch,
    )  # fmt: skip
    return outcome, next((line for line in records.parse(outcome.records).lines if line["kind"] == "end"), None)
