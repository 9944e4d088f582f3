# SPDX-License-Identifier: Apache-2.0

"""Sign messages for Murano's agents, with the key in the option ``[engine] signing_key``."""

import base64
import functools
import pathlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils
from oslo_config import cfg

from glare_murano.package import GlareMuranoError
from loader.engine import task_system_classes


class NoSigningKey(GlareMuranoError):
    """A message cannot be signed, since the engine has no key."""


class Signature:
    """The signature of one message, which comes in parts."""

    def __init__(self, conf: cfg.ConfigOpts, environment_id: str, queue: str) -> None:
        """Begin a message.

        :param environment_id: the id of the environment of the task.
        :param queue: the name of the agent's queue.
        :raises ForbiddenQueue: if the agent belongs to another environment.
        :raises NoSigningKey: if the operator has configured no key.
        """
        task_system_classes.check_queue(queue, environment_id)
        key = _private_key(conf)
        if key is None:
            raise NoSigningKey("[engine] signing_key is not set, or its file does not exist")
        self._key = key
        self._hash = hashes.Hash(hashes.SHA256())
        # The agent checks a signature of the queue's name and the message together.
        self.update(queue)

    def update(self, part: str) -> None:
        """Add the next part of the message."""
        self._hash.update(part.encode())

    def sign(self) -> str:
        """Return the signature in Base64."""
        digest = utils.Prehashed(hashes.SHA256())
        found = self._key.sign(self._hash.finalize(), padding.PKCS1v15(), digest)
        return base64.b64encode(found).decode()


def public_key(conf: cfg.ConfigOpts) -> str | None:
    """Return the public key as PEM, by which agents check signatures; None without a key."""
    key = _private_key(conf)
    if key is None:
        return None
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.PKCS1
    return key.public_key().public_bytes(encoding, form).decode()


def _private_key(conf: cfg.ConfigOpts) -> rsa.RSAPrivateKey | None:
    """Return the engine's key; None if the option is not set, or the file does not exist.

    Murano 16 signs nothing if the file does not exist.
    """
    path = pathlib.Path(conf.engine.signing_key or "").expanduser()
    if not conf.engine.signing_key or not path.exists():
        return None
    return _read(path, path.stat().st_mtime_ns)


# To read and check a key of 4096 bits takes 0.5 seconds.
@functools.lru_cache(1)
def _read(path: pathlib.Path, _changed: int) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise NoSigningKey(f"[engine] signing_key = {path} is not a private key of RSA")
    return key
