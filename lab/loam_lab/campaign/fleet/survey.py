"""Ask the hosts of an engine what they have, and say what does not fit together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import loam_lab
from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.subjects import machines, simulated
from loam_lab.subjects.machines import Machine

if TYPE_CHECKING:
    from loam_lab.campaign.fleet.engine import Engine
    from loam_lab.model.study import Study

MARK = "loam-agent: "


def answer_in(out: str, err: str, host: str, doubt: str) -> dict[str, Any]:
    """The answer of `loam agent describe` in what a command printed.

    doubt: the question to ask where there is none; raises: LoamError
    """
    for line in out.splitlines():
        if line.startswith(MARK):
            answer: dict[str, Any] = json.loads(line.removeprefix(MARK))
            if "error" in answer:
                raise LoamError("--hosts", host, str(answer["error"]), "set it up there, or leave the host out")
            return answer
    lines = [line for line in (out + "\n" + err).splitlines() if line.strip() and not line.startswith("srun:")]
    raise LoamError("--hosts", host, f"Loam does not start there: {lines[-1][:300] if lines else 'no output'}", doubt)


def ask(engine: Engine, study: Study, preset: str, *, shared: bool) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What each host of an engine has, and what the reader should know of differences; declares each as a machine.

    shared: whether the current folder must be visible there
    raises: LoamError if no host can be used
    """
    names = engine.hosts()
    for name in names:
        if name == machines.HOST or name.startswith(simulated.PREFIX):
            raise LoamError("--hosts", name, "is the name of a machine of Loam's own", "give the host another name")
    question = {
        "study": study.model_dump(by_alias=True, mode="json"), "preset": preset, "build": not shared,
        "folder": str(Path.cwd()) if shared else "",
    }  # fmt: skip
    console.note(f"asking {', '.join(names)} what they have ...")
    with ThreadPoolExecutor(len(names)) as pool:
        asked = {name: pool.submit(engine.ask, name, question) for name in names}
    answers: dict[str, dict[str, Any]] = {}
    notes, problems = [], []
    for name, future in asked.items():
        try:
            answer = future.result()
            _check(name, answer)
        except LoamError as problem:
            problems.append(problem)
            notes.append(f"host {name} is left out: {problem.line()}; it is not measured; see the reason")
            continue
        answers[name] = answer
    for name in [name for name in answers if len(answers) > 1]:
        others = [other for other in answers if other != name]
        only = [
            one for one in answers[name]["lacking"] if any(one not in answers[other]["lacking"] for other in others)
        ]
        if only:
            why = answers.pop(name)["lacking"][only[0]]
            notes.append(
                f"host {name} is left out: it lacks what another host has: {why}; it is not measured; install it"
            )
    if not answers:
        raise problems[0]
    for name, answer in answers.items():
        machines.declare(_machine(name, answer))
    return answers, [*notes, *differences(answers)]


def _machine(host: str, answer: Mapping[str, Any]) -> Machine:
    return Machine(host, int(answer["threads"]), lambda: dict(answer["facts"]))


def _check(host: str, answer: Mapping[str, Any]) -> None:
    if answer["lab"] != loam_lab.__version__:
        limit = f"has version {answer['lab']} of Loam, and this is {loam_lab.__version__}"
        raise LoamError("--hosts", host, limit, "bring both to the same version")
    if not answer["sees"]:
        limit = f"does not see the folder {Path.cwd()}"
        raise LoamError("--hosts", host, limit, "start from a folder that is shared with it, or use --engine ssh")


def differences(hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is not the same on all hosts: facts that make their results differ beside the machine itself."""
    notes = []
    names = list(hosts)
    for kind, mark in (("allocators", "sha256"), ("executables", "build_id")):
        for one in hosts[names[0]][kind]:
            marks = {name: str(hosts[name][kind].get(one, {}).get(mark, "missing")) for name in names}
            if len(set(marks.values())) > 1:
                versions = {
                    name: str(hosts[name][kind].get(one, {}).get("version") or marks[name][:12]) for name in names
                }
                by_host = ", ".join(f"{version} on {name}" for name, version in versions.items())
                what = "allocator" if kind == "allocators" else "synchronisation"
                notes.append(
                    f"{what} {one} is not the same file on all hosts: {by_host}; differences between machines may be "
                    "its doing; install the same version"
                )
    kinds = {name: _kind(hosts[name].get("facts") or {}) for name in names}
    if len(set(kinds.values())) > 1:
        by_host = ", ".join(f"{kind} on {name}" for name, kind in kinds.items())
        notes.append(
            f"the hosts have unlike processors: {by_host}; each is a machine of its own, and allocators are compared on each; "
            "the report says whether their ranking holds across machines"
        )
    revisions = {name: str(hosts[name]["revision"]) for name in names}
    if len(set(revisions.values())) > 1:
        by_host = ", ".join(f"{revision[:12]} on {name}" for name, revision in revisions.items())
        notes.append(f"the revision of Loam differs: {by_host}; differences between machines may be its doing; update")
    return notes


def _kind(facts: Mapping[str, Any]) -> str:
    return f"{facts.get('cpu', 'an unknown processor')} with {facts.get('cores', '?')} hardware threads"
