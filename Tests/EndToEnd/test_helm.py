"""deploy/helm/conclave: Helm renders it, Kubernetes' schemas accept it, its references are valid, and each program accepts its configuration.

The engine is Helm's own, as a library (package helm-python-sdk); no cluster runs.
"""

import base64
import contextlib
import copy
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

import helm_python as helm
import kubernetes_validate
import pytest
import yaml

from conftest import BINARY, PATIENCE, free_port, wait_for

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/conclave"
SERVER = 900
WHOLE = {
    "tls": {"secret": "calls-tls"},
    "secret": "app-secrets",
    "config": {
        "guests": True,
        "webhooks": {"url": "https://app.example/events", "secretFile": "/run/conclave/secrets/webhooks"},
        "media": {"announce": ["203.0.113.7"]},
        "listen": {"proxies": ["10.0.0.0/8"]},
    },
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "ingress-tls"},
    "coturn": {"enabled": True, "serverAddresses": ["203.0.113.7", "2001:db8::7"], "tls": {"secret": "turn-tls"}},
    "prometheus": {"enabled": True},
    "monitoring": {"operator": True, "dashboard": True, "labels": {"release": "kube-prometheus"}},
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"calls": "yes"},
    "workers": 3,
}
RELEASES = {
    "default": {},
    "whole": WHOLE,
    "pod-network": {"hostNetwork": False, "config": {"media": {"announce": ["203.0.113.7"]}}},
    "claims-and-secrets-of-their-own": {
        "state": {"existingClaim": "calls"},
        "coturn": {"enabled": True, "serverAddresses": ["203.0.113.7"], "existingSecret": "our-turn"},
        "prometheus": {"enabled": True, "existingClaim": "metrics"},
        "imagePullSecrets": [{"name": "registry"}],
    },
    "addresses-of-their-own": {"listenAddress": "127.0.0.3", "metricsAddress": "127.0.0.2", "tls": {"secret": "calls-tls"}},
}


def render(values, chart=CHART):
    """The objects of a release `demo`, by kind and name."""
    with helm.Chart.load(chart) as loaded:
        texts = loaded.render(values, name="demo", namespace="calls")
    texts.pop("conclave/templates/NOTES.txt")
    documents = [document for text in texts.values() for document in yaml.safe_load_all(text) if document]
    named = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(named) == len(documents), "each object has its own name"
    return named


@pytest.fixture(scope="module", params=RELEASES.values(), ids=RELEASES)
def release(request):
    return render(request.param)


@pytest.fixture(scope="module")
def whole():
    return render(WHOLE)


def pods(objects):
    """Kind, name and pod of each workload."""
    return [(kind, name, item["spec"]["template"]) for (kind, name), item in objects.items() if kind in ("StatefulSet", "Deployment")]


def server(objects):
    pod = objects["StatefulSet", "demo-conclave"]["spec"]["template"]["spec"]
    return pod, pod["containers"][0], json.loads(objects["ConfigMap", "demo-conclave"]["data"]["config.json"])


def place(listener):
    """The address and port of a listener in the configuration; the address is '' if it has none."""
    address, _, port = f"{listener}".rpartition(":")
    return address.strip("[]"), int(port)


def named_ports(container):
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def test_helm_finds_nothing_to_say():
    told = helm.lint(CHART)
    assert [message["error"] for message in told["messages"]] == ["icon is recommended"] and told["errors"] == []
    version = subprocess.run([BINARY, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    with helm.Chart.load(CHART) as chart:
        assert (chart.metadata["version"], chart.metadata["appVersion"]) == (version, version)


REFUSED = {
    "a value that does not exist": ({"replicas": 2}, "replicas"),
    "a port beyond all": ({"ports": {"http": 70000}}, "ports"),
    "what the chart makes itself": ({"config": {"listen": {"http": 80}}}, "http"),
    "no worker": ({"workers": 0}, "workers"),
    "a command as an address": ({"coturn": {"serverAddresses": ["1.2.3.4 --no-auth"]}}, "serverAddresses"),
    "a pod network without addresses": ({"hostNetwork": False}, "config.media.announce"),
    "an Ingress that is not named as a proxy": ({"ingress": {"enabled": True}}, "config.listen.proxies"),
    "an address beside that of the chart": ({"config": {"listen": {"address": "127.0.0.1"}}}, "address"),
    "a name as an address": ({"metricsAddress": "node-1"}, "metricsAddress"),
    "an address of the node in a pod network": (RELEASES["pod-network"] | {"metricsAddress": "10.0.0.4"}, "hostNetwork"),
    "metrics for the node alone, and a Prometheus elsewhere": ({"metricsAddress": "127.0.0.1", "prometheus": {"enabled": True}}, "metricsAddress"),
    "the same by the address of all": ({"listenAddress": "::1", "monitoring": {"operator": True}}, "metricsAddress"),
    "pages for the node alone, and an Ingress": (WHOLE | {"listenAddress": "127.0.0.1", "metricsAddress": "10.0.0.4"}, "listenAddress"),
    "a relay without its server": ({"coturn": {"enabled": True}}, "coturn.serverAddresses"),
}


@pytest.mark.parametrize(("values", "named"), REFUSED.values(), ids=REFUSED)
def test_values_that_cannot_work_are_refused_by_name(values, named):
    with pytest.raises(helm.HelmError) as refused:
        render(values)
    assert named in str(refused.value)


@pytest.mark.parametrize("version", ["1.25", "1.37"])
def test_kubernetes_accepts_each_object(release, version):
    own = [item for item in release.values() if not item["apiVersion"].startswith("monitoring.coreos.com/")]
    assert len(own) >= 3
    for item in own:
        kubernetes_validate.validate(item, version, strict=True)
    spoiled = copy.deepcopy(release["StatefulSet", "demo-conclave"])
    spoiled["spec"]["template"]["spec"]["containers"][0]["port"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(spoiled, version, strict=True)


def test_every_name_that_is_used_is_there(release, request):
    """Only those named in the values come from elsewhere."""
    elsewhere = {"calls-tls", "app-secrets", "ingress-tls", "our-turn", "turn-tls", "registry", "calls", "metrics"}
    for kind, name, template in pods(release):
        pod = template["spec"]
        claims = release[kind, name]["spec"].get("volumeClaimTemplates", [])
        volumes = {volume["name"] for volume in (*pod["volumes"], *(claim["metadata"] for claim in claims))}
        mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert mounted == volumes, "each volume is mounted, and each mount has one"
        for volume in pod["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in release
            if "secret" in volume:
                assert volume["secret"]["secretName"] in elsewhere | {name for kind, name in release if kind == "Secret"}
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in elsewhere
        for variable in pod["containers"][0].get("env", []):
            wanted = variable["valueFrom"]["secretKeyRef"]
            assert wanted["name"] in elsewhere or wanted["key"] in release["Secret", wanted["name"]]["data"]
        assert release[kind, name]["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    for (kind, name), item in release.items():
        if kind == "Service":
            chosen = [pod for _, _, pod in pods(release) if item["spec"]["selector"].items() <= pod["metadata"]["labels"].items()]
            assert len(chosen) == 1, "a service leads to one workload"
            assert {port["targetPort"] for port in item["spec"]["ports"]} <= set(named_ports(chosen[0]["spec"]["containers"][0]))
        if kind == "Ingress":
            backend = item["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
            assert backend["port"]["name"] in {port["name"] for port in release["Service", backend["name"]]["spec"]["ports"]}
        if kind == "PodMonitor":
            _, container, _ = server(release)
            assert item["spec"]["podMetricsEndpoints"][0]["port"] in named_ports(container)


def test_ports_are_those_of_the_configuration(release):
    pod, container, config = server(release)
    ports, listen = named_ports(container), config["listen"]
    assert (ports["http"], ports["metrics"]) == (place(listen["http"])[1], place(listen["metrics"])[1])
    assert ports.get("stomp-tls", place(listen["stompTLS"])[1]) == place(listen["stompTLS"])[1]
    assert ("stomp-tls" in ports) == ("tls" in config) and listen["stomp"] is None
    media = {(port["containerPort"], port["protocol"]) for port in container["ports"] if "hostPort" in port}
    numbers = range(config["media"]["port"], config["media"]["port"] + config["media"]["workers"])
    assert media == {(number, protocol) for number in numbers for protocol in ("UDP", "TCP")}
    assert all(port.get("hostPort", port["containerPort"]) == port["containerPort"] for port in container["ports"])
    # Ports for services of type NodePort, and those of outgoing connections.
    assert not set(numbers) & set(range(30000, 32768)) and max(numbers) < 32768
    assert pod["terminationGracePeriodSeconds"] > config["drain"]


ADDRESSES = {
    "none": ({}, "", "", None),
    "of both": ({"listenAddress": "10.0.0.4"}, "10.0.0.4", "10.0.0.4", "10.0.0.4"),
    "of the metrics": ({"metricsAddress": "127.0.0.1"}, "", "127.0.0.1", "127.0.0.1"),
    "of IPv6": ({"listenAddress": "2001:db8::7", "metricsAddress": "::1"}, "2001:db8::7", "::1", "::1"),
    "all of IPv4": ({"listenAddress": "0.0.0.0"}, "0.0.0.0", "0.0.0.0", None),
    "all, in a pod network": (RELEASES["pod-network"] | {"listenAddress": "::"}, "::", "::", None),
}


@pytest.mark.parametrize(("values", "pages", "metrics", "probed"), ADDRESSES.values(), ids=ADDRESSES)
def test_listeners_have_their_addresses_and_probes_ask_there(values, pages, metrics, probed):
    _, container, config = server(render(values))
    places = {name: place(listener) for name, listener in config["listen"].items() if listener is not None}
    assert places == {"http": (pages, 8080), "stompTLS": (pages, 61614), "metrics": (metrics, 9464)}
    assert [container[probe]["httpGet"].get("host") for probe in ("startupProbe", "readinessProbe", "livenessProbe")] == [probed] * 3


def test_pods_are_hardened(release):
    for _, name, template in pods(release):
        pod, container = template["spec"], template["spec"]["containers"][0]
        assert pod["automountServiceAccountToken"] is False and pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] is True and rights["allowPrivilegeEscalation"] is False
        added = ["NET_BIND_SERVICE"] if name.endswith("-turn") else None
        assert rights["capabilities"]["drop"] == ["ALL"] and rights["capabilities"].get("add") == added
        assert container["resources"]["requests"]


def test_a_changed_configuration_restarts_the_pod():
    sums = [render(values)["StatefulSet", "demo-conclave"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"] for values in ({}, {}, {"workers": 1})]
    assert sums[0] == sums[1] != sums[2]


@contextlib.contextmanager
def mounted(objects):
    """A folder with the files that a node would mount into the server's pod, with their owners and modes: owned by root, readable by `fsGroup`."""
    if os.geteuid() != 0:
        pytest.fail("run this test as root: it makes files of other users")
    pod, container, _ = server(objects)
    made = {"TURN": objects["Secret", "demo-conclave-turn"]["data"]} if ("Secret", "demo-conclave-turn") in objects else {}
    certificates = ROOT / "Tests/ListeningTests/Vectors"
    elsewhere = {
        "calls-tls": {"tls.crt": (certificates / "test-certificate.pem").read_bytes(), "tls.key": (certificates / "test-key.pem").read_bytes()},
        "app-secrets": {"webhooks": b"w" * 32},
        "demo-conclave-turn": {key: base64.b64decode(value) for key, value in made.get("TURN", {}).items()},
    }
    folder = pathlib.Path(tempfile.mkdtemp(prefix="conclave-pod-"))
    folder.chmod(0o755)
    try:
        sources = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            place = folder / mount["mountPath"].lstrip("/")
            place.mkdir(parents=True)
            source = sources.get(mount["name"], {})
            if secret := source.get("secret"):
                for key, value in elsewhere[secret["secretName"]].items():
                    (place / key).write_bytes(value)
                    os.chown(place / key, 0, pod["securityContext"]["fsGroup"])
                    (place / key).chmod(secret["defaultMode"])
            elif "configMap" in source:
                for key, text in objects["ConfigMap", source["configMap"]["name"]]["data"].items():
                    moved = re.sub(r'"(/(?:run|var/lib)/conclave)', rf'"{folder}\1', text)
                    (place / key).write_text(moved)
            else:
                os.chown(place, 0, pod["securityContext"]["fsGroup"])
                place.chmod(0o2775)
        yield folder
    finally:
        shutil.rmtree(folder)


def free_ports(workers):
    media = free_port()
    while any(free_port() != media + later for later in range(1, workers)):
        media = free_port()
    return {"http": free_port(), "metrics": free_port(), "stompTLS": free_port(), "media": media}


@pytest.mark.parametrize("name", ["default", "whole", "addresses-of-their-own"])
def test_the_server_runs_as_in_its_pod(name):
    """With the pod's user, files and arguments, the probes are answered, and the metrics have their own port and address."""
    workers = RELEASES[name].get("workers", 2)
    objects = render(RELEASES[name] | {"ports": free_ports(workers)})
    pod, container, config = server(objects)
    with mounted(objects) as folder, tempfile.TemporaryFile() as log:
        user = [f"--reuid={pod['securityContext']['runAsUser']}", f"--regid={pod['securityContext']['runAsGroup']}", "--clear-groups"]
        limits = ["setpriv", *user, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        arguments = [argument.replace("/etc/conclave", f"{folder}/etc/conclave") for argument in container["args"]]
        command = [*limits, os.path.realpath(BINARY), *arguments]
        told = subprocess.run([*command[:-3], "check-config", *arguments[1:]], capture_output=True, text=True, timeout=30 * PATIENCE)
        assert told.returncode == 0, told.stderr
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

        def output():
            log.seek(0)
            return log.read().decode()

        def get(address, port, path):
            with contextlib.suppress(urllib.error.HTTPError, ConnectionError):
                with urllib.request.urlopen(f"http://{address or '127.0.0.1'}:{port}{path}", timeout=5) as reply:
                    return reply.status
            return None

        def answers(probe):
            assert process.poll() is None, output()
            asked = container[probe]["httpGet"]
            with contextlib.suppress(OSError):
                return get(asked.get("host"), named_ports(container)[asked["port"]], asked["path"]) == 200

        def is_open(address, port):
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection((address, port), 5):
                return True
            return False

        try:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                wait_for(lambda: answers(probe), 30, lambda: f"the {probe} is answered: {output()}")
            pages, metrics = place(config["listen"]["http"]), place(config["listen"]["metrics"])
            assert get(*metrics, "/metrics") == 200 and get(*pages, "/metrics") is None
            for address, port in (pages, metrics):
                assert is_open(address or "127.0.0.1", port) and is_open("127.0.0.1", port) == (address == ""), "at no other address"
            state = folder / "var/lib/conclave/state"
            assert state.stat().st_uid == SERVER and state.stat().st_mode & 0o777 == 0o700
        finally:
            process.terminate()
        assert process.wait(10 * PATIENCE) == 0, output()


def test_the_image_is_the_one_that_is_built(release):
    pod, container, _ = server(release)
    context = pod["securityContext"]
    built = (ROOT / "deploy/package").read_text()
    assert f"--config.user {context['runAsUser']}:{context['runAsGroup']}" in built and "--config.entrypoint /usr/lib/conclave/conclave" in built
    assert container["image"] == yaml.safe_load((ROOT / "deploy/compose/compose.yml").read_text())["services"]["conclave"]["image"]


def test_coturn_has_the_rules_and_the_image_of_compose(whole):
    compose = yaml.safe_load((ROOT / "deploy/compose/compose.yml").read_text())["services"]
    container = whole["Deployment", "demo-conclave-turn"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == compose["coturn"]["image"]
    assert whole["ConfigMap", "demo-conclave-turn"]["data"]["turnserver.conf"].strip() == (ROOT / "deploy/turnserver.conf").read_text().strip()
    assert [argument for argument in container["args"] if "allowed" in argument] == ["--allowed-peer-ip=203.0.113.7", "--allowed-peer-ip=2001:db8::7"]
    assert len(base64.b64decode(whole["Secret", "demo-conclave-turn"]["data"]["secret"])) >= 32


def test_coturn_with_a_certificate_is_announced_on_443(whole):
    *_, config = server(whole)
    assert config["turn"]["urls"][-1] == "turns:turn.app.example:443?transport=tcp"
    pod = whole["Deployment", "demo-conclave-turn"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert "--tls-listening-port=5349" in container["args"] and named_ports(container)["turns"] == 5349
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    files = [argument.split("=", 1)[1] for argument in container["args"] if argument.startswith(("--cert=", "--pkey="))]
    assert [os.path.split(file) for file in files] == [("/etc/coturn-tls", "tls.crt"), ("/etc/coturn-tls", "tls.key")]
    assert volumes[mounted["/etc/coturn-tls"]]["secret"]["secretName"] == "turn-tls"


def test_coturn_accepts_its_arguments(whole, tmp_path):
    container = whole["Deployment", "demo-conclave-turn"]["spec"]["template"]["spec"]["containers"][0]
    (tmp_path / "turnserver.conf").write_text(whole["ConfigMap", "demo-conclave-turn"]["data"]["turnserver.conf"])
    port, secret = free_port(), "0123456789abcdef0123456789abcdef"
    arguments = [argument.replace("$(TURN_SECRET)", secret).replace("=/tmp", f"={tmp_path}").replace("/etc/coturn", str(tmp_path)) for argument in container["args"]]
    ports = {"--listening-port": port, "--tls-listening-port": free_port()}
    arguments = [f"{name}={ports[name]}" if (name := argument.split("=")[0]) in ports else argument for argument in arguments]
    certificate = pathlib.Path(f"{tmp_path}-tls")
    certificate.mkdir()
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=turn.app.example".split()
    subprocess.run([*made, "-keyout", certificate / "tls.key", "-out", certificate / "tls.crt"], check=True, capture_output=True)
    log = tmp_path / "log"
    process = subprocess.Popen(["turnserver", *arguments, "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1"], stdout=log.open("wb"), stderr=subprocess.STDOUT)
    try:
        def is_open():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
                return True

        wait_for(is_open, 10, log.read_text)

        def shown():
            with contextlib.suppress(OSError):
                return ssl.get_server_certificate(("127.0.0.1", ports["--tls-listening-port"]), timeout=10)

        wait_for(lambda: shown() == (certificate / "tls.crt").read_text(), 10, log.read_text)
        # A secret is required: without it nothing is relayed.
        client = subprocess.run(["turnutils_uclient", "-n", "1", "-y", "-c", "-p", str(port), "127.0.0.1"], capture_output=True, text=True, timeout=60 * PATIENCE)
        assert client.returncode != 0
        told = log.read_text()
        assert not any(fault in told for fault in ("nrecognized option", "Bad configuration format", "CONFIG ERROR")), told
    finally:
        process.kill()
        process.wait()


def test_prometheus_accepts_its_files_and_scrapes_the_server(whole, tmp_path):
    for name, text in whole["ConfigMap", "demo-conclave-prometheus"]["data"].items():
        (tmp_path / name).write_text(text)
    told = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, timeout=30)
    assert told.returncode == 0 and "rules found" in told.stdout, told.stdout + told.stderr
    target = yaml.safe_load((tmp_path / "prometheus.yml").read_text())["scrape_configs"][0]["static_configs"][0]["targets"][0]
    host, port = target.split(":")
    assert int(port) in {port["port"] for port in whole["Service", host]["spec"]["ports"]}
    compose = yaml.safe_load((ROOT / "deploy/compose/compose.yml").read_text())["services"]
    image = whole["Deployment", "demo-conclave-prometheus"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == compose["prometheus"]["image"]


def test_rules_and_dashboard_are_those_of_deploy_monitoring(whole, tmp_path):
    rule = whole["PrometheusRule", "demo-conclave"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]))
    told = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True, timeout=30)
    assert told.returncode == 0, told.stdout + told.stderr
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/monitoring/alerts.yml").read_text())
    assert rule["metadata"]["labels"]["release"] == "kube-prometheus"
    shown = whole["ConfigMap", "demo-conclave-dashboard"]["data"]["conclave.json"]
    assert json.loads(shown) == json.loads((ROOT / "deploy/monitoring/grafana.json").read_text())
    relabeled = whole["PodMonitor", "demo-conclave"]["spec"]["podMetricsEndpoints"][0]["relabelings"]
    assert {"targetLabel": "job", "replacement": "conclave"} in relabeled, "the alerts look for this job"
