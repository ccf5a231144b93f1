"""One live deployment for all tests here: an A100 and an H100 that are declared, and the tiny models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from callsheet.app import app
from callsheet.client import Client
from tests.support.hosting import current, hosted
from tests.support.live import Live
from tests.support.quick_worker import serve, start_quick
from tests.support.valkey import Valkey


@pytest.fixture(scope="package")
def live(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Live]:
    """Started once. Tests leave it as they found it: a test that kills something makes its own ``Live``."""
    with Valkey() as valkey, Live(tmp_path_factory.mktemp("live"), valkey, models_dir=tiny_models) as live:
        live.controller()
        live.worker("a100-0", "a100", wait=False)
        live.worker("h100-0", "h100", wait=False)
        live.wait_for_gpu("a100-0@test")
        live.wait_for_gpu("h100-0@test")
        yield live


@pytest.fixture
def client(live: Live) -> Client:
    """This process as a client of the live deployment."""
    app.use(live.settings)
    return Client()


@pytest.fixture(scope="package")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A deployment whose two workers render nothing: for tests of what lies around a film."""
    with Valkey() as valkey, Live(tmp_path_factory.mktemp("quick"), valkey) as live:
        live.controller()
        for name in ("quick-0", "quick-1"):
            start_quick(live, name)
        serve(live.store, ttl_s=3600)
        yield live


@pytest.fixture(scope="package")
def running_host(quick: Live) -> Iterator[Celery]:
    """A host application's app, with its own Valkey and its own worker, which submits to ``quick``."""
    with hosted(quick) as host:
        yield host


@pytest.fixture
def host(running_host: Celery, quick: Live) -> Iterator[Celery]:
    """This process as the host's, and as a client of ``quick``."""
    app.use(quick.settings)
    with current(running_host):
        yield running_host


@pytest.fixture
def plain_host(running_host: Celery, quick: Live) -> Iterator[Celery]:
    """The same, whose environment does not name its broker: other hosts can live beside it."""
    app.use(quick.settings)
    with current(running_host, with_variables=False):
        yield running_host
