"""One Redis URL, three spellings."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.settings import urls
from callsheet.settings.urls import parse


@pytest.mark.parametrize(
    ("url", "store", "celery"),
    [
        ("redis://h", "redis://h:6379/0", "redis://h:6379/0"),
        ("redis://h:1/3", "redis://h:1/3", "redis://h:1/3"),
        ("redis://h?db=4", "redis://h:6379/4", "redis://h:6379/4"),
        ("redis://user:p%40s%3As@h/1", "redis://user:p%40s%3As@h:6379/1", "redis://user:p%40s%3As@h:6379/1"),
        ("redis://:a%3Bb@h", "redis://:a%3Bb@h:6379/0", "redis://:a%3Bb@h:6379/0"),
        ("redis://[::1]:7/0", "redis://[::1]:7/0", "redis://[::1]:7/0"),
        ("redis://h/0?socket_timeout=5", "redis://h:6379/0?socket_timeout=5", "redis://h:6379/0"),
        ("unix:///run/r.sock", "unix:///run/r.sock?db=0", "redis+socket:///run/r.sock?virtual_host=0"),
        ("unix:///run/r.sock?db=2", "unix:///run/r.sock?db=2", "redis+socket:///run/r.sock?virtual_host=2"),
        ("unix://u:p@/r?virtual_host=1", "unix://u:p@/r?db=1", "redis+socket://u:p@/r?virtual_host=1"),
        (
            "redis+socket:///a%20b?virtual_host=1",
            "unix:///a%20b?db=1",
            "redis+socket:///a%20b?virtual_host=1",
        ),
        ("redis+socket:///r?db=1", "unix:///r?db=1", "redis+socket:///r?virtual_host=1"),
        (
            "rediss://h",
            "rediss://h:6379/0?ssl_cert_reqs=required",
            "rediss://h:6379/0?ssl_cert_reqs=required",
        ),
        (
            "rediss://h/1?ssl_cert_reqs=CERT_NONE",
            "rediss://h:6379/1?ssl_cert_reqs=none",
            "rediss://h:6379/1?ssl_cert_reqs=none",
        ),
    ],
)
def test_each_reader_gets_its_spelling(url: str, store: str, celery: str) -> None:
    assert urls.fault(url) == ""
    assert (urls.for_store(url), urls.for_broker(url), urls.for_backend(url)) == (store, celery, celery)


@pytest.mark.parametrize("url", ["redis://user:p%40%3B%2F@h:1/3", "unix://:p%23@/run/r?db=2", "rediss://h"])
def test_a_spelling_reads_as_the_same_url(url: str) -> None:
    assert parse(urls.for_store(url)) == parse(urls.for_broker(url)) == parse(url)


SENTINEL = (
    "sentinel://us%40er:p%2Fw@h1:1,[::1]:2/3?service=films&sentinel_username=su&sentinel_password=s3cret"
)


def test_sentinels_are_read_once_for_all_three() -> None:
    found = parse(SENTINEL)
    assert (found.user, found.password, found.db) == ("us@er", "p/w", 3)
    assert found.sentinels == urls.Sentinels("films", (("h1", 1), ("::1", 2)), "su", "s3cret")
    assert found.sentinels.where == "service films of the Sentinels h1:1, [::1]:2"
    both = "sentinel://us%40er:p%2Fw@h1:1/3;sentinel://us%40er:p%2Fw@[::1]:2/3"
    assert urls.for_broker(SENTINEL) == urls.for_backend(SENTINEL) == both
    login = {"username": "su", "password": "s3cret"}
    limits = {"socket_timeout": 1.5, "socket_connect_timeout": 1.5}
    assert urls.transport_options(SENTINEL, 3.0) == {
        "master_name": "films",
        "sentinel_kwargs": {**login, **limits},
    }


def test_sentinels_without_logins_send_none() -> None:
    found = parse("sentinel://h:1?service=s")
    assert (found.user, found.password, found.db) == ("", "", 0)
    assert found.sentinels is not None
    assert found.sentinels.login == {}
    assert urls.for_broker("sentinel://h:1?service=s") == "sentinel://h:1/0"


@pytest.mark.parametrize("url", ["redis://h", "unix:///run/r", "memory://"])
def test_only_sentinels_need_transport_options(url: str) -> None:
    assert urls.transport_options(url, 3.0) == {}


def test_sentinels_are_no_url_of_one_server() -> None:
    with pytest.raises(ValueError, match="no URL of one server"):
        urls.for_store(SENTINEL)


def test_the_memory_has_celerys_own_word_as_a_backend() -> None:
    assert urls.for_broker("memory://") == "memory://"
    assert urls.for_backend("memory://") == "cache+memory://"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("amqp://h", "has no allowed scheme"),
        ("h:6379", "has no allowed scheme"),
        ("redis://", "names no host"),
        ("redis:///1", "names no host"),
        ("redis://h:99999", "is no URL"),
        ("redis://:p@ss[word@h", "is no URL"),
        ("redis://h/one", "'one', which is no number"),
        ("redis://h?db=one", "'one', which is no number"),
        ("redis://h?foo=1", "unknown option 'foo'"),
        ("redis://h?ssl_cert_reqs=none", "is not rediss://"),
        ("rediss://h?ssl_cert_reqs=maybe", "none of required, optional, none"),
        ("rediss://h?ssl_ca_certs=/no/such/file", "no file: /no/such/file"),
        ("rediss://h?ssl_ciphers=x", "unknown option 'ssl_ciphers'"),
        ("unix://", "names no socket"),
        ("unix://run/redis.sock", "three slashes"),
        ("redis://a;redis://b", "several servers"),
        ("sentinel://a:26379/mymaster", "'mymaster', which is no number"),
        ("sentinel://a:26379/0", "names no service"),
        ("sentinel://a:26379?service=", "names no service"),
        ("sentinel://a:1,b/0?service=s", "'b' without host or port; 26379"),
        ("sentinel://a:1,,b:2/0?service=s", "'' without host or port"),
        ("sentinel://a:x/0?service=s", "'a:x', which is not host:port"),
        ("sentinel:///0?service=s", "names no host"),
        ("sentinel://a:1/0?service=s&master_name=s", "unknown option 'master_name'"),
        ("sentinel://a:1/0?service=s&ssl_cert_reqs=none", "not supported with sentinel://"),
        ("sentinel://a:1/0?service=s;sentinel://b:1/0?service=s", "several servers"),
    ],
)
def test_a_wrong_url_is_told_by_what_is_wrong(url: str, says: str) -> None:
    assert says in urls.fault(url)
    with pytest.raises(ValueError, match=r".") as caught:
        parse(url)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cret@h/one",
        "redis://u:s3cret@h:99999",
        "unix://:s3cret@h/x",
        "sentinel://u:s3cret@h/0?service=s",
        "sentinel://h:x/0?service=s&sentinel_password=s3cret",
        "sentinel://h:1/0?sentinel_password=s3cret",
    ],
)
def test_no_fault_tells_the_password(url: str) -> None:
    assert urls.fault(url)
    assert "s3cret" not in urls.fault(url)


def test_a_parsed_url_does_not_show_its_secrets(tmp_path: Path) -> None:
    shown = repr(parse("rediss://u:s3cret@h/1?ssl_password=s3cret"))
    assert "s3cret" not in shown
    assert "s3cret" not in repr(parse(SENTINEL))


def test_files_of_a_tls_url_must_exist(tmp_path: Path) -> None:
    ca = tmp_path / "ca 1.pem"
    ca.touch()
    url = f"rediss://h?ssl_ca_certs={ca}"
    assert urls.fault(url) == ""
    assert parse(urls.for_broker(url)).tls_options == {"ssl_ca_certs": str(ca), "ssl_cert_reqs": "required"}


def test_what_to_set_when_a_certificate_is_refused() -> None:
    refused = OSError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate")
    assert "ssl_ca_certs" in urls.untrusted(refused)
    assert urls.untrusted(OSError("Connection refused")) == ""
