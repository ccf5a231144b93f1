"""One Redis URL in the spellings of its three readers: the store, the broker and the result backend.

::

    reader                   socket                                      TLS
    store (redis-py)         unix:///path?db=1                           rediss://host:port/1?ssl_...
    broker (kombu)           redis+socket:///path?virtual_host=1         the same
    backend (Celery)         redis+socket:///path?virtual_host=1         the same, ssl_cert_reqs needed

    reader                   sentinel://user:pw@h1:1,h2:2/0?service=s&sentinel_password=x
    store (redis-py)         no URL: ``Sentinel`` is built of the parts
    broker, backend          sentinel://user:pw@h1:1/0;sentinel://user:pw@h2:2/0, and transport options

A setting may hold either spelling of a socket. A ``rediss://`` URL that does not say how to check the
server's certificate gets ``ssl_cert_reqs=required``: Celery would refuse it, and kombu would check nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

SCHEMES = ("redis", "rediss", "redis+socket", "unix", "sentinel", "memory")
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
TLS_OPTIONS = ("ssl_cert_reqs", "ssl_check_hostname", "ssl_password", *TLS_FILES)
CERT_REQS = ("required", "optional", "none")
#: Options of redis-py that only the store's connection takes; the broker's and the backend's have ours.
STORE_OPTIONS = (
    "socket_timeout", "socket_connect_timeout", "socket_keepalive", "health_check_interval",
    "max_connections", "client_name", "protocol",
)  # fmt: skip
SENTINEL_OPTIONS = ("service", "sentinel_username", "sentinel_password")

_SEVERAL = re.compile(r";(?=[\w+.-]+://)")  # kombu joins the URLs of several servers with ";"
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"  # what OpenSSL says, in every reader's error


@dataclass(frozen=True, slots=True)
class Sentinels:
    """The Sentinels that know where the primary of a service is."""

    service: str
    hosts: tuple[tuple[str, int], ...]  # (host, port) of each
    user: str = ""  # of the Sentinels themselves; the server's is in RedisUrl
    password: str = field(default="", repr=False)

    @property
    def login(self) -> dict[str, str]:
        """What a connection to one of them needs: ``username`` and ``password``, where given."""
        given = {"username": self.user, "password": self.password}
        return {name: word for name, word in given.items() if word}

    @property
    def where(self) -> str:
        """For people."""
        return f"service {self.service} of the Sentinels {', '.join(_place(*host) for host in self.hosts)}"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """The parts of a Redis URL."""

    tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    host: str = ""
    port: int = 6379
    socket: str = ""  # path of a unix socket; "" = TCP
    db: int = 0
    tls_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    sentinels: Sentinels | None = None  # None: one server, at host and port or at the socket

    def for_store(self) -> str:
        """As redis-py reads it. Raises ValueError for Sentinels, which redis-py knows no URL for."""
        if self.sentinels:
            raise ValueError("is for Sentinel, which has no URL of one server")
        if self.socket:
            return self._write("unix", quote(self.socket), {"db": str(self.db), **self.store_options})
        return self._tcp({**self.tls_options, **self.store_options})

    def for_celery(self) -> str:
        """As kombu (broker) and Celery (result backend) read it; see also :func:`transport_options`."""
        if self.sentinels:
            return ";".join(
                f"sentinel://{self._login}{_place(*host)}/{self.db}" for host in self.sentinels.hosts
            )
        if self.socket:
            return self._write("redis+socket", quote(self.socket), {"virtual_host": str(self.db)})
        return self._tcp(self.tls_options)

    def _tcp(self, options: Mapping[str, str]) -> str:
        return self._write("rediss" if self.tls else "redis", f"/{self.db}", options)

    def _write(self, scheme: str, path: str, options: Mapping[str, str]) -> str:
        place = "" if self.socket else _place(self.host, self.port)
        query = f"?{urlencode(options)}" if options else ""
        return f"{scheme}://{self._login}{place}{path}{query}"

    @property
    def _login(self) -> str:
        return f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.password else ""


def parse(url: str) -> RedisUrl:
    """The parts of a URL in any spelling. Raises ValueError that says what is wrong, never the URL itself."""
    scheme, parts = _split(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    login = {
        "user": options.pop("username", "") or unquote(parts.username or ""),
        "password": options.pop("password", "") or unquote(parts.password or ""),
    }
    socket = unquote(parts.path) if scheme in ("unix", "redis+socket") else ""
    db = _db(options.pop("db", ""), options.pop("virtual_host", ""), "" if socket else parts.path)
    if scheme == "sentinel":
        return RedisUrl(
            user=login["user"], password=login["password"], db=db, sentinels=_sentinels(parts, options)
        )
    tls = {name: options.pop(name) for name in list(options) if name.startswith("ssl_")}
    return RedisUrl(
        tls=scheme == "rediss",
        user=login["user"],
        password=login["password"],
        host="" if socket else unquote(parts.hostname or ""),
        port=parts.port or 6379,
        socket=socket,
        db=db,
        tls_options=_tls(tls, wanted=scheme == "rediss"),
        store_options=_known(options, STORE_OPTIONS),
    )


def fault(url: str) -> str:
    """What is wrong with a URL for broker or store; "" for a fine one."""
    try:
        if not is_memory(url):
            parse(url)
    except ValueError as error:
        return str(error)
    return ""


def is_memory(url: str) -> bool:
    """Whether it names this process's memory, which tests use, and no server."""
    return url.startswith("memory://")


def for_store(url: str) -> str:
    """A setting's URL as redis-py reads it. Raises ValueError."""
    return parse(url).for_store()


def for_broker(url: str) -> str:
    """A setting's URL as kombu reads it. Raises ValueError."""
    return url if is_memory(url) else parse(url).for_celery()


def for_backend(url: str) -> str:
    """A setting's URL as Celery's result backend reads it. Raises ValueError."""
    return "cache+memory://" if is_memory(url) else parse(url).for_celery()


def transport_options(url: str, timeout_s: float) -> dict[str, object]:
    """What kombu and Celery's backend must know of Sentinels beside their URL; {} for any other URL.

    ``timeout_s``: longest time for all Sentinels together. Raises ValueError.
    """
    found = None if is_memory(url) else parse(url).sentinels
    if not found:
        return {}
    each_s = timeout_s / len(found.hosts)
    limits = {"socket_timeout": each_s, "socket_connect_timeout": each_s}
    return {"master_name": found.service, "sentinel_kwargs": {**found.login, **limits}}


def untrusted(error: BaseException) -> str:
    """What to set when the server's certificate was refused; "" for any other error."""
    if _UNTRUSTED not in str(error):
        return ""
    return (
        "its TLS certificate is not trusted. Name the file of the CA that signed it in the URL "
        "(rediss://host:port/0?ssl_ca_certs=/path/ca.pem), and use a host name that the certificate holds"
    )


def _split(url: str) -> tuple[str, SplitResult]:
    scheme, found, rest = url.partition("://")
    if not found or scheme not in SCHEMES:
        raise ValueError("has no allowed scheme")
    if _SEVERAL.search(url):
        raise ValueError("names several servers: give the URL of one")
    try:
        parts = urlsplit(f"//{rest}")
        _ = scheme == "sentinel" or parts.port  # parsed only when asked for; Sentinels have one each
    except ValueError:
        raise ValueError("is no URL (percent-encode special characters of the password)") from None
    if scheme in ("unix", "redis+socket"):
        if len(parts.path) < 2 or parts.hostname:
            raise ValueError("names no socket path: three slashes begin one")
    elif not parts.netloc.rpartition("@")[2] or (scheme != "sentinel" and not parts.hostname):
        raise ValueError("names no host")
    return scheme, parts


def _sentinels(parts: SplitResult, options: dict[str, str]) -> Sentinels:
    if any(name.startswith("ssl_") for name in options):
        raise ValueError("has TLS options (ssl_...), which are not supported with sentinel://")
    known = _known(options, SENTINEL_OPTIONS)
    if not known.get("service"):
        raise ValueError("names no service: end it with ?service=NAME, the name after `sentinel monitor`")
    hosts = tuple(_host(text) for text in parts.netloc.rpartition("@")[2].split(","))
    user, password = known.get("sentinel_username", ""), known.get("sentinel_password", "")
    return Sentinels(known["service"], hosts, user, password)


def _host(text: str) -> tuple[str, int]:
    """One Sentinel of ``host:port,host:port``."""
    try:
        found = urlsplit(f"//{text}")
        host, port = found.hostname, found.port
    except ValueError:
        raise ValueError(f"names the Sentinel {text!r}, which is not host:port") from None
    if not host or not port:
        raise ValueError(f"names the Sentinel {text!r} without host or port; 26379 is the usual port")
    return unquote(host), port


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _db(*given: str) -> int:
    """The number of the database; the first word wins, as redis-py has it."""
    text = next((word for word in given if word.strip("/")), "0").strip("/")
    if not re.fullmatch(r"\d{1,9}", text):
        raise ValueError(f"names the database {text!r}, which is no number")
    return int(text)


def _tls(options: Mapping[str, str], *, wanted: bool) -> dict[str, str]:
    if options and not wanted:
        raise ValueError("has TLS options (ssl_...) but is not rediss://")
    found = _known(options, TLS_OPTIONS)
    for name in TLS_FILES:
        if name in found and not Path(found[name]).is_file():
            raise ValueError(f"has a {name} that is no file: {found[name]}")
    if wanted:
        reqs = found.get("ssl_cert_reqs", "required").removeprefix("CERT_").lower()
        if reqs not in CERT_REQS:
            raise ValueError(f"has an ssl_cert_reqs that is none of {', '.join(CERT_REQS)}")
        found["ssl_cert_reqs"] = reqs
    return found


def _known(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    for name in options:
        if name not in names:
            raise ValueError(f"has the unknown option {name!r}; known are {', '.join(names)}")
    return dict(options)
