"""What a launcher tells a process: its rank, how many there are, and how they find each other."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from typing import Any, Callable, cast

from .errors import ArgumentError, GodwitError

WAIT = 60.0  # seconds for the other ranks
_TAKEN = "GODWIT_TAKEN"  # a variable by which children know which process has the place that the launcher's tell


class TLS:
    """Files (PEM) by which the ranks of a run prove who they are, and encrypt: of this rank's certificate and key, and of the authority that signed all.

    Certificates carry the addresses of their ranks, or all the same ``name``. They are good for clients and servers.
    """

    def __init__(self, cert: str, key: str, ca: str, name: str = "") -> None:
        self.cert, self.key, self.ca, self.name = os.fspath(cert), os.fspath(key), os.fspath(ca), name

    def __repr__(self) -> str:
        return f"TLS({self.cert!r}, {self.key!r}, {self.ca!r}{', ' + repr(self.name) if self.name else ''})"


class Launch:
    """A process's place in a run of several."""

    etcd: tuple[str, ...] = ()  # by which the ranks meet; empty: rank 0 coordinates the run
    tls: TLS | None = None

    place = ""  # which rank of which run, where the launcher's variables tell it

    formed = 0  # groups of tables of this process: all ranks form the same, in the same order

    def __init__(self, rank: int, world: int, run: str, host: str, port: int, token: str, store: Any, environment: Any) -> None:
        self.rank, self.world, self.run = rank, world, run
        self.host = f"[{host}]" if ":" in host and not host.startswith("[") else host  # of IPv6, as a port follows
        self.listen, self.advertise = environment.get("GODWIT_LISTEN", ""), environment.get("GODWIT_ADVERTISE", "")
        self.store = store  # by which rank 0 tells where it coordinates the run; None: at ports that all ranks know,
        self.port, self.token = port, token  # … from this one on, and the token

    def take(self) -> None:
        """Tells processes that this one starts that its place is taken."""
        if self.place:
            os.environ[_TAKEN] = f"{os.getpid()} {self.place}"

    @staticmethod
    def number() -> int:
        """Returns the number of the next group, which no group of this process had."""
        Launch.formed += 1
        return Launch.formed - 1

    def member(self, group: int, complete: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Returns the configuration by which a group of tables meets those of the other ranks. While it waits for rank 0, it calls complete, which may raise."""
        serve = self.rank == 0 and not self.etcd
        if self.etcd:
            told: dict[str, Any] = {"etcd": list(self.etcd), "token": self.token}
        elif self.store is None:
            told = {"coordinator": f"{self.host}:{self.port + group}", "token": self.token}
        else:
            told = {"coordinator": f"{self.host}:0", "token": secrets.token_hex(16)} if serve else self._told(group, complete)
        if self.tls is not None:
            told["tls"] = {"cert": self.tls.cert, "key": self.tls.key, "ca": self.tls.ca, "name": self.tls.name}
        return {"run": f"{self.run}-{group}", "rank": self.rank, "serve": serve, "listen": self._beside(self.listen, group), "advertise": self._beside(self.advertise, group), "join_ms": int(WAIT * 1000), **told}

    @staticmethod
    def _beside(address: str, group: int) -> str:
        """Returns an address for a group: each has a port of its own, after that of the group before, if there is one."""
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdigit() or address.endswith("]"):
            return address
        return f"{host}:{int(port) + group if int(port) else 0}"

    def _key(self, group: int) -> str:
        return f"godwit/{self.run}/{group}"

    def tell(self, group: int, address: str, token: str) -> None:
        """Tells the other ranks where rank 0 coordinates the run."""
        if self.store is not None and not self.etcd:
            self.store.set(self._key(group), json.dumps({"coordinator": address, "token": token}))

    def _told(self, group: int, complete: Callable[[], None]) -> dict[str, str]:
        end = time.monotonic() + WAIT
        while not self.store.check([self._key(group)]):  # in turns, so that interrupts are noticed
            if time.monotonic() > end:
                raise GodwitError(f"rank {self.rank}: rank 0 has not told within {WAIT:.0f} s where it coordinates the run: do all ranks use the same tables, in the same order?")
            complete()
            time.sleep(0.02)
        told: dict[str, str] = json.loads(self.store.get(self._key(group)))
        return told


def find(environment: Any = os.environ) -> Launch | None:
    """Returns what torchrun, Slurm or somebody else has told this process; None if it is a run of one process."""
    given = environment if environment.get("WORLD_SIZE") else {**_slurm(environment), **environment}
    world = _number(given, "WORLD_SIZE", 1)
    if world <= 1:
        return None
    rank = _number(given, "RANK", -1)
    host, port = given.get("MASTER_ADDR"), _number(given, "MASTER_PORT", 0)
    if not 0 <= rank < world or not host or not 0 < port < 1 << 16:
        raise ArgumentError(f"WORLD_SIZE={world} tells of several processes, and RANK, MASTER_ADDR and MASTER_PORT do not tell which this is and where they meet")
    run = _run(given)
    place = f"rank {rank} of {world} of the run {run} at {host}:{port}"
    pid, _, taken = given.get(_TAKEN, "").partition(" ")
    if taken == place and pid != str(os.getpid()):
        raise ArgumentError(
            f"process {os.getpid()} was started by process {pid}, or by one of its children, which is {place}, and has its variables: read rows in process {pid}, "
            "or start this one without WORLD_SIZE and RANK (those of Slurm), and it is a run by itself"
        )
    store = None
    if given.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        import torch.distributed as dist

        store = cast(Any, dist).TCPStore(host, port, world, False)
    token = given.get("GODWIT_TOKEN") or hashlib.sha256(f"godwit {run}".encode()).hexdigest()
    launch = Launch(rank, world, run, host, port + 1, token, store, given)
    launch.place = place
    return launch


def joining(address: Any, rank: int | None, world: int | None, run: str, environment: Any = os.environ) -> Launch:
    """Returns the place of a process whose run meets by an etcd: what a launcher has told, unless it is given."""
    etcd = tuple([address] if isinstance(address, str) else address)
    if not etcd or not all(isinstance(x, str) and x for x in etcd):
        raise ArgumentError(f"address={address!r}, want the etcd's host:port, http://host:port or https://host:port, or a list of these")
    given = environment if environment.get("WORLD_SIZE") else {**_slurm(environment), **environment}
    world = _number(given, "WORLD_SIZE", 0) if world is None else world
    rank = _number(given, "RANK", -1) if rank is None else rank
    if isinstance(rank, bool) or isinstance(world, bool) or not isinstance(rank, int) or not isinstance(world, int) or not 0 <= rank < world <= 1024:
        raise ArgumentError(f"rank={rank!r} of world={world!r}: give both, from 0 and up to 1024, or RANK and WORLD_SIZE as launchers do")
    launch = Launch(rank, world, run or _run(given), "", 0, given.get("GODWIT_TOKEN", ""), None, given)
    launch.etcd = etcd
    return launch


def _run(given: Any) -> str:
    """Returns the name of the run, which a store of torchrun's agent knows after a restart, too."""
    run = "".join(c if c.isalnum() and c.isascii() or c in "._-" else "-" for c in given.get("TORCHELASTIC_RUN_ID", "run"))
    return f"{run[:80]}-{given.get('TORCHELASTIC_RESTART_COUNT', '0')}"


def _slurm(environment: Any) -> dict[str, str]:
    """Returns what the variables of a task that srun started mean in torchrun's. A batch script by itself is one process."""
    tasks, rank = environment.get("SLURM_STEP_NUM_TASKS"), environment.get("SLURM_PROCID")
    hosts = environment.get("SLURM_STEP_NODELIST", "")
    if not tasks or not rank:
        return {}
    job, step = _number(environment, "SLURM_JOB_ID", 0), _number(environment, "SLURM_STEP_ID", 0)
    return {
        "WORLD_SIZE": tasks,
        "RANK": rank,
        "MASTER_ADDR": first_host(hosts),
        "MASTER_PORT": str(20000 + (job * 64 + step * 8) % 10000),
        "TORCHELASTIC_RUN_ID": f"slurm-{job}.{step}",
        "TORCHELASTIC_RESTART_COUNT": environment.get("SLURM_RESTART_COUNT", "0"),
    }


def first_host(hosts: str) -> str:
    """Returns the first host of a list as Slurm writes it.

    >>> first_host("gpu[03-07,9],login"), first_host("a1,b2"), first_host("n[1,4]-ib")
    ('gpu03', 'a1', 'n1-ib')
    """
    found = re.match(r"([^\[,]*)(?:\[([^\],-]*)[^\]]*\])?([^,]*)", hosts)
    return "".join(part or "" for part in found.groups()) if found else ""


def _number(environment: Any, name: str, default: int) -> int:
    text = environment.get(name)
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"{name}={text!r}, want a whole number") from None


def address(call: Callable[..., int], check: Callable[[int], int], id: int) -> str:
    """Returns the address of the coordinator that this process serves."""
    import ctypes

    length, text = ctypes.c_size_t(), ctypes.create_string_buffer(512)
    check(call(id, text, 512, ctypes.addressof(length)))
    return text.raw[: length.value].decode()
