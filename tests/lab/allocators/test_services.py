"""Services that root starts and that go on as another user, in another root folder, without descriptors: who serves them
is proven all the same, and where it cannot be, the cause and what to do are said.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from interposing import BURN, compile_c, probe_path, prove, reasons_of, tool

from loam_lab.commands.bench import job_options
from loam_lab.commands.bench.job import Job
from loam_lab.model.protocol import ALLOCATOR_VARIABLES
from loam_lab.subjects.allocators import preloading, probe, registry
from loam_lab.subjects.programs.servers import POSTGRES

UNDER_TEST = "jemalloc"
NOBODY = 65534
POSTGRES_TOOLS = Path(POSTGRES)

# What a service does at its start, a letter each: c closes all descriptors but the first three, r changes the root folder
# to argv[2], u becomes nobody, w goes on in two forked workers, x executes argv[3] and what follows.  Then it works.
SERVICE = (
    "#define _GNU_SOURCE\n"
    + BURN
    + """
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>
static int workers(void) {
  int bad = 0;
  for (int i = 0; i < 2; ++i)
    if (fork() == 0) {
      burn(60);
      exit(0);
    }
  for (int i = 0, status; i < 2; ++i) bad |= wait(&status) < 0 || status != 0;
  return bad;
}
int main(int argc, char** argv) {
  int bad = 0, forks = 0;
  burn(20);
  for (const char* at = argv[1]; *at; ++at)
    if (*at == 'c')
      for (int i = 3; i < 4096; ++i) close(i);
    else if (*at == 'r')
      bad |= chroot(argv[2]) != 0 || chdir("/") != 0;
    else if (*at == 'u')
      bad |= setgroups(0, 0) != 0 || setgid(65534) != 0 || setuid(65534) != 0;
    else if (*at == 'w')
      forks = 1;
    else if (*at == 'x')
      return execv(argv[3], argv + 3);
  burn(60);
  return bad | (forks ? workers() : 0);
}
"""
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module")
def service(open_folder: Path) -> Path:
    return compile_c(open_folder, "service", SERVICE)


def records(service: Path, does: str, proof_file: Path, *more: object) -> list[dict[str, object]]:
    """What the processes of a service wrote to a file that root alone may open."""
    proof_file.touch(mode=0o600)
    variables = preloading.environment(registry.load(UNDER_TEST), probe_path(), proof_file)
    command = [str(service), does, "/var/empty" if not more else str(more[0]), *map(str, more[1:])]
    subprocess.run(command, env={"PATH": os.environ["PATH"], **variables}, check=True)
    return [json.loads(line) for line in proof_file.read_text().splitlines()]


@needs_root
@pytest.mark.parametrize("does", ["u", "cu", "uw", "cuw", "ru", "ruw"])
def test_a_service_that_gives_up_root_is_proven(service: Path, open_folder: Path, does: str) -> None:
    proof = prove(UNDER_TEST, service, does, open_folder)
    assert proof.status == "proven", proof.reasons
    assert len(proof.processes) == (3 if "w" in does else 1)
    assert all(process["status"] == "proven" for process in proof.processes), proof.processes


@needs_root
@pytest.mark.parametrize("does", ["u", "uw", "ru"])
def test_the_descriptor_alone_suffices(service: Path, tmp_path: Path, open_folder: Path, does: str) -> None:
    assert tmp_path.stat().st_mode & 0o077 == 0, "closed to others"
    written = records(service, does, tmp_path / "proof", open_folder)
    kinds = [record["kind"] for record in written]
    assert sorted(kinds) == ["exit"] * (3 if "w" in does else 1) + ["start"]
    assert {record["uid"] for record in written if record["kind"] == "exit"} == {NOBODY}


@needs_root
def test_a_program_that_another_user_executes_finds_the_descriptor(
    service: Path, tmp_path: Path, open_folder: Path
) -> None:
    written = records(service, "ux", tmp_path / "proof", open_folder, service, "")
    assert [(record["kind"], record["uid"]) for record in written] == [
        ("start", 0),
        ("start", NOBODY),
        ("exit", NOBODY),
    ]


@needs_root
@pytest.mark.parametrize("does", ["u", "cu"])
def test_a_service_executed_as_another_user_is_proven(service: Path, open_folder: Path, does: str) -> None:
    proof = prove(UNDER_TEST, service, f"{does}x", open_folder, service, "w")
    assert proof.status == "proven", proof.reasons


@needs_root
def test_where_it_is_impossible_the_cause_and_the_remedy_are_said(service: Path, open_folder: Path) -> None:
    proof = prove(UNDER_TEST, service, "cru", open_folder)
    assert proof.status == "unproven"
    assert "closed the probe's descriptor in a chroot or sandbox; let it end by itself" in reasons_of(proof)


@needs_root
def test_a_library_that_root_alone_can_read_is_copied(service: Path, tmp_path: Path, open_folder: Path) -> None:
    usual = registry.load(UNDER_TEST)
    hidden, hidden_probe = tmp_path / "libjemalloc.so.2", tmp_path / "libloam-probe.so"
    hidden.write_bytes(Path(str(usual.path)).read_bytes())
    hidden_probe.write_bytes(probe_path().read_bytes())
    allocator = dataclasses.replace(usual, path=str(hidden), libraries=(str(hidden),))
    with preloading.place() as proof_file:
        variables = preloading.environment(allocator, hidden_probe, proof_file)
        command = [str(service), "ux", str(open_folder), str(service), ""]
        subprocess.run(command, env={"PATH": os.environ["PATH"], **variables}, check=True)
        proof = probe.read(proof_file, allocator, 0.0)
    assert str(tmp_path) not in variables["LD_PRELOAD"]
    assert [process["status"] for process in proof.processes] == ["proven"] * 2, proof.reasons


def test_a_place_is_private(tmp_path: Path) -> None:
    with preloading.place(tmp_path) as file, preloading.place(tmp_path) as other:
        mode, folder_mode = file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777
        assert (mode, folder_mode) == ((0o622, 0o711) if os.geteuid() == 0 else (0o600, 0o700))
        assert file.name != other.name and len(file.name) == len(other.name) == 32
    assert not list(tmp_path.iterdir())


def test_the_descriptor_of_another_file_is_left_alone(tmp_path: Path) -> None:
    """A program that closes all and uses the number for a file of its own finds no record in it."""
    program = compile_c(
        tmp_path, "reuses",
        """
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char** argv) {
  for (int i = 3; i < 4096; ++i) close(i);
  return dup2(open(argv[1], O_CREAT | O_WRONLY, 0600), 1000) != 1000;
}
""",
    )  # fmt: skip
    variables = preloading.environment(registry.load(UNDER_TEST), probe_path(), tmp_path / "proof")
    subprocess.run([str(program), str(tmp_path / "own")], env=variables, check=True)
    assert (tmp_path / "own").read_bytes() == b""
    assert len((tmp_path / "proof").read_text().splitlines()) == 2


# ---- real services, as the driver of bench starts them ----

MEMCACHED_LOAD = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    stream = peer.makefile("rwb")
    for key in range(3000):
        stream.write(b"set key%d 0 0 %d\\r\\n%s\\r\\n" % (key, key % 900 + 1, b"x" * (key % 900 + 1)))
        stream.flush()
        assert stream.readline() == b"STORED\\r\\n"
print("3000.0 requests per second")
"""
WEB_LOAD = """
import sys, urllib.request
for _ in range(200):
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/nginx.conf") as answer:
        assert b"www-data" in answer.read()
print("200.0 requests per second")
"""
NGINX = """
user www-data;
worker_processes 2;
daemon off;
pid {open_folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {open_folder}/body; proxy_temp_path {open_folder}/proxy; fastcgi_temp_path {open_folder}/fastcgi;
  uwsgi_temp_path {open_folder}/uwsgi; scgi_temp_path {open_folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {open_folder}; }}
}}
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def driven(server: str, load: str, port: int, allocator: str = UNDER_TEST) -> probe.Proof:
    """The proof of one run of a server by the driver of bench."""
    job = job_options.what(
        (), server=server, ready=str(port), load=load, metric=r"([\d.]+) requests per second", better=None, commands=(),
        command_file=None, prepare="", cleanup="", checks=(), warmup=0, limits=(), timeout_s=60.0,
    )  # fmt: skip
    assert isinstance(job, Job)
    loaded = registry.load(allocator)
    with preloading.place() as proof_file:
        variables = preloading.environment(loaded, probe_path(), proof_file)
        environment = {**os.environ, ALLOCATOR_VARIABLES: json.dumps(variables)}
        command = [sys.executable, "-P", "-m", "loam_lab.commands.bench.driver", job.as_json(), "server"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        used = next(line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "process")
        return probe.read(proof_file, loaded, used["user_s"] + used["system_s"])


def script(open_folder: Path, name: str, text: str) -> Path:
    file = open_folder / name
    file.write_text(text)
    return file


@needs_root
@pytest.mark.skipif(not tool("memcached"), reason="memcached is not installed")
@pytest.mark.parametrize("allocator", ["glibc", UNDER_TEST])
def test_memcached_as_nobody(tmp_path: Path, port: int, allocator: str) -> None:
    load = script(tmp_path, "load.py", MEMCACHED_LOAD)
    server = f"{tool('memcached')} -u nobody -l 127.0.0.1 -p {port} -t 2"
    proof = driven(server, f"{sys.executable} {load} {port}", port, allocator)
    assert proof.status == "proven", proof.reasons


@needs_root
@pytest.mark.skipif(not tool("nginx"), reason="nginx is not installed")
def test_nginx_whose_workers_are_another_user(open_folder: Path, port: int) -> None:
    configuration = script(open_folder, "nginx.conf", NGINX.format(open_folder=open_folder, port=port))
    load = script(open_folder, "load.py", WEB_LOAD)
    proof = driven(f"{tool('nginx')} -c {configuration} -p {open_folder}", f"{sys.executable} {load} {port}", port)
    assert proof.status == "proven", proof.reasons
    assert len(proof.processes) >= 3 and all(process["status"] == "proven" for process in proof.processes)


@needs_root
@pytest.mark.skipif(not (POSTGRES_TOOLS / "initdb").exists(), reason="postgresql is not installed")
@pytest.mark.skipif(not tool("setpriv"), reason="needs setpriv")
def test_postgres_by_setpriv(open_folder: Path, port: int) -> None:
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    data = open_folder / "data"
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    made = [*as_nobody, str(POSTGRES_TOOLS / "initdb"), "-D", str(data), "-A", "trust", "-U", "loam", "--no-sync"]
    subprocess.run(made, cwd="/", capture_output=True, check=True)
    server = f"{POSTGRES_TOOLS}/postgres -D {data} -p {port} -h 127.0.0.1 -c unix_socket_directories= -c fsync=off"
    lines = "".join(f"select count(*) from generate_series(1, {n}) x group by x % 97;" for n in range(1000, 1200))
    sql = script(open_folder, "load.sql", f"{lines}\n\\echo 200.0 requests per second\n")
    load = f"psql -h 127.0.0.1 -p {port} -U loam -q -f {sql} postgres"
    proof = driven(f"{' '.join(as_nobody)} {server}", load, port)
    assert proof.status == "proven", proof.reasons
