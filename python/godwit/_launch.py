"""What a launcher tells a process: its rank, how many there are, and how they find each other."""

from __future__ import annotations

import json
import os
import secrets
import time
from typing import Any, Callable

from .errors import ArgumentError, GodwitError

WAIT = 60.0  # seconds for the other ranks


class Launch:
    """A process's place in a run of several."""

    formed = 0  # groups of tables of this process: all ranks form the same, in the same order

    def __init__(self, rank: int, world: int, run: str, host: str, store: Any, advertise: str) -> None:
        self.rank, self.world, self.run, self.host, self.store, self.advertise = rank, world, run, host, store, advertise

    @staticmethod
    def number() -> int:
        """Returns the number of the next group, which no group of this process had."""
        Launch.formed += 1
        return Launch.formed - 1

    def member(self, group: int) -> dict[str, Any]:
        """Returns the configuration by which a group of tables meets those of the other ranks."""
        serve = self.rank == 0
        told = {"coordinator": f"{self.host}:0", "token": secrets.token_hex(16)} if serve else self._told(group)
        return {"run": f"{self.run}-{group}", "rank": self.rank, "serve": serve, "advertise": self.advertise, "join_ms": int(WAIT * 1000), **told}

    def _key(self, group: int) -> str:
        return f"godwit/{self.run}/{group}"

    def tell(self, group: int, address: str, token: str) -> None:
        """Tells the other ranks where rank 0 coordinates the run."""
        self.store.set(self._key(group), json.dumps({"coordinator": address, "token": token}))

    def _told(self, group: int) -> dict[str, str]:
        end = time.monotonic() + WAIT
        while not self.store.check([self._key(group)]):  # in turns, so that interrupts are noticed
            if time.monotonic() > end:
                raise GodwitError(f"rank {self.rank}: rank 0 has not told within {WAIT:.0f} s where it coordinates the run: do all ranks use the same tables, in the same order?")
            time.sleep(0.02)
        told: dict[str, str] = json.loads(self.store.get(self._key(group)))
        return told


def find(environment: Any = os.environ) -> Launch | None:
    """Returns what torchrun has told this process; None if it is a run of one process."""
    world = _number(environment, "WORLD_SIZE", 1)
    if world <= 1:
        return None
    rank = _number(environment, "RANK", -1)
    host, port = environment.get("MASTER_ADDR"), _number(environment, "MASTER_PORT", 0)
    if not 0 <= rank < world or not host or not port:
        raise ArgumentError(f"WORLD_SIZE={world} tells of several processes, and RANK, MASTER_ADDR and MASTER_PORT do not tell which this is and where they meet")
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        raise ArgumentError("several processes are started by torchrun at present: its agent keeps a store by which they find each other. Unset WORLD_SIZE for a cluster of one process")
    from torch.distributed import TCPStore

    run = "".join(c if c.isalnum() and c.isascii() or c in "._-" else "-" for c in environment.get("TORCHELASTIC_RUN_ID", "run"))
    restart = environment.get("TORCHELASTIC_RESTART_COUNT", "0")  # the store outlives a restart
    return Launch(rank, world, f"{run[:80]}-{restart}", host, TCPStore(host, port, world, False), environment.get("GODWIT_ADVERTISE", ""))


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
