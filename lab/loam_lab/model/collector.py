"""The factor `collector`: which garbage collector a virtual machine runs.

A process is told it as a parameter, so plans, identities and records have it among the parameters, where it shares
blocks with the other levels of the synchronisation.  Studies, claims, the command line, results and reports name it as
the factor that it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAME = "collector"


def among_parameters(table: Any) -> Any:
    """A table of a study file with its `collector` among its parameters.

    raises: ValueError if it is in both places
    """
    if not isinstance(table, Mapping) or NAME not in table:
        return table
    rest = {name: value for name, value in table.items() if name != NAME}
    parameters = rest.get("parameters", {})
    if not isinstance(parameters, Mapping):
        return rest
    if NAME in parameters:
        raise ValueError(f"{NAME} stands beside the parameters and in them: leave it out there")
    return {**rest, "parameters": {**parameters, NAME: table[NAME]}}


def factors(parameters: Mapping[str, Any]) -> dict[str, str]:
    """The factor of a cell with these parameters; empty where it has none."""
    return {NAME: str(parameters[NAME])} if NAME in parameters else {}
