# SPDX-License-Identifier: Apache-2.0

"""A forward proxy: requests for plain HTTP, and tunnels (CONNECT) for anything else."""

import contextlib
import datetime
import http.client
import http.server
import ipaddress
import pathlib
import socket
import socketserver
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Address = tuple[str, int]

# Of one connection, not of what is sent on (RFC 9110, section 7.6.1).
_OWN = {"connection", "keep-alive", "proxy-connection", "transfer-encoding"}


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: "Proxy"

    def do_GET(self) -> None:
        if not self._is_refused():
            self._forward()

    def do_POST(self) -> None:
        self.do_GET()

    def do_CONNECT(self) -> None:
        if not self._is_refused():
            host, _, port = self.path.rpartition(":")
            with socket.create_connection(self.server.address(host, int(port))) as other:
                self.send_response(200)
                self.end_headers()
                pump(self.connection, other)

    def _is_refused(self) -> bool:
        self.close_connection = True
        self.server.requests.append(f"{self.command} {self.path}")
        if self.server.fault is not None:
            self.server.fault(self)
        return self.server.fault is not None

    def _forward(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        target = urllib.parse.urlunsplit(("", "", url.path, url.query, ""))
        address = self.server.address(str(url.hostname), url.port or 80)
        with contextlib.closing(http.client.HTTPConnection(*address)) as connection:
            connection.request(self.command, target, body, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.read())

    def log_message(self, *_: object) -> None:
        """Nothing: the proxy remembers its requests."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Nothing: clients that hang up are part of the tests."""

    @property
    def port(self) -> int:
        port: int = self.server_address[1]
        return port


class Proxy(_Server):
    """A running proxy.

    :ivar requests: method and target of each request.
    :ivar hosts: addresses of hosts that the proxy alone can find.
    :ivar fault: what answers in the place of the proxy.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.hosts: dict[str, Address] = {}
        self.fault: Callable[[Handler], None] | None = None
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def address(self, host: str, port: int) -> Address:
        return self.hosts.get(host, (host, port))


class _Secure(_Server):
    """Terminates TLS for a port of this host."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with (
                    context.wrap_socket(self.request, server_side=True) as client,
                    socket.create_connection(("127.0.0.1", port)) as other,
                ):
                    pump(client, other)

        super().__init__(("127.0.0.1", 0), Connection)


def pump(one: socket.socket, other: socket.socket) -> None:
    """Forward the data of two connections in both directions, until both end."""
    back = threading.Thread(target=_copy, args=(other, one), daemon=True)
    back.start()
    _copy(one, other)
    back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def _running(server: _Server) -> Iterator[int]:
    """Serve in a thread, and yield the port."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.port
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def serving() -> Iterator[Proxy]:
    """Run a proxy."""
    proxy = Proxy()
    with _running(proxy):
        yield proxy


def certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Make a certificate of this host, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "certificate.pem", folder / "key.pem"


def secured(port: int, certificate: pathlib.Path, key: pathlib.Path) -> AbstractContextManager[int]:
    """Serve a port of this host by TLS; yields the port for TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return _running(_Secure(port, context))


class _Trickling(_Server):
    """Forwards answers of a port byte by byte, after their beginning."""

    def __init__(self, port: int, beginning: int) -> None:
        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", port)) as other:
                    threading.Thread(target=_copy, args=(self.request, other), daemon=True).start()
                    self._trickle(other)

            def _trickle(self, source: socket.socket) -> None:
                sent = 0
                with contextlib.suppress(OSError):
                    while data := source.recv(max(beginning - sent, 1)):
                        self.request.sendall(data)
                        sent += len(data)
                        threading.Event().wait(0.01 if sent >= beginning else 0)

        super().__init__(("127.0.0.1", 0), Connection)


def trickling(port: int, beginning: int) -> AbstractContextManager[int]:
    """Serve a port of this host very slowly, after some bytes; yields the slow port."""
    return _running(_Trickling(port, beginning))


class _Stalling(_Server):
    """Forwards connections to a port, until a client has sent many bytes on one."""

    def __init__(self, port: int, limit: int) -> None:
        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", port)) as other:
                    threading.Thread(target=_copy, args=(other, self.request), daemon=True).start()
                    sent = 0
                    while sent < limit and (data := self.request.recv(65536)):
                        other.sendall(data)
                        sent += len(data)
                    if sent >= limit:
                        threading.Event().wait(60)

        super().__init__(("127.0.0.1", 0), Connection)


def stalling(port: int, limit: int) -> AbstractContextManager[int]:
    """Serve a port of this host, until a connection has sent many bytes; yields the port."""
    return _running(_Stalling(port, limit))
