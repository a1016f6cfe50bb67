"""The key that signs what you share, and the keys of others that you trust. Both are files of the home."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from warmstart import lazy_regex as re
from warmstart.atomic_files import lock_file, write_once, write_whole
from warmstart.bundles.items import BundleItem, ItemSignature, get_signed_bytes
from warmstart.confirm.tokens.ed25519 import derive_public
from warmstart.confirm.tokens.ed25519 import verify as verify_in_python
from warmstart.confirm.tokens.identity import read_key, write_key
from warmstart.errors import ConfigError, Refused

FOLDER = "bundles"  # under the home
_PREFIX = "ed25519:"
_NAME = re.compile(r"[\w.+-]{1,40}")
_NEEDED = "signing a bundle needs cryptography; install it with: pip install 'warmstart[bundles]'"


class SigningKey(Struct, frozen=True, kw_only=True):
    """Your own key."""

    seed: str  # 32 bytes in hex; never leaves the home
    name: str = ""  # shown beside your signatures

    @property
    def public(self) -> str:
        """The public key, as teammates trust it. Its prefix keeps it from being taken for an option."""
        return _PREFIX + write_key(derive_public(bytes.fromhex(self.seed)))


class Signer:
    """Signs items with a key. Made once: deriving the public key takes milliseconds."""

    def __init__(self, key: SigningKey) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError as error:
            raise Refused(_NEEDED) from error
        self.key, self.name = key.public, key.name
        self._sign = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key.seed)).sign

    def sign(self, item: BundleItem) -> BundleItem:
        """Return the item with our signature."""
        value = write_value(self._sign(get_signed_bytes(item)))
        return structs.replace(item, signature=ItemSignature(by=self.name, key=self.key, value=value))


def write_value(value: bytes) -> str:
    """Return a signature as text."""
    return value.hex()


def load_key(home: Path, name: str | None = None) -> SigningKey:
    """Return the signing key of a home, made on first need. `name` sets the name beside your signatures."""
    path = home / FOLDER / "signing.key"
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigError(f"{name[:60]!r}: a signer's name has up to 40 letters, digits and . _ + - characters")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        write_once(path, msgspec.json.encode(SigningKey(seed=os.urandom(32).hex(), name=name or "")))
    try:
        key = msgspec.json.decode(path.read_bytes(), type=SigningKey)
        derive_public(bytes.fromhex(key.seed))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}. Move it away and a new key is made") from error
    if name is not None and name != key.name:
        key = structs.replace(key, name=name)
        write_whole(path, msgspec.json.encode(key), synced=True)
    return key


class TrustedKeys:
    """The public keys whose items you accept for a decision, by the names that you gave them."""

    def __init__(self, home: Path) -> None:
        self._path = home / FOLDER / "trusted.json"

    def list(self) -> dict[str, str]:
        """Return names by key."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"{self._path}: cannot be read: {error}") from error

    def add(self, key: str, name: str) -> None:
        """Trust a key under a name. A name stands for one key only."""
        if not _read_public(key):
            raise ConfigError(f"{key[:60]!r}: not a public key; your teammate prints it with: warmstart bundle key")
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name[:60]!r}: a name has up to 40 letters, digits and . _ + - characters")
        with self._changing() as known:
            if any(other == name and one != key for one, other in known.items()):
                raise Refused(
                    f"{name} is the name of another trusted key; remove it first: bundle trust --remove {name}"
                )
            known[key] = name

    def remove(self, name: str) -> str:
        """Stop trusting a key, by its name or by itself; return it. What was imported stays."""
        with self._changing() as known:
            found = [key for key, own in known.items() if name in (key, own)]
            if not found:
                raise Refused(f"no trusted key is {name}; see: warmstart bundle trust")
            del known[found[0]]
            return found[0]

    def _changing(self) -> _Change:
        return _Change(self)

    @property
    def path(self) -> Path:
        """The file that holds them."""
        return self._path


def _read_public(key: str) -> bytes:
    try:
        return read_key(key.removeprefix(_PREFIX)) if key.startswith(_PREFIX) else b""
    except ConfigError:
        return b""


class _Change:
    """One change of the trusted keys, under a lock; written when it ends without an error."""

    def __init__(self, keys: TrustedKeys) -> None:
        self._keys = keys
        self._known: dict[str, str] = {}

    def __enter__(self) -> dict[str, str]:
        folder = self._keys.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = lock_file(folder / "trusted.lock", wait=True)
        self._lock.__enter__()
        self._known = self._keys.list()
        return self._known

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                data = msgspec.json.format(msgspec.json.encode(self._known, order="sorted"))
                write_whole(self._keys.path, data + b"\n", synced=True)
        finally:
            self._lock.__exit__(None, None, None)


def choose_verifier() -> Callable[[bytes, bytes, bytes], bool]:
    """Return the faster verification that is installed: (public key, message, signature) -> whether it is right."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return verify_in_python

    def verify(public: bytes, message: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    return verify


class SignatureCheck:
    """Checks the signatures of items against trusted keys."""

    def __init__(self, trusted: dict[str, str], own: str | None) -> None:
        self._trusted = trusted
        self._own = own
        self._verify = choose_verifier()

    def find_fault(self, item: BundleItem) -> str | None:
        """Return why an item must not be accepted; None if a trusted key signed exactly this."""
        signature = item.signature
        if signature is None:
            return "it is not signed"
        try:
            right = self._verify(_read_public(signature.key), get_signed_bytes(item), bytes.fromhex(signature.value))
        except ValueError:
            right = False
        if not right:
            return f"it was changed after {signature.by or signature.key} signed it, or the signature is false"
        if signature.key not in self._trusted and signature.key != self._own:
            return f"signed by a key that you do not trust: warmstart bundle trust {signature.key} --name NAME"
        return None

    def name(self, item: BundleItem) -> str:
        """Return the name that you gave the signer's key."""
        key = item.signature.key if item.signature else ""
        return "you" if key and key == self._own else self._trusted.get(key, key.removeprefix(_PREFIX)[:8])
