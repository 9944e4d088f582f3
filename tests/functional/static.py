# SPDX-License-Identifier: Apache-2.0

"""A web server of static files, with ranges and without, and with faults."""

import contextlib
import datetime
import functools
import hashlib
import http.server
import ipaddress
import pathlib
import re
import ssl
import threading
from collections.abc import Callable, Iterator

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


class Files(http.server.SimpleHTTPRequestHandler):
    """Python's own server of files: ``Last-Modified``, and no ranges."""

    server: "Server"

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        if not (self.server.fault and self.server.fault(self)):
            self.serve()

    def serve(self) -> None:
        super().do_GET()

    def copyfile(self, source: object, outputfile: object) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            super().copyfile(source, self)  # type: ignore[type-var, arg-type]

    def write(self, data: bytes) -> int:
        self.server.sent += len(data)
        return self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: the server remembers its requests."""


class Ranges(Files):
    """The same with ETags and ranges."""

    def serve(self) -> None:
        path = pathlib.Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        if self.headers["If-None-Match"] == tag:
            self.answer(304, b"", ETag=tag)
            return
        wanted = _RANGE.match(self.headers["Range"] or "")
        if not wanted:
            self.answer(200, data, ETag=tag)
            return
        first, last = wanted.groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        described = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        self.answer(206, data[start:end], ETag=tag, **described)

    def answer(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.write(data)


class Server(http.server.ThreadingHTTPServer):
    """A running server.

    :ivar requests: path and headers of each request.
    :ivar sent: bytes of files.
    :ivar fault: what answers a request in the place of the server; what
        returns false leaves it to the server.
    """

    daemon_threads = True

    def __init__(self, handler: type[Files], folder: pathlib.Path) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent = 0
        self.fault: Callable[[Files], object] | None = None
        super().__init__(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))

    @property
    def url(self) -> str:
        scheme = "https" if isinstance(self.socket, ssl.SSLSocket) else "http"
        return f"{scheme}://127.0.0.1:{self.server_port}"

    def secure(self, folder: pathlib.Path, mutual: bool = False) -> pathlib.Path:
        """Serve by HTTPS from now on; returns the certificate, signed by itself.

        :param mutual: whether a client has to show the same one.
        """
        certificate, key = _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if mutual:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        return certificate

    def handle_error(self, *_: object) -> None:
        """Nothing: clients that hang up are part of the tests."""

    @property
    def paths(self) -> list[str]:
        """The paths that have been asked for since this was asked the last time."""
        found = [path for path, _ in self.requests]
        self.requests.clear()
        return found


def _certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Make a key, and a certificate of this host for it."""
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


@contextlib.contextmanager
def serving(handler: type[Files], folder: pathlib.Path) -> Iterator[Server]:
    """Run a server."""
    with Server(handler, folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
