"""The dashboard and the alerts of deploy/monitoring: Prometheus accepts them, and the server has each metric and label that they use."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from conftest import Server, free_port, wait_for
from postgres import Postgres

FOLDER = pathlib.Path(__file__).parents[2] / "deploy/monitoring"


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A server with a certificate, a database of PostgreSQL, and a back end that does not answer: some metrics exist only then."""
    secret = "s" * 32
    back_end = {kind: {"url": f"http://127.0.0.1:{free_port()}/", "secret": secret} for kind in ("webhooks", "authorize")}
    vectors = pathlib.Path(__file__).parents[1] / "ListeningTests/Vectors"
    files = {kind: str(vectors / f"test-{kind}.pem") for kind in ("certificate", "key")}
    with contextlib.closing(Postgres()) as engine:
        folder = tmp_path_factory.mktemp("watched")
        running = Server(folder, tls=files, store=engine.store(folder, engine.make_database()), recordings={"reserveMiB": 0}, **back_end)
        wait_for(lambda: "conclave_store_synchronous 0" in running.get("/metrics"), 10, "the database was asked")
        yield running
        running.stop()


def alerts():
    return re.findall(r"^        expr: (.*)", (FOLDER / "alerts.yml").read_text(), re.M)


def panels():
    """(title, expression) of each query, with Grafana's variables replaced."""
    for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*")


def promtool(*arguments, text=None):
    run = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, cwd=FOLDER, timeout=60)
    return run.returncode, run.stdout + run.stderr


def test_prometheus_accepts_rules_and_configuration():
    for arguments in (["check", "rules", "alerts.yml"], ["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]):
        status, told = promtool(*arguments)
        assert status == 0, told


def test_operate_md_counts_the_alerts():
    said = re.search(r"^\| `alerts.yml` \| (\d+) alerts ", (FOLDER.parents[1] / "docs/operate.md").read_text(), re.M)
    assert int(said[1]) == len(re.findall(r"^      - alert: ", (FOLDER / "alerts.yml").read_text(), re.M)) == len(alerts())


def test_prometheus_accepts_the_metrics_page(watched):
    status, told = promtool("check", "metrics", text=watched.get("/metrics"))
    assert (status, told) == (0, "")


def test_the_page_has_the_process_as_prometheus_clients_have_it(watched):
    lines = watched.get("/metrics").splitlines()
    kinds = dict(line.split(" ")[2:4] for line in lines if line.startswith("# TYPE process_"))
    assert kinds == {
        "process_cpu_seconds_total": "counter", "process_resident_memory_bytes": "gauge", "process_open_fds": "gauge",
        "process_max_fds": "gauge", "process_start_time_seconds": "gauge",
    }
    figures = {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines if line.startswith("process_")}
    assert figures.keys() == kinds.keys()
    pid = watched.pid
    assert abs(figures["process_start_time_seconds"] - os.stat(f"/proc/{pid}").st_ctime) < 60
    assert 0 < figures["process_open_fds"] <= figures["process_max_fds"]
    assert 0 < figures["process_cpu_seconds_total"] < time.time() - figures["process_start_time_seconds"] + 60 * os.cpu_count()
    assert 1 << 20 < figures["process_resident_memory_bytes"] < 1 << 36


@pytest.mark.parametrize("kind", ["alerts", "dashboard"])
def test_the_server_has_each_metric_and_label_that_is_used(watched, kind):
    samples = [line.rsplit(" ", 1)[0] for line in watched.get("/metrics").splitlines() if not line.startswith("#")]
    expressions = alerts() if kind == "alerts" else [expression for _, expression in panels()]
    selectors = {found for expression in expressions for found in re.findall(r"(conclave_\w+)(?:\{([^}]*)\})?", expression)}
    assert len(selectors) > 15
    for name, labels in selectors:
        series = [sample for sample in samples if re.split(r"[{]", sample)[0] == name]
        assert series, f"no metric {name}"
        # Scraping adds `instance` and `job`.
        for label, values in re.findall(r'(\w+)=~?"([^"]*)"', labels):
            for value in values.split("|") if label not in ("instance", "job") else ():
                assert any(f'{label}="{value}"' in sample for sample in series), f"no {name} with {label} {value}"
        for expression in expressions:
            for grouped in re.findall(rf"by \(([^)]*)\) \([a-z]*\(?{name}\b", expression):
                for label in set(grouped.split(", ")) - {"instance"}:
                    assert any(f'{label}="' in sample for sample in series), f"{name} has no label {label}"


@pytest.fixture(scope="module")
def prometheus(watched, tmp_path_factory):
    """Prometheus itself, which scrapes the server twice a second."""
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    config = (FOLDER / "prometheus.yml").read_text().replace("15s", "500ms").replace("conclave:8080", f"127.0.0.1:{watched.http_port}")
    config = config.replace("job_name: conclave", "job_name: conclave\n    scheme: https\n    tls_config: {insecure_skip_verify: true}")
    (folder / "prometheus.yml").write_text(config)
    (folder / "alerts.yml").write_text((FOLDER / "alerts.yml").read_text())
    arguments = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"]
    process = subprocess.Popen(["prometheus", *arguments], stdout=subprocess.DEVNULL, stderr=(folder / "log").open("wb"))

    def query(expression):
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=5) as reply:
            return json.load(reply)["data"]["result"]

    def has_scraped():
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return int(query('count_over_time(up{job="conclave"}[1m])')[0]["value"][1]) >= 4
        except (OSError, IndexError):
            return False

    try:
        wait_for(has_scraped, 30, "Prometheus scrapes the server")
        yield query
    finally:
        process.terminate()
        process.wait(10)


def test_each_panel_shows_something(prometheus):
    for title, expression in panels():
        # Series that are shown only if they are not zero are absent on a quiet server.
        assert prometheus(expression.removesuffix(" > 0")), f"{title}: {expression}"
