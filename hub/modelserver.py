"""Requests of real agents come in over loopback HTTP; scripted answers and a ledger go out."""

import argparse
import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from hub.scripts import SCRIPTS, Script, Usage
from hub.wire import Json, Wire, anthropic, chat, responses
from hub.wire.ledger import GoneError, Ledger, LedgerEntry
from hub.wire.play import Answer, choose, usage_of

HOST = "127.0.0.1"
_WIRES: Mapping[str, Wire] = {
    "/messages": anthropic,
    "/responses": responses,
    "/chat/completions": chat,
}
_MODELS = ("claude-opus-5-5", "gpt-5.2-codex", "deepseek-flash", "deepseek-v4-flash")
_NOT_FOUND: Json = {"error": {"type": "not_found_error", "message": "no such path"}}


class ModelServer:
    """A model server on 127.0.0.1 that plays scripts; use it as a context manager."""

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        port: int = 0,
        ledger_path: Path | None = None,
    ) -> None:
        """Add `scripts` to the built-in ones; write a JSON line for every finished request."""
        self.port = port
        self._scripts: Mapping[str, Script] = {**SCRIPTS, **(scripts or {})}
        self._ledger = Ledger(ledger_path)
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Listen; from now on the port is known."""
        listener = _Listener(self._ledger, self._scripts, self.port)
        self.port = listener.server_address[1]
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,), name="modelserver")
        thread.start()
        self._running.callback(listener.server_close)
        self._running.callback(listener.hang_up)
        self._running.callback(thread.join)
        self._running.callback(listener.shutdown)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop: streams that are open end, and are in the ledger as aborted."""
        self._running.close()

    @property
    def url(self) -> str:
        """The base URL, without a version path."""
        return f"http://{HOST}:{self.port}"

    @property
    def ledger(self) -> list[LedgerEntry]:
        """A copy of every entry so far, in order of arrival."""
        return self._ledger.entries()

    def wait(
        self, predicate: Callable[[Sequence[LedgerEntry]], object], timeout: float = 30.0
    ) -> list[LedgerEntry]:
        """Wait until the ledger satisfies `predicate` and return it; else `TimeoutError`."""
        return self._ledger.wait(predicate, timeout)

    def holding(self, gate: str, timeout: float = 30.0) -> LedgerEntry:
        """Wait until a request stands at a gate and return its entry; else `TimeoutError`."""
        return self._ledger.holding(gate, timeout)

    def release(self, gate: str) -> None:
        """Open a gate, for those who wait and for those who come later."""
        self._ledger.release(gate)


class _Listener(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, ledger: Ledger, scripts: Mapping[str, Script], port: int) -> None:
        self.ledger = ledger
        self.scripts = scripts
        self.connections: set[socket.socket] = set()
        super().__init__((HOST, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the base's look-up of the host's name."""
        socket_address = self.server_address
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(socket_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def hang_up(self) -> None:
        """End every answer and every connection that still is open."""
        self.ledger.stop()
        for connection in tuple(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """One connection: reads requests, and is the client that answers go out to."""

    protocol_version = "HTTP/1.1"
    connection: socket.socket

    @property
    def _listener(self) -> _Listener:
        return cast("_Listener", self.server)

    def setup(self) -> None:
        super().setup()
        self._listener.connections.add(self.connection)

    def finish(self) -> None:
        self._listener.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing on stderr: the ledger is the log."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._answered(None, self._get)

    def do_POST(self) -> None:
        wire = next((wire for end, wire in _WIRES.items() if end in self._path), None)
        self._answered(wire, self._post)

    @property
    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _answered(
        self, wire: Wire | None, answer: Callable[[LedgerEntry, Wire | None], None]
    ) -> None:
        """Keep the ledger's entry of one request, however its answer ends."""
        ledger = self._listener.ledger
        entry = ledger.arrived(wire.PROTOCOL if wire else "", self._path)
        try:
            answer(entry, wire)
        except (GoneError, ConnectionError):
            ledger.ending(entry, "aborted")
            self.close_connection = True
        finally:
            ledger.finished(entry)

    def _get(self, entry: LedgerEntry, _wire: Wire | None) -> None:
        if not entry.path.endswith("/models"):
            self._whole(entry, 404, _NOT_FOUND)
            return
        listed = [{"id": model, "object": "model", "type": "model"} for model in _MODELS]
        self._whole(entry, 200, {"object": "list", "data": listed, "models": []})

    def _post(self, entry: LedgerEntry, wire: Wire | None) -> None:
        body = self._body()
        if wire is None:
            self._whole(entry, 404, _NOT_FOUND)
        elif body is None:
            error = wire.error(400, "", "the body is not a JSON object", entry.request_id)
            self._whole(entry, 400, error)
        elif entry.path.endswith("/count_tokens"):
            self._whole(entry, 200, {"input_tokens": 100})
        elif entry.path.endswith("/compact"):
            usage = usage_of(entry.n)
            self._whole(entry, 200, responses.compaction(usage), usage)
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = wire.read(body, headers)
            with self._listener.ledger.changing():
                step = choose(request, self._listener.scripts, entry)
            Answer(self, self._listener.ledger, entry, wire, request).give(step)

    def _whole(
        self, entry: LedgerEntry, status: int, body: Json, usage: Usage | None = None
    ) -> None:
        """Answer without a script."""
        with self._listener.ledger.changing():
            entry.status = status
        self._listener.ledger.ending(entry, "complete" if status == 200 else "error", usage)
        self.document(entry, status, body)

    def _body(self) -> Json | None:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            data = b"".join(self._chunks())
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            if self.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            document: object = json.loads(data)
        except (ValueError, OSError):
            return None
        return cast("Json", document) if isinstance(document, dict) else None

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def document(
        self, entry: LedgerEntry, status: int, body: Json, retry_after: int | None = None
    ) -> None:
        """Send one JSON document and its headers."""
        data = json.dumps(body).encode()
        self._head(entry, status, "application/json")
        self.send_header("content-length", str(len(data)))
        if retry_after is not None:
            self.send_header("retry-after", str(retry_after))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, entry: LedgerEntry) -> None:
        """Send the headers of an event stream, which ends with its connection."""
        self._head(entry, 200, "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()

    def _head(self, entry: LedgerEntry, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("request-id", entry.request_id)
        self.send_header("x-request-id", entry.request_id)

    def send(self, data: bytes) -> None:
        """Send a part of the stream."""
        self.wfile.write(data)

    def cut(self) -> None:
        """Close the connection at once."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def alive(self) -> bool:
        """Whether the client is still there: a look at the socket that takes nothing from it."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m hub.modelserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--ledger", type=Path, help="a file for one JSON line a request")
    options = parser.parse_args()
    with ModelServer(port=options.port, ledger_path=options.ledger) as server:
        print(server.url, flush=True)  # noqa: T201 - the one thing a caller needs
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
