# SPDX-License-Identifier: Apache-2.0

"""Bundles by URL: digests, TLS, redirections, credentials, sizes."""

import dataclasses
import hashlib
import http.server
import json
import os
import pathlib
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from glare_murano.package import GlareMuranoError
from loader.publishing import bundles
from loader.publishing.bundles import BundleError
from tests import packages, processes
from tests.functional import proxy
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


class _Handler(http.server.BaseHTTPRequestHandler):
    server: "_Site"

    def do_GET(self) -> None:
        self.server.authorizations.append(self.headers.get("Authorization"))
        target = self.server.redirections.get(self.path)
        body = self.server.files.get(self.path)
        self.send_response(302 if target else 404 if body is None else 200)
        if target:
            self.send_header("Location", target)
        size = self.server.sizes.get(self.path, 0)
        self.send_header("Content-Length", str(size or len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")
        while self.server.sent < size:
            self.wfile.write(bytes(2**20))
            self.server.sent += 2**20

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _Site(http.server.ThreadingHTTPServer):
    """A site with files.

    :ivar sizes: of answers that have zeros behind the file, by their paths.
    :ivar sent: the number of such zeros so far.
    :ivar authorizations: the header of each request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.redirections: dict[str, str] = {}
        self.authorizations: list[str | None] = []
        self.sizes: dict[str, int] = {}
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Nothing: clients hang up."""


@dataclasses.dataclass
class Sites:
    """One site, by plain HTTP and by TLS."""

    site: _Site
    secure: str

    def add(self, name: str, **keys: Any) -> bytes:
        """Add a package and the bundle that lists it, and return the bundle."""
        archive = packages.package(name, "1.0.0")
        self.site.files["/package.zip"] = archive
        entry = {
            "Name": name,
            "Version": "1.0.0",
            "Url": "package.zip",
            "Sha256": hashlib.sha256(archive).hexdigest(),
            **keys,
        }
        bundle = json.dumps({"Packages": [entry]}).encode()
        self.site.files["/packages.bundle"] = bundle
        return bundle


@pytest.fixture
def sites(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    files = proxy.certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(files[0]))
    site = _Site()
    thread = threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    with proxy.secured(site.server_port, *files) as port:
        yield Sites(site, f"https://127.0.0.1:{port}")
    site.shutdown()
    thread.join()
    site.server_close()


def _fetched(place: str, folder: pathlib.Path) -> bytes:
    folder.mkdir()
    return bundles.fetch(bundles.read(place), folder)[0].read_bytes()


def _with_digest(url: str, content: bytes) -> str:
    return f"{url}/packages.bundle#sha256={hashlib.sha256(content).hexdigest()}"


def test_bundles_by_url_are_published(
    sites: Sites, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    bundle = sites.add(name)
    places = f"{sites.secure}/packages.bundle", _with_digest(sites.site.url, bundle)
    openstack = OpenStack(tmp_path, glare.url, glare.token)
    rows = openstack.json("package", "publish", *places)
    assert [(row["Name"], row["Result"]) for row in rows] == [(name, "published")]
    refused = openstack.fails("package", "publish", f"{sites.site.url}/packages.bundle")
    assert "is not encrypted" in refused.err


def test_plain_http_needs_the_digests_of_the_bundle_and_of_its_archives(
    sites: Sites, name: str, tmp_path: pathlib.Path
) -> None:
    place = _with_digest(sites.site.url, sites.add(name))
    assert _fetched(place, tmp_path / "1") == packages.package(name, "1.0.0")
    with pytest.raises(BundleError, match=r"packages\.bundle is not encrypted"):
        bundles.read(f"{sites.site.url}/packages.bundle")
    place = _with_digest(sites.site.url, sites.add(name, Sha256=""))
    with pytest.raises(BundleError, match=r"package\.zip is not encrypted"):
        _fetched(place, tmp_path / "2")


def test_wrong_digests_are_refused(sites: Sites, name: str, tmp_path: pathlib.Path) -> None:
    sites.add(name)
    with pytest.raises(BundleError, match=r"packages\.bundle has the SHA-256"):
        bundles.read(_with_digest(sites.secure, b"another"))
    sites.add(name, Sha256="0" * 64)
    with pytest.raises(BundleError, match=rf"package\.zip has the SHA-256 .* but {'0' * 64}"):
        _fetched(f"{sites.secure}/packages.bundle", tmp_path / "1")


def test_tls_needs_no_digest_but_no_redirection_leads_out_of_it(
    sites: Sites, name: str, tmp_path: pathlib.Path
) -> None:
    sites.add(name, Sha256="", Url=f"{sites.secure}/moved")
    sites.site.redirections["/moved"] = f"{sites.secure}/package.zip"
    sites.site.redirections["/bundle"] = "/packages.bundle"
    assert _fetched(f"{sites.secure}/bundle", tmp_path / "1") == packages.package(name, "1.0.0")
    sites.site.redirections["/moved"] = f"{sites.site.url}/package.zip"
    with pytest.raises(BundleError, match=r"http://.*package\.zip is not encrypted"):
        _fetched(f"{sites.secure}/bundle", tmp_path / "2")
    sites.site.redirections["/moved"] = "/moved"
    with pytest.raises(BundleError, match="moved: Exceeded 30 redirects"):
        _fetched(f"{sites.secure}/bundle", tmp_path / "3")


@pytest.mark.parametrize("keys", [{"Name": "org.other"}, {"Version": "1.0.1"}])
def test_an_archive_must_contain_the_package_of_its_entry(
    sites: Sites, name: str, tmp_path: pathlib.Path, keys: dict[str, str]
) -> None:
    sites.add(name, **keys)
    said = " ".join({"Name": name, "Version": "1.0.0", **keys}.values())
    with pytest.raises(BundleError, match=f"contains {name} 1.0.0, but the bundle says {said}"):
        _fetched(f"{sites.secure}/packages.bundle", tmp_path / "1")


@pytest.mark.parametrize("version", ["", "1", "1.0"])
def test_an_entry_may_shorten_or_omit_the_version(
    sites: Sites, name: str, tmp_path: pathlib.Path, version: str
) -> None:
    sites.add(name, Version=version)
    assert _fetched(f"{sites.secure}/packages.bundle", tmp_path / "1")


def test_no_credentials_are_sent(
    sites: Sites, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    sites.add(name, Url=f"{sites.site.url}/moved")
    sites.site.redirections["/moved"] = f"{sites.secure}/package.zip"
    assert _fetched(f"{sites.secure}/packages.bundle", tmp_path / "1")
    assert sites.site.authorizations == [None, None, None]


def test_no_bundle_of_five_gigabytes_is_read(sites: Sites, name: str) -> None:
    sites.add(name)
    sites.site.sizes["/packages.bundle"] = 5 * 2**30
    with pytest.raises(BundleError, match=r"packages\.bundle: more than 4194304 bytes"):
        bundles.read(f"{sites.secure}/packages.bundle")
    # The client has hung up; the rest is in buffers.
    assert sites.site.sent < 2**26


def test_the_body_of_a_redirection_is_not_read(sites: Sites, name: str) -> None:
    sites.add(name)
    sites.site.redirections["/bundle"] = "/packages.bundle"
    sites.site.sizes["/bundle"] = 300 * 2**20
    (entry,) = bundles.read(f"{sites.secure}/bundle")
    assert entry.fqn == name
    # The client has hung up; the rest is in buffers.
    assert sites.site.sent < 2**26


@pytest.mark.usefixtures("waits")
def test_no_message_shows_a_signature_in_a_query(
    sites: Sites, name: str, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    signed = "/package.zip?Signature=secret"
    nowhere = f"https://127.0.0.1:{processes.free_port()}{signed}"
    archive = packages.package(name, "1.0.0")
    messages = []
    # Missing, of another package, with another digest, moved out of TLS, moved elsewhere,
    # unreachable, no archive.
    for number, (content, target, keys) in enumerate(
        [
            (None, "", {}),
            (packages.package("org.other", "1.0.0"), "", {"Sha256": ""}),
            (archive, "", {"Sha256": "0" * 64}),
            (archive, f"{sites.site.url}/other{signed}", {"Sha256": ""}),
            (archive, "ftp://127.0.0.1" + signed, {}),
            (archive, "", {"Url": nowhere}),
            (b"PK", "", {"Sha256": ""}),
        ]
    ):
        bundle = sites.add(name, **{"Url": signed, **keys})
        sites.site.files = {"/packages.bundle?Signature=secret": bundle}
        sites.site.files |= {} if content is None else {signed: content}
        sites.site.redirections = {signed: target} if target else {}
        with pytest.raises(GlareMuranoError) as caught, caplog.at_level("INFO"):
            _fetched(f"{sites.secure}/packages.bundle?Signature=secret", tmp_path / str(number))
        messages.append(str(caught.value))
    assert all("/package.zip" in message for message in messages)
    assert "secret" not in "\n".join([*messages, caplog.text])
    assert "trying again" in caplog.text


def test_a_missing_file_is_an_error_of_its_url(
    sites: Sites, name: str, tmp_path: pathlib.Path
) -> None:
    sites.add(name)
    del sites.site.files["/package.zip"]
    with pytest.raises(BundleError, match=r"package\.zip: .*404"):
        _fetched(f"{sites.secure}/packages.bundle", tmp_path / "1")


def test_plain_http_without_a_digest_is_refused_before_a_request(sites: Sites, name: str) -> None:
    sites.add(name)
    with pytest.raises(BundleError, match="is not encrypted"):
        bundles.read(f"{sites.site.url}/packages.bundle")
    assert sites.site.authorizations == []


def test_a_password_in_a_url_is_neither_sent_nor_shown(
    sites: Sites, name: str, tmp_path: pathlib.Path
) -> None:
    bundle = sites.add(name, Url=f"https://me:secret@{sites.secure.removeprefix('https://')}/a")
    with pytest.raises(BundleError, match="no credentials are sent") as caught:
        bundles.read(_with_digest(sites.site.url.replace("//", "//me:secret@"), bundle))
    assert "secret" not in str(caught.value)
    assert sites.site.authorizations == []
    with pytest.raises(BundleError, match="no credentials are sent") as caught:
        _fetched(f"{sites.secure}/packages.bundle", tmp_path / "1")
    assert "secret" not in str(caught.value)
    assert sites.site.authorizations == [None]


def test_another_digest_than_sha_256_is_not_ignored(sites: Sites, name: str) -> None:
    sites.add(name)
    for fragment in ("sha512=00", "sha256", "SHA-256=00"):
        with pytest.raises(BundleError, match=f"#{fragment} is not #sha256=DIGEST"):
            bundles.read(f"{sites.secure}/packages.bundle#{fragment}")


@pytest.mark.parametrize("place", ["a\0b.zip", "a\ud800.zip", "http://[::1", "pipe.zip"])
def test_a_place_that_cannot_be_opened_is_named(
    name: str, tmp_path: pathlib.Path, place: str
) -> None:
    os.mkfifo(tmp_path / "pipe.zip")
    bundle = tmp_path / "packages.bundle"
    entry = {"Name": name, "Version": "1.0.0", "Url": place, "Sha256": "0" * 64}
    bundle.write_text(json.dumps({"Packages": [entry]}))
    with pytest.raises(BundleError, match=re.escape(repr(place)[1:-1])):
        _fetched(str(bundle), tmp_path / "1")
