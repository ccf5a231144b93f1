"""Settings: sources and their order, faults all at once, masking, derived values."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from callsheet.errors import SettingsError
from callsheet.settings import SERVER_URL_FILE, Settings, describe, load
from callsheet.settings.schema import FIELDS


def toml(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(env: dict[str, str], file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(env, file)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no callsheet.toml here unless a test writes one
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))


def test_defaults_need_nothing() -> None:
    settings = load({"XDG_DATA_HOME": "/data"})
    assert settings.data_dir == Path("/data/callsheet")
    assert settings.broker_url == settings.store_url == "redis://127.0.0.1:6379/0"
    assert settings.storage_url == "file:///data/callsheet/films"
    assert settings.models_dir == Path("/data/callsheet/models")
    assert (settings.lease_s, settings.renew_s, settings.gpus) == (3.0, 1.0, ())
    assert settings.origins["lease_s"] == "default"


def test_a_relative_xdg_folder_is_ignored() -> None:
    assert load({"XDG_DATA_HOME": "here"}).data_dir == Path.home() / ".local/share/callsheet"


def test_file_beats_default_and_variable_beats_file(tmp_path: Path) -> None:
    file = toml(tmp_path, 'lease_s = 9\nrenew_s = 2.5\ngpus = ["h100", "a100:40"]\n')
    settings = load({"CALLSHEET_LEASE_S": "12.5"}, file)
    assert (settings.lease_s, settings.renew_s, settings.gpus) == (12.5, 2.5, ("h100", "a100:40"))
    assert settings.origins["lease_s"] == "CALLSHEET_LEASE_S"
    assert settings.origins["renew_s"] == f"{file}: renew_s"


def test_the_file_is_named_by_argument_variable_or_working_folder(tmp_path: Path) -> None:
    (tmp_path / "callsheet.toml").write_text("max_crashes = 7\n")
    other = toml(tmp_path, "max_crashes = 8\n")
    assert load({}).max_crashes == 7
    assert load({"CALLSHEET_CONFIG": str(other)}).max_crashes == 8
    third = tmp_path / "third.toml"
    third.write_text("max_crashes = 9\n")
    assert load({"CALLSHEET_CONFIG": str(other)}, third).max_crashes == 9


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("CALLSHEET_GPUS", "h100, a100:40", "gpus", ("h100", "a100:40")),
        ("CALLSHEET_S3_ALLOW_HTTP", "yes", "s3_allow_http", True),
        ("CALLSHEET_TASK_ALWAYS_EAGER", "False", "task_always_eager", False),
        ("CALLSHEET_FLOWER_PORT", "0", "flower_port", 0),
        ("CALLSHEET_RETENTION_S", "86400", "retention_s", 86400.0),
        (
            "CALLSHEET_BROKER_URL",
            "rediss://user:p%40ss@host:6380/1?ssl_cert_reqs=required",
            "broker_url",
            None,
        ),
        ("CALLSHEET_BROKER_URL", "redis+socket:///run/redis.sock", "broker_url", None),
        ("CALLSHEET_BROKER_URL", "memory://", "broker_url", None),
        ("CALLSHEET_STORAGE_URL", "s3://films/prod", "storage_url", None),
        ("CALLSHEET_STORAGE_URL", "memory://", "storage_url", None),
    ],
)
def test_variables_are_read_as_their_type(variable: str, text: str, name: str, value: object) -> None:
    got = getattr(load({variable: text}), name)
    expected = text if value is None else value
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("CALLSHEET_LEASE_S", "abc", "is not a number; allowed: 0.1 to 3600 s"),
        ("CALLSHEET_LEASE_S", "", "is not a number"),
        ("CALLSHEET_LEASE_S", "nan", "is not finite"),
        ("CALLSHEET_LEASE_S", "inf", "is not finite"),
        ("CALLSHEET_MAX_CRASHES", "2.5", "is not a whole number; allowed: 1 to 100 attempts"),
        ("CALLSHEET_MAX_CRASHES", "0", "is out of range"),
        ("CALLSHEET_CONNECT_TIMEOUT_S", "5", "allowed: 0.1 to 4 s"),
        ("CALLSHEET_TASK_ALWAYS_EAGER", "perhaps", "is neither true nor false"),
        ("CALLSHEET_GPUS", "h100,h10", "unknown GPU class 'h10'; allowed: a comma-separated list"),
        ("CALLSHEET_GPUS", "h100:", "neither class nor class:GiB"),
        ("CALLSHEET_GPU_CLASSES", "a100:40", "unknown GPU class"),
        ("CALLSHEET_LOG_LEVEL", "LOUD", "allowed: DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("CALLSHEET_ENCODE_PRESET", "warp", "veryfast"),
        ("CALLSHEET_FLOWER_HOST", "", "is empty"),
        ("CALLSHEET_BROKER_URL", "amqp://host", "has no allowed scheme"),
        ("CALLSHEET_BROKER_URL", "redis://", "names no host"),
        ("CALLSHEET_BROKER_URL", "redis://host:99999", "is no URL"),
        ("CALLSHEET_BROKER_URL", "unix://", "names no socket"),
        ("CALLSHEET_BROKER_URL", "sentinel://a:26379;sentinel://b:26379", "several servers"),
        ("CALLSHEET_STORAGE_URL", "/films", "has no allowed scheme"),
        ("CALLSHEET_STORAGE_URL", "file://films", "three slashes"),
        ("CALLSHEET_STORAGE_URL", "s3://", "names no bucket"),
        ("CALLSHEET_S3_ENDPOINT", "minio:9000", "has no allowed scheme"),
        ("CALLSHEET_CATALOG", "/no/such/file.toml", "is no file"),
    ],
)
def test_a_wrong_value_is_named_with_source_and_what_is_allowed(variable: str, text: str, says: str) -> None:
    message = faults({variable: text})
    assert variable in message
    assert variable.removeprefix("CALLSHEET_").lower() in message
    assert says in message
    assert "allowed: " in message


def test_all_faults_of_all_sources_come_at_once(tmp_path: Path) -> None:
    file = toml(tmp_path, 'tick_s = "often"\nleese_s = 3\nmax_crashes = true\nlog_level = 3\n')
    message = faults({"CALLSHEET_RENEW_S": "9999", "CALLSHEET_GPU": "h100"}, file)
    assert message.startswith("6 settings are wrong; nothing was started")
    assert f"tick_s = often (from {file}: tick_s) is not a number" in message
    assert f"leese_s (from {file}: leese_s) is not a setting; did you mean lease_s?" in message
    assert "max_crashes = true" in message
    assert "log_level = 3" in message
    assert "renew_s = 9999 (from CALLSHEET_RENEW_S) is out of range" in message
    assert "CALLSHEET_GPU (from the environment) is not a setting; did you mean CALLSHEET_GPUS?" in message


def test_a_name_like_no_setting_points_to_the_list() -> None:
    assert "`callsheet config` lists every setting" in faults({"CALLSHEET_ZZZZZZ": "1"})


def test_a_wrong_variable_is_not_hidden_by_a_right_file(tmp_path: Path) -> None:
    assert "lease_s = x" in faults({"CALLSHEET_LEASE_S": "x"}, toml(tmp_path, "lease_s = 9\n"))


@pytest.mark.parametrize("content", [b"lease_s = ", b"\xff\xfe", b"[a\n"])
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    message = faults({"CALLSHEET_LEASE_S": "x"}, file)
    assert f"{file} (named by argument) is not TOML" in message
    assert "lease_s = x" in message  # the variables' faults are told too


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    message = faults({"CALLSHEET_CONFIG": str(tmp_path / "none.toml")})
    assert "(named by CALLSHEET_CONFIG) cannot be read: No such file" in message


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"CALLSHEET_RENEW_S": "1.5"}, "renew_s must be less than half of lease_s (1.5)"),
        (
            {"CALLSHEET_RETENTION_S": "60", "CALLSHEET_LEASE_S": "60"},
            "retention_s must be more than lease_s (60)",
        ),
        ({"CALLSHEET_S3_ACCESS_KEY_ID": "me"}, "set both S3 keys, or neither"),
        ({"CALLSHEET_S3_ENDPOINT": "http://minio:9000"}, "set s3_allow_http = true, or use https://"),
        ({"CALLSHEET_GPUS": "h100,t4", "CALLSHEET_GPU_CLASSES": "h100"}, "gpus names t4, which gpu_classes"),
    ],
)
def test_settings_that_do_not_agree(env: dict[str, str], says: str) -> None:
    message = faults(env)
    assert says in message
    assert all(variable in message for variable in env)


def test_a_faulty_value_causes_no_second_fault() -> None:
    assert faults({"CALLSHEET_BROKER_URL": "nope"}).count("nope") == 1  # store_url only copies it
    assert "less than half" not in faults({"CALLSHEET_LEASE_S": "x", "CALLSHEET_RENEW_S": "9"})


def test_secrets_show_nowhere(tmp_path: Path) -> None:
    env = {
        "CALLSHEET_BROKER_URL": "redis://user:hunter2@host/0",
        "CALLSHEET_S3_ACCESS_KEY_ID": "me",
        "CALLSHEET_S3_SECRET_ACCESS_KEY": "sesame",
    }
    settings = load(env)
    shown = "\n".join(row.value for row in describe(settings))
    assert settings.broker_url == env["CALLSHEET_BROKER_URL"]
    for text in (shown, repr(settings), str(settings)):
        assert "redis://user:***@host/0" in text
        assert "hunter2" not in text
        assert "sesame" not in text
    # ... nor in errors, not even in those about them
    bad = env | {"CALLSHEET_BROKER_URL": "user:hunter2@host", "CALLSHEET_S3_ACCESS_KEY_ID": ""}
    assert "hunter2" not in faults(bad)
    assert "sesame" not in faults(bad)
    assert "sesame" not in faults({}, toml(tmp_path, 's3_secret_access_key = ["sesame"]\n'))


def test_the_url_of_a_running_stack_is_found(tmp_path: Path) -> None:
    (tmp_path / SERVER_URL_FILE).write_text("redis://127.0.0.1:7001/0\n")
    settings = load({"CALLSHEET_DATA_DIR": str(tmp_path)})
    assert settings.broker_url == settings.store_url == "redis://127.0.0.1:7001/0"
    assert settings.origins["broker_url"] == f"default: {tmp_path / SERVER_URL_FILE}"
    assert settings.origins["store_url"] == "default: broker_url"
    explicit = load({"CALLSHEET_DATA_DIR": str(tmp_path), "CALLSHEET_BROKER_URL": "redis://far/1"})
    assert explicit.broker_url == "redis://far/1"


def test_a_broken_url_of_a_stack_names_the_file(tmp_path: Path) -> None:
    (tmp_path / SERVER_URL_FILE).write_text("rubbish")
    assert str(tmp_path / SERVER_URL_FILE) in faults({"CALLSHEET_DATA_DIR": str(tmp_path)})


def test_an_empty_variable_asks_for_the_derived_value(tmp_path: Path) -> None:
    file = toml(tmp_path, 'store_url = "redis://store/0"\nbroker_url = "redis://broker/0"\n')
    assert load({"CALLSHEET_STORE_URL": ""}, file).store_url == "redis://broker/0"


def test_relative_paths_start_where_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "more.toml").write_text("")
    file = toml(folder, 'data_dir = "state"\ncatalog = "more.toml"\n')
    settings = load({"CALLSHEET_MODELS_DIR": "weights"}, file)
    assert settings.data_dir == folder / "state"
    assert settings.catalog == str(folder / "more.toml")
    assert settings.models_dir == tmp_path / "weights"


def test_kubernetes_service_links_are_no_settings() -> None:
    env = {
        "CALLSHEET_SERVICE_HOST": "10.0.0.7",
        "CALLSHEET_PORT": "tcp://10.0.0.7:80",
        "CALLSHEET_PORT_80_TCP_PROTO": "tcp",
        "CALLSHEET_API_SERVICE_PORT_HTTP": "80",
        "CALLSHEET_FLOWER_PORT": "tcp://10.0.0.7:5555",
    }
    assert load(env).flower_port == 5555
    assert "CALLSHEET_PORT" in faults({"CALLSHEET_PORT": "eighty"})


def test_the_launchers_own_variable_is_no_setting() -> None:
    assert load({"CALLSHEET_GPU": '{"name": "h100-0@node"}'}).gpus == ()


def test_replace_checks_and_moves_what_was_derived(tmp_path: Path) -> None:
    settings = load({"CALLSHEET_STORE_URL": "redis://store/0"})
    moved = settings.replace(data_dir=tmp_path, max_crashes=5)
    assert moved.storage_url == (tmp_path / "films").as_uri()
    assert moved.models_dir == tmp_path / "models"
    assert moved.store_url == "redis://store/0"
    assert moved.max_crashes == 5
    assert moved.origins["max_crashes"] == "replace()"
    assert settings.max_crashes == 3
    with pytest.raises(SettingsError, match="renew_s"):
        settings.replace(renew_s=2)
    with pytest.raises(TypeError):
        settings.replace(renew=2)  # type: ignore[call-arg, unused-ignore]


def test_a_value_that_was_replaced_says_who_gave_it() -> None:
    with pytest.raises(SettingsError, match=r"gpus = quantum \(from --gpus\)"):
        load({}).replace("--gpus", gpus=("quantum",))


def test_replace_keeps_a_derived_url_that_has_nothing_to_do_with_the_change(tmp_path: Path) -> None:
    (tmp_path / SERVER_URL_FILE).write_text("redis://127.0.0.1:7001/0")
    settings = load({"CALLSHEET_DATA_DIR": str(tmp_path)})
    (tmp_path / SERVER_URL_FILE).unlink()  # the stack stops while this process runs on
    assert settings.replace(log_level="DEBUG").broker_url == "redis://127.0.0.1:7001/0"


def test_settings_built_directly_are_checked_and_resolved(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, broker_url="memory://", lease_s=4)
    assert settings.store_url == "memory://"
    assert settings.lease_s == 4.0
    assert type(settings.lease_s) is float
    with pytest.raises(SettingsError, match="is not a number"):
        Settings(lease_s="4")  # type: ignore[arg-type]


def test_settings_are_frozen_and_cross_processes() -> None:
    settings = load({"CALLSHEET_GPUS": "h100"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.lease_s = 1.0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(load({"CALLSHEET_GPUS": "h100"}))


def test_every_setting_is_described() -> None:
    rows = describe(load({"CALLSHEET_GPUS": "h100,a100"}))
    assert [row.name for row in rows] == [field.name for field in FIELDS]
    assert all(row.meaning and row.source for row in rows)
    values = {row.name: row.value for row in rows}
    assert (values["gpus"], values["lease_s"], values["s3_allow_http"]) == ("h100,a100", "3", "false")
    assert {row.name: row.source for row in rows}["gpus"] == "CALLSHEET_GPUS"
    assert all(field.metadata["allowed"].text for field in FIELDS)
    assert [field.name for field in FIELDS if field.metadata["secret"]] == ["s3_secret_access_key"]


def test_loading_imports_nothing_heavy() -> None:
    heavy = "celery kombu redis pydantic torch tomllib difflib asyncio"
    load_and_list = "import sys, callsheet.settings as s; s.load({}); print(sorted(sys.modules.keys() & "
    code = f"{load_and_list}{set(heavy.split())!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_who_acts_is_no_setting() -> None:
    assert load({"CALLSHEET_USER": "ann"}).lease_s == 3.0
