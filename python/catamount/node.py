"""What a node of a Ray cluster does: says what it has, runs the program, serves a prover, and says
that it is alive.

Sent to nodes by value, so that they need the program and Ray, but not this package.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator

BUSY = 0.01
"""The least share of a processor that something at work has. A server that it waits for may take
all of them, but then it says a line now and then.
"""

CARDS = "CUDA_VISIBLE_DEVICES"

GRACE = 6.0
"""How long a process of Ray's outlives its node, in seconds, and a little more."""

UNFINISHED = 3
"""The program's exit status where a task is done but for searches that ended in errors."""

Parcel = tuple[str, str, Any]
"""A file that travels: its path, the hash of its content, and a reference to that."""


def digest(content: bytes) -> str:
    """The hash that a file is known by."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def sound(path: str, content: bytes, known: str) -> bytes:
    """A file's content, if it is what was sent."""
    if digest(content) != known:
        raise OSError(f"{path} came damaged: {len(content)} bytes that are not what was sent")
    return content


def beside() -> str | None:
    """The `catamount` command that came with this package, beside its Python."""
    return shutil.which("catamount", path=os.path.dirname(sys.executable))


def installed() -> str | None:
    """The command beside this Python, on the PATH or not; else one that is."""
    return beside() or shutil.which("catamount")


def program_here(program: list[str]) -> list[str]:
    """The program on this node: where it is on the first one, or the one installed here."""
    if os.access(program[0], os.X_OK):
        return program
    found = installed()
    if found is None:
        raise FileNotFoundError(
            f"there is no catamount here, neither {program[0]} nor on the PATH; install the same "
            "version"
        )
    return [found]


def probe(program: list[str], arguments: list[str], here: str) -> dict[str, Any]:
    """What this node has, in the program's own words."""
    try:
        if not os.path.isdir(here):
            return {
                "Err": f"there is no folder {here}, which the experiment's paths are relative to"
            }
        # Ray hides the cards from a task that asks for none.
        environment = {
            key: value for key, value in os.environ.items() if (key, value) != (CARDS, "")
        }
        asked = subprocess.run(
            [*program_here(program), *arguments],
            cwd=here,
            capture_output=True,
            text=True,
            env=environment,
        )
        if asked.returncode != 0:
            said = asked.stderr.strip()
            return {
                "Err": f"its catamount does not answer ({said[-500:]}); install the same version"
            }
        return {"Ok": json.loads(asked.stdout)}
    except (OSError, ValueError) as error:
        return {"Err": str(error)}


def work(
    program: list[str],
    arguments: list[str],
    here: str,
    folder: str,
    cpus: float,
    files: list[Parcel] | None,
    outputs: list[str],
    beat: float,
    provers: list[Any],
    asked: list[str],
    known: list[str],
) -> Iterator[dict[str, Any]]:
    """Does a task on this node: in the study's folder, or with files that came along in one of its
    own; with provers elsewhere, if there are any.

    Says where it runs at once, every `beat` seconds whether it is at work, and at last how it
    ended. On a node that is not among the known ones it only says what that has, as `asked`.
    """
    import ray

    begun = time.monotonic()
    node = ray.get_runtime_context().get_node_id()
    place = {"node": f"{socket.gethostname()} ({node[:8]})", "node_id": node}
    if node not in known:
        yield {"stranger": probe(program, asked, here), **place}
        return
    yield {"alive": True, "processes": [os.getpid()], **place}
    own = directory = None
    try:
        if provers:
            directory = Directory(provers)
            arguments = [*arguments, "--provers", directory.path]
        if files is not None:
            own = tempfile.mkdtemp(prefix="catamount-")
            contents = ray.get([reference for _, _, reference in files])
            for (path, known, _), content in zip(files, contents):
                put(own, path, sound(path, content, known))
            arguments = [own if argument == folder else argument for argument in arguments]
        # Were this process to end, so would the program's input, and it stops.
        process = subprocess.Popen(
            [*program_here(program), *arguments],
            cwd=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "RAYON_NUM_THREADS": str(max(1, int(cpus)))},
        )
        said: list[str] = []
        printed: list[str] = []
        listeners = [
            threading.Thread(target=lambda: said.extend(process.stderr), daemon=True),
            threading.Thread(target=lambda: printed.extend(process.stdout), daemon=True),
        ]
        for listener in listeners:
            listener.start()
        yield {"alive": True, "processes": [process.pid, os.getpid()], **place}
        spent, lines = 0.0, 0
        while True:
            try:
                code = process.wait(timeout=beat)
                break
            except subprocess.TimeoutExpired:
                before, spoken = spent, lines
                spent, lines = effort(process.pid), len(said)
                alive = lines > spoken or spent - before >= BUSY * beat
                yield {"alive": alive, "processes": [process.pid, os.getpid()], **place}
        for listener in listeners:
            listener.join()
        process.stdin.close()
        made = below(own, outputs) if own is not None and code in (0, UNFINISHED) else {}
    finally:
        if directory is not None:
            directory.close()
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    seconds = time.monotonic() - begun
    if code == -signal.SIGKILL:
        # It may have gone down with its node. Then nobody is left to say so in a moment, and the
        # task is done again elsewhere.
        time.sleep(GRACE)
    words = "".join(said)[-2000:]
    yield {
        "code": code,
        "seconds": seconds,
        "printed": "".join(printed),
        "said": words,
        "made": made,
        **place,
    }


class Prover:
    """A prover worker: the program's own service on this node. They end together, and Ray starts
    both anew elsewhere.
    """

    def __init__(self, program: list[str], arguments: list[str], here: str) -> None:
        import ray

        self.node = node = ray.get_runtime_context().get_node_id()
        host = ray.util.get_node_ip_address()
        listen = f"[{host}]:0" if ":" in host else f"{host}:0"
        self.place = f"{socket.gethostname()} ({node[:8]})"
        self.said = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [*program_here(program), *arguments, "--listen", listen, "--tied"],
            cwd=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env={**os.environ, "RAYON_NUM_THREADS": "1"},
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening on http://"):
            self.process.kill()
            self.said.seek(0)
            raise RuntimeError(f"{self.place}: no prover: {self.said.read().strip()[-500:]}")
        self.address = line.strip().removeprefix("listening on http://")
        threading.Thread(target=self.end_with_it, daemon=True).start()

    def end_with_it(self) -> None:
        """Ends this process when the service does."""
        self.process.wait()
        os._exit(1)

    def where(self) -> str:
        """Its address."""
        return self.address

    def use(self) -> dict[str, Any]:
        """How busy it has been."""
        from urllib.request import ProxyHandler, build_opener

        with build_opener(ProxyHandler({})).open(
            f"http://{self.address}/status", timeout=5
        ) as answer:
            said = json.load(answer)
        return {
            "place": self.place,
            "address": self.address,
            "node_id": self.node,
            "processes": [self.process.pid, os.getpid()],
            **{key: said[key] for key in ("busy", "seconds", "answered")},
        }


class Directory:
    """A file with the addresses of provers, kept up to date as Ray replaces them: what is asked is
    an actor, wherever it is.
    """

    LOOK = 0.5
    """Seconds between two looks, and for which an answer is waited for."""

    def __init__(self, provers: list[Any]) -> None:
        self.folder = tempfile.mkdtemp(prefix="catamount-provers-")
        self.path = os.path.join(self.folder, "addresses")
        self.provers = dict(enumerate(provers))
        self.asked: dict[Any, int] = {}
        self.known: dict[int, str] = {}
        self.closed = threading.Event()
        self.look()
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.thread.start()

    def look(self) -> None:
        """Asks everyone who has not been asked; one that does not answer is being replaced."""
        import ray

        for number, prover in self.provers.items():
            if number not in self.asked.values():
                self.asked[prover.where.remote()] = number
        ready, _ = ray.wait(list(self.asked), num_returns=len(self.asked), timeout=self.LOOK)
        known = {}
        for reference in ready:
            number = self.asked.pop(reference)
            try:
                known[number] = ray.get(reference)
            except ray.exceptions.RayError:
                continue
        if known != self.known or not os.path.exists(self.path):
            self.known = known
            put(self.folder, "addresses", "\n".join(known.values()).encode())

    def keep(self) -> None:
        """Looks until it is closed."""
        while not self.closed.wait(self.LOOK):
            self.look()

    def close(self) -> None:
        """Takes the file away."""
        self.closed.set()
        self.thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)


def effort(process: int) -> float:
    """Seconds of processor time that a process and those it started have had."""
    import psutil  # Ray brings it along.

    total = 0.0
    try:
        first = psutil.Process(process)
        for one in [first, *first.children(recursive=True)]:
            times = one.cpu_times()
            total += times.user + times.system
    except psutil.Error:
        pass  # It has just ended.
    return total


def end(processes: list[int]) -> None:
    """Ends processes that do not answer, the program before whoever watches it."""
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def put(folder: str, path: str, content: bytes) -> None:
    """Writes a file, whole or not at all."""
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    beside = f"{target}.{os.getpid()}.unfinished"
    try:
        with open(beside, "wb") as file:
            file.write(content)
        os.replace(beside, target)
    except OSError:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def names(folder: str, paths: list[str]) -> list[str]:
    """The files at some paths of a folder, or below them, without locks and unfinished ones."""
    found = []
    for path in paths:
        whole = os.path.join(folder, path)
        if os.path.isfile(whole):
            found.append(path)
        for parent, _, files in os.walk(whole):
            found += [
                os.path.relpath(os.path.join(parent, file), folder)
                for file in files
                if not file.startswith(".")
            ]
    return found


def below(folder: str, paths: list[str]) -> dict[str, tuple[str, bytes]]:
    """The files at some paths of a folder, or below them, each with its hash."""
    found = {}
    for path in names(folder, paths):
        with open(os.path.join(folder, path), "rb") as file:
            content = file.read()
        found[path] = (digest(content), content)
    return found
