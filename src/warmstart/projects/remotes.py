"""The address of a git repository as its name: the same for every way of writing it, and never a credential."""

from __future__ import annotations

from warmstart import lazy_regex as re

_LONGEST = 300  # characters
_URL = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/]*@)?(?P<host>[^/@:\[\]]+)(?::\d*)?/(?P<path>[^?#]*)", re.I)
_SCP = re.compile(r"^(?:[^/@\s]*@)?(?P<host>[A-Za-z0-9][\w.-]+):(?!//)(?P<path>[^?#]*)$")  # git@host:org/repo.git
_HOST = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
_SEGMENT = re.compile(r"^[\w.~+-]{1,100}$")
# A second account has an alias in the SSH settings: github-work, github.com-work
_ALIAS = re.compile(r"^(github|gitlab|bitbucket)(?:\.(?:com|org))?[-_][\w-]+$")
_DOMAINS = {"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}
_SECRET = re.compile(  # a token where a name should be
    r"^(?:gh[opsur]_|github_pat_|glpat-|x-oauth|oauth2?$)|^(?=.*\d)(?=.*[a-z])[a-z0-9_-]{40,}$", re.I
)


def normalise_remote(address: str | None) -> str | None:
    """Return `github.com/org/repo` for any address of that repository; None for a local or unreadable address."""
    text = (address or "").strip()
    if not text or len(text) > _LONGEST or not text.isprintable():
        return None
    if re.match(r"^[A-Za-z]:[\\/]", text):  # a folder on Windows
        return None
    parts = _URL.match(text) or (None if "://" in text else _SCP.match(text))
    if parts is None or parts.groupdict().get("scheme", "").lower() == "file":
        return None
    from urllib.parse import unquote  # agents wait for commands that ask for no remote

    host = _name_host(parts["host"])
    segments = [segment for segment in unquote(parts["path"]).split("/") if segment not in ("", ".")]
    if segments:
        segments[-1] = segments[-1].removesuffix(".git")
    if not _HOST.match(host) or not segments or not all(map(_is_name, segments)):
        return None
    return "/".join((host, *segments)).lower()


def _name_host(host: str) -> str:
    host = host.lower().removeprefix("www.")
    if host == "ssh.github.com":  # SSH over the HTTPS port
        return "github.com"
    alias = _ALIAS.match(host)
    return _DOMAINS[alias[1]] if alias else host


def _is_name(segment: str) -> bool:
    return bool(_SEGMENT.match(segment)) and segment != ".." and not _SECRET.search(segment)
