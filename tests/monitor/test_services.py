"""Starting and stopping the desk's programs: real processes, a Grafana that is a stand-in, ports that are taken."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import stat
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aleazero.cli.main import run
from aleazero.core.errors import MissingExtra
from aleazero.monitor import services
from aleazero.monitor.programs import Desk, keep_password, write_provisioning
from aleazero.monitor.services import MonitorError, down, up

psutil = pytest.importorskip("psutil")

# As the plain grafana-server: of the environment it reads GF_SECTION_KEY; names that end in __FILE are the Docker
# image's own. Without a password it lets in admin/admin.
STAND_IN = """#!{python}
import base64, http.server, json, os, sys
keep = {{key: value for key, value in os.environ.items() if key.startswith("GF_")}}
json.dump({{**keep, "argv": sys.argv}}, open(os.environ["GF_PATHS_DATA"] + ".seen", "w"))
user = keep.get("GF_SECURITY_ADMIN_USER", "admin") + ":" + keep.get("GF_SECURITY_ADMIN_PASSWORD", "admin")
login = "Basic " + base64.b64encode(user.encode()).decode()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        allowed = self.path != "/api/org" or self.headers.get("Authorization") == login
        self.send_response(200 if allowed else 401); self.end_headers(); self.wfile.write(b"ok")
http.server.HTTPServer((keep["GF_SERVER_HTTP_ADDR"], int(keep["GF_SERVER_HTTP_PORT"])), Handler).serve_forever()
"""
FREE = {"prometheus": 0, "grafana": 0, "mlflow": 0}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path with nothing on it but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def login(url: str, password: str) -> int:
    said = base64.b64encode(f"admin:{password}".encode()).decode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url + "/api/org", headers={"Authorization": f"Basic {said}"})
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_without_programs_it_says_how_to_get_them(
    tmp_path: Path, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["monitor", "up", "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "prometheus: is not installed: apt-get install prometheus" in said
    assert "grafana: is not installed: https://grafana.com" in said
    assert run(["monitor", "down", "--runs", str(tmp_path)]) == 0
    assert "nothing runs" in capsys.readouterr().out


def test_a_grafana_is_started_once_with_a_password_of_its_own_and_stopped(
    tmp_path: Path, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(programs, "grafana-server", STAND_IN.format(python=sys.executable))
    desk = Desk(tmp_path, "127.0.0.1", "bgai")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        first = {service.name: service for service in up(desk, {**FREE, "grafana": wanted})}["grafana"]
    try:
        assert first.said == f"started (port {wanted} is taken)"
        assert first.url is not None
        assert urllib.request.urlopen(first.url).read() == b"ok"
        entry = json.loads((desk.folder / "monitor.json").read_text())["grafana"]
        again = {service.name: service for service in up(desk, FREE)}["grafana"]
        assert (again.said, again.url) == ("runs already", first.url)
        assert json.loads((desk.folder / "monitor.json").read_text())["grafana"] == entry
        seen = json.loads((desk.folder / "grafana" / "data.seen").read_text())
        assert seen["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
        password = desk.password_file.read_text()
        assert stat.S_IMODE(desk.password_file.stat().st_mode) == 0o600
        assert len(password) >= 20
        assert [login(first.url, word) for word in (password, "admin", "")] == [200, 401, 401]
        assert not any(password in word for word in seen["argv"])
        assert not any(password in path.read_text() for path in desk.folder.glob("*.*"))  # its log, monitor.json
        dashboard = Path(seen["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
        assert "bgai_training_loss" in dashboard.read_text()
    finally:
        stopped = down(desk)
    assert [(service.name, service.said) for service in stopped] == [("grafana", "stopped")]
    assert not psutil.pid_exists(entry["pid"])
    assert down(desk) == []


def test_a_number_that_belongs_to_somebody_else_now_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "127.0.0.1", "alea")
    desk.folder.mkdir(parents=True)
    entry = {"pid": os.getpid(), "began": 12345.0, "port": 1, "url": "http://127.0.0.1:1"}
    (desk.folder / "monitor.json").write_text(json.dumps({"prometheus": entry}))
    (service,) = down(desk)
    assert service.said == "had ended already"


def test_a_program_that_fails_is_named_with_its_last_words(tmp_path: Path, programs: Path) -> None:
    put(programs, "prometheus", f"#!{sys.executable}\nprint('no such flag'); raise SystemExit(3)\n")
    with pytest.raises(MonitorError, match=r"prometheus ended with code 3.*\n.*no such flag"):
        up(Desk(tmp_path, "127.0.0.1", "alea"), FREE)
    with pytest.raises(MonitorError, match=r"cannot listen on 192\.0\.2\.1"):
        up(Desk(tmp_path, "192.0.2.1", "alea"), FREE)


def test_one_that_never_answers_is_given_up_and_ended(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "START_SECONDS", 0.5)
    pid = tmp_path / "pid"
    put(
        programs,
        "prometheus",
        f"#!{sys.executable}\nimport os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n",
    )
    with pytest.raises(MonitorError, match="does not answer"):
        up(Desk(tmp_path, "127.0.0.1", "alea"), FREE)
    assert not psutil.pid_exists(int(pid.read_text()))


def test_targets_of_deleted_runs_are_forgotten_and_others_kept(tmp_path: Path, programs: Path) -> None:
    desk = Desk(tmp_path, "127.0.0.1", "alea")
    desk.targets.mkdir(parents=True)
    for name in ("gone", "gone~head", "there", "there~head"):
        (desk.targets / f"{name}.json").write_text("[]")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "config.toml").write_text("")
    up(desk, FREE)
    assert sorted(path.name for path in desk.targets.iterdir()) == ["there.json", "there~head.json"]


def test_provisioning_names_the_source_and_keeps_a_password_that_is_there(tmp_path: Path) -> None:
    write_provisioning(tmp_path, "alea", "http://127.0.0.1:9091")
    (source,) = json.loads((tmp_path / "provisioning/datasources/alea.yaml").read_text())["datasources"]
    assert (source["uid"], source["url"]) == ("alea-prometheus", "http://127.0.0.1:9091")
    (provider,) = json.loads((tmp_path / "provisioning/dashboards/alea.yaml").read_text())["providers"]
    assert len(list(Path(provider["options"]["path"]).glob("*.json"))) == 7
    first = keep_password(tmp_path / "deep" / "password")
    (tmp_path / "deep" / "password").chmod(0o644)
    assert keep_password(tmp_path / "deep" / "password") == first
    assert stat.S_IMODE((tmp_path / "deep" / "password").stat().st_mode) == 0o600


def test_a_malformed_prefix_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["monitor", "up", "--metrics-prefix", "9x", "--runs", str(tmp_path)]) == 2
    assert "'9x'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_files_for_a_grafana_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["monitor", "dashboards", str(tmp_path / "out"), "--metrics-prefix", "bgai"]) == 0
    written = capsys.readouterr().out.split()
    assert sorted(written) == sorted(str(path) for path in (tmp_path / "out").iterdir())
    assert len(written) == 8
    assert shutil.which("prometheus") is None or "bgai_alarms_total" in (tmp_path / "out" / "rules.yml").read_text()


def test_two_that_start_at_once_start_one(tmp_path: Path, programs: Path) -> None:
    put(programs, "grafana-server", STAND_IN.format(python=sys.executable))
    desk = Desk(tmp_path, "127.0.0.1", "alea")
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(up, desk, FREE) for _ in range(2)]
        said = sorted(service.said for job in jobs for service in job.result() if service.name == "grafana")
    entry = json.loads((desk.folder / "monitor.json").read_text())["grafana"]
    assert [service.said for service in down(desk)] == ["stopped"]
    assert said == ["runs already", "started"]
    assert not psutil.pid_exists(entry["pid"])


def test_without_psutil_nothing_is_started(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(programs, "grafana-server", f"#!{sys.executable}\nopen({str(tmp_path / 'began')!r}, 'w')\n")
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(MissingExtra, match="psutil"):
        up(Desk(tmp_path, "127.0.0.1", "alea"), FREE)
    assert not (tmp_path / "began").exists()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, programs: Path) -> None:
    (tmp_path / ".desk").write_text("")
    with pytest.raises(MonitorError, match=r"\.desk cannot be used"):
        up(Desk(tmp_path, "127.0.0.1", "alea"), FREE)


def test_dashboards_that_cannot_be_written_are_an_error_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(["monitor", "dashboards", str(tmp_path / "file")]) == 2
    assert "cannot be written to" in capsys.readouterr().err


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")
def test_it_listens_on_the_other_loopback_address(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("prometheus", path=os.defpath + ":/usr/bin")
    assert real is not None
    (programs / "prometheus").symlink_to(real)
    desk = Desk(tmp_path, "::1", "bgai")
    monkeypatch.setattr("aleazero.monitor.programs._mlflow", lambda desk, port: None)
    found = {service.name: service for service in up(desk, FREE)}["prometheus"]
    try:
        assert (found.url or "").startswith("http://[::1]:")
        with urllib.request.urlopen(f"{found.url}/-/ready") as answer:
            assert answer.status == 200
    finally:
        down(desk)
