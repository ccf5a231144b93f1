"""Submit, work and result over every kind of Redis URL; what is refused, and what nobody may read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import SettingsError, Unreachable
from callsheet.settings import Settings
from callsheet.store import open_store
from tests.support.cli import Cli
from tests.support.live import Live, until
from tests.support.quick_worker import serve, start_quick
from tests.support.tls import TlsProxy
from tests.support.valkey import Valkey

WAIT_S = 60.0
CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2}
PASSWORD = "default/pass@word"
USER, USERS = "sheet", "the:users#own"
SECRETS = [form for word in (PASSWORD, USERS) for form in (word, quote(word, safe=""))]

#: What one deployment sets; {port}, {tls}, {path}, {ca} are this server's, {port2} a second server's.
KINDS: dict[str, dict[str, str]] = {
    "ACL user and database": {"broker_url": "redis://{user}@127.0.0.1:{port}/3"},
    "password only": {"broker_url": "redis://{password}@127.0.0.1:{port}"},
    "unix": {"broker_url": "unix://{password}@{path}?db=1"},
    "redis+socket": {"broker_url": "redis+socket://{user}@{path}?virtual_host=2"},
    "TLS": {
        "broker_url": "rediss://{user}@127.0.0.1:{tls}/4?ssl_cert_reqs=CERT_REQUIRED&ssl_ca_certs={ca}",
    },
    "TLS that says no more": {"broker_url": "rediss://{user}@127.0.0.1:{tls}/5?ssl_ca_certs={ca}"},
    "TLS unverified": {"broker_url": "rediss://{password}@127.0.0.1:{tls}/6?ssl_cert_reqs=none"},
    "two servers": {
        "broker_url": "unix://{password}@{path}?db=7",
        "store_url": "redis://{user}@127.0.0.1:{port2}/8",
    },
}


class Place:
    """Two servers with the same users, and TLS in front of the first."""

    def __init__(self, first: Valkey, second: Valkey, proxy: TlsProxy) -> None:
        self.first, self.second, self.proxy = first, second, proxy
        for server in (first, second):
            server.client().acl_setuser(
                USER,
                enabled=True,
                passwords=[f"+{USERS}"],
                keys=["*"],
                channels=["*"],
                commands=["+@all"],
            )

    def url(self, form: str, **changes: Any) -> str:
        """A URL with this place's names."""
        names = {
            "user": f"{USER}:{quote(USERS, safe='')}",
            "password": f":{quote(PASSWORD, safe='')}",
            "port": self.first.port,
            "port2": self.second.port,
            "tls": self.proxy.port,
            "path": self.first.socket_path,
            "ca": self.proxy.ca,
            **changes,
        }
        return form.format(**names)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    secured = ("--requirepass", PASSWORD)
    quoted = quote(PASSWORD, safe="")
    with (
        Valkey(*secured, password=quoted) as first,
        Valkey(*secured, password=quoted) as second,
        TlsProxy(first.port, tmp_path_factory.mktemp("tls")) as proxy,
    ):
        yield Place(first, second, proxy)


@pytest.fixture(scope="module")
def deployments(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Live]]:
    """A worker for each kind of URL, all started at once. Celery's variables name no server."""
    nowhere = "redis://127.0.0.1:1/0"
    lives: dict[str, Live] = {}
    with ExitStack() as stack:
        for kind, forms in KINDS.items():
            folder = tmp_path_factory.mktemp("urls")
            urls = {name: place.url(form) for name, form in forms.items()}
            live = lives[kind] = stack.enter_context(Live(folder, place.first, **urls))
            start_quick(live, CELERY_BROKER_URL=nowhere, CELERY_RESULT_BACKEND=nowhere)
        yield lives


@pytest.fixture
def at_once(tmp_path: Path) -> Any:
    """Use these settings; answers them."""

    def use(**settings: Any) -> Settings:
        made = Settings(data_dir=tmp_path, **settings)
        app.use(made)
        return made

    return use


@pytest.mark.parametrize("kind", KINDS)
def test_submit_work_and_result(
    deployments: dict[str, Live], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = deployments[kind]
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://127.0.0.1:1/0")
    app.use(live.settings)
    serve(live.store)
    job = generate_video.delay(**CAT)
    assert isinstance(job, VideoJob)
    assert job.get(timeout=WAIT_S)["film"] == "memory://film.mp4", live.tail("quick")
    assert job.status == "succeeded"
    assert Client().ping_broker()
    log = until(
        lambda: live.log("quick").read_text() if "ready." in live.tail("quick") else "", within_s=WAIT_S
    )
    shown = [log, repr(live.settings), Client().ping_broker(), repr(app.connection_for_write())]
    assert not [secret for secret in SECRETS for text in shown if secret in text]


def test_two_servers_hold_each_their_part(deployments: dict[str, Live], place: Place) -> None:
    app.use(deployments["two servers"].settings)
    serve(deployments["two servers"].store)
    generate_video.delay(**CAT).get(timeout=WAIT_S)
    assert app.control.ping(timeout=5, limit=1)  # remote control, over a connection that publishes
    broker = {key.partition(":")[0] for key in _keys(place.first, 7)}
    store = {key.partition(":")[0] for key in _keys(place.second, 8)}
    assert "callsheet" not in broker
    assert "callsheet" in store
    assert not [key for key in _keys(place.second, 8) if key.startswith("_kombu")]


def _keys(server: Valkey, db: int) -> list[str]:
    client = server.client()
    client.select(db)
    return [str(key) for key in client.keys("*")]


# -- refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "nobody's CA": ("rediss://{user}@127.0.0.1:{tls}/0", "ssl_ca_certs"),
    "another CA": ("rediss://{user}@127.0.0.1:{tls}/0?ssl_ca_certs={strange}", "ssl_ca_certs"),
    "another host's name": ("rediss://{user}@localhost:{tls}/0?ssl_ca_certs={ca}", "host name"),
    "a wrong password": ("redis://{wrong}@127.0.0.1:{port}/0", "Correct user and password"),
    "no password": ("redis://127.0.0.1:{port}/0", "Correct user and password"),
    "plain to a TLS port": ("redis://{user}@127.0.0.1:{tls}/0", "does not answer"),
    "TLS to a plain port": ("rediss://{user}@127.0.0.1:{port}/0?ssl_ca_certs={ca}", "does not answer"),
    "no such socket": ("unix://{user}@/no/such/redis.sock", "does not answer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_store_that_refuses_is_told_within_seconds(place: Place, at_once: Any, case: str) -> None:
    form, says = REFUSED[case]
    at_once(broker_url=place.url(form, strange=place.proxy.strange_ca, wrong=f"{USER}:{quote(USERS)}x"))
    began = time.monotonic()
    with pytest.raises(Unreachable, match=says) as caught:
        generate_video.delay(**CAT)
    assert time.monotonic() - began < 5
    assert not [secret for secret in SECRETS if secret in str(caught.value)]


def test_a_broker_whose_certificate_is_strange_is_told_by_what_to_set(
    place: Place, at_once: Any, caplog: pytest.LogCaptureFixture
) -> None:
    at_once(
        broker_url=place.url("rediss://{user}@127.0.0.1:{tls}/9"),
        store_url=place.url("redis://{user}@127.0.0.1:{port}/9"),
    )
    serve(open_store(place.url("redis://{user}@127.0.0.1:{port}/9"), retention_s=600))
    assert generate_video.delay(**CAT).status == "queued"  # recorded; its ticket is healed later
    assert "ssl_ca_certs" in caplog.text
    with pytest.raises(Unreachable, match="ssl_ca_certs"):
        Client().ping_broker()
    assert not [secret for secret in SECRETS if secret in caplog.text]


@pytest.mark.parametrize("argv", [("worker",), ("up",), ("job", "list"), ("config",)])
def test_sentinels_without_a_service_are_refused_at_the_start(tmp_path: Path, argv: tuple[str, ...]) -> None:
    said = Cli(tmp_path, CALLSHEET_BROKER_URL="sentinel://:s3cret@127.0.0.1:26379/0")(*argv)
    assert said.code == 2
    assert "names no service" in said.err
    assert "broker_url" in said.err
    assert "Traceback" not in said.err
    assert "s3cret" not in said.err + said.out


def test_a_store_url_that_cannot_be_read_is_told_without_its_password() -> None:
    with pytest.raises(SettingsError, match="names the database 'one'") as caught:
        open_store("redis://:s3cret@h/one", retention_s=600)
    assert "s3cret" not in str(caught.value)
