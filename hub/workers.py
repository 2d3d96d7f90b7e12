"""Sessions to read in; what their files say out, read by several processes where it is worth it.

Workers are forked: they have the adapters and price sheets already, and send msgpack through a
pipe. A worker that dies costs time, never a session: what it did not send is read here.
"""

import contextlib
import fcntl
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from struct import Struct as Format
from typing import Final

import msgspec

from hub.decode import packed
from hub.reading import Plan, SessionRead

WORTH: Final = 24 << 20
"""Bytes to read for which a second process is started."""
PIPE: Final = 1 << 20
"""Bytes that a worker may be ahead."""
MANY: Final = 300
"""Sessions for which it is, however small they are."""
_LENGTH: Final = Format("<I")
_decoder = msgspec.msgpack.Decoder(SessionRead)


def read_all(
    plans: Sequence[Plan], how: Callable[[Plan], SessionRead], workers: int
) -> Iterator[SessionRead]:
    """What every plan's files say, in any order.

    Args:
        plans: the sessions.
        how: reads one of them.
        workers: processes that may work; 1 = only this one.
    """
    size = sum(plan.size for plan in plans)
    if workers < 2 or (size < WORTH and len(plans) < MANY):
        yield from map(how, plans)
        return
    hands = _deal(plans, workers)
    left = {plan.key: plan for plan in plans}
    pipes: list[tuple[int, int]] = []
    try:
        with contextlib.suppress(OSError):  # no process or pipe is left: this one reads alone
            for hand in filter(None, hands[1:]):
                pipes.append(_fork(hand, how, pipes))
        yield from _gather(hands[0], how, pipes, left)
    finally:
        for pid, descriptor in pipes:
            os.close(descriptor)
            os.kill(pid, signal.SIGKILL)  # only reads; it may wait for a pipe that nobody empties
        for pid, _ in pipes:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    yield from map(how, list(left.values()))


def _deal(plans: Sequence[Plan], workers: int) -> list[list[Plan]]:
    """About equal bytes for everybody, large sessions first."""
    hands: list[list[Plan]] = [[] for _ in range(workers)]
    # this process also keeps what the others read
    loads = [sum(plan.size for plan in plans) // (4 * workers), *[0] * (workers - 1)]
    for plan in sorted(plans, key=lambda plan: plan.size, reverse=True):
        place = loads.index(min(loads))
        hands[place].append(plan)
        loads[place] += plan.size + 20_000
    return hands


def _fork(
    plans: Sequence[Plan], how: Callable[[Plan], SessionRead], others: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """A process that reads these; its id and the pipe it sends through."""
    reads, writes = os.pipe()
    with contextlib.suppress(OSError, AttributeError):  # Linux; a small pipe only costs time
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, PIPE)
    try:
        pid = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    if pid:
        os.close(writes)
        return pid, reads
    code = 1
    try:
        for descriptor in (reads, *(one for _, one in others)):
            os.close(descriptor)
        with os.fdopen(writes, "wb", buffering=1 << 16) as stream:
            for plan in plans:
                body = packed(how(plan))
                stream.write(_LENGTH.pack(len(body)))
                stream.write(body)
        code = 0
    finally:
        os._exit(code)  # nothing of the parent's is cleaned up twice


def _gather(
    own: Sequence[Plan],
    how: Callable[[Plan], SessionRead],
    pipes: Sequence[tuple[int, int]],
    left: dict[str, Plan],
) -> Iterator[SessionRead]:
    """Reads its own hand, and what the others send in between and after."""
    buffers = {descriptor: bytearray() for _, descriptor in pipes}
    for plan in own:
        left.pop(plan.key, None)
        yield how(plan)
        yield from _received(buffers, left, 0.0)
    while buffers:
        yield from _received(buffers, left, None)


def _received(
    buffers: dict[int, bytearray], left: dict[str, Plan], wait: float | None
) -> Iterator[SessionRead]:
    """What has arrived; pipes that ended are let go."""
    if not buffers:
        return
    ready, _, _ = select.select(list(buffers), [], [], wait)
    for descriptor in ready:
        piece = os.read(descriptor, 1 << 20)
        if not piece:
            del buffers[descriptor]
            continue
        buffer = buffers[descriptor]
        buffer += piece
        place = 0
        while len(buffer) - place >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, place)
            if len(buffer) - place - _LENGTH.size < length:
                break
            start = place + _LENGTH.size
            place = start + length
            try:
                one = _decoder.decode(bytes(buffer[start:place]))
            except msgspec.MsgspecError:
                continue  # it is read here, like what never came
            if left.pop(one.key, None) is not None:
                yield one
        del buffer[:place]
