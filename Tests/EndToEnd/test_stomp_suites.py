"""The test suites of two general STOMP clients, as their authors ship them, against our server with `/topic` and `/queue` open to an app.

stomp.py's is in its source package (the version in stomp_suites/requirements.txt; later ones have none), stompest's is installed with it. They need only
configuration, except for one fixed password, one acknowledgement mode and a queue that two tests share. Each of their tests is a test here, with the same name.
"""

import configparser
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE

FOLDER = pathlib.Path(__file__).parent / "stomp_suites"

# The tests of a list run one after the other, since they use the same queues. The lists run in parallel, since a test mostly waits.
STOMPEST = [
    [f"{suite}.{test}"]
    for test in [
        "test_5_integration_stomp_1_1_heartbeat",
        "test_1_integration",
        "test_2_transaction",
        "test_3_timeout",
        "test_3_socket_failure_and_replay",
        "test_4_integration_stomp_1_1",
        "test_4_integration_stomp_1_2",
        "test_6_integration_stomp_1_1_encoding_and_escaping_headers",
    ]
    for suite in ["SimpleStompIntegrationTest", "SimpleStompIntegrationTestSSL"]
]
STOMP_PY = [
    [
        "cli_test.TestCLI.testsubscribe",
        "cli_ssl_test.TestSSLCLI.testssl",
    ],
    [
        "cli_test.TestCLI.testsendfile",
        "cli_test.TestCLI.testsendfileheaders",
        "cli_test.TestCLI.testrun",
        "cli_test.TestCLI.testrunarg",
    ],
    [
        "cli_test.TestCLI.testabort",
        "cli_test.TestCLI.testcommit",
    ],
    [
        "cli_test.TestCLI.testsendrec",
    ],
    [
        "basic_test.TestBasicSend.test_abort",
        "basic_test.TestBasicSend.test_basic",
        "basic_test.TestBasicSend.test_childinterrupt",
        "basic_test.TestBasicSend.test_clientack",
        "basic_test.TestBasicSend.test_clientnack",
        "basic_test.TestBasicSend.test_commit",
        "basic_test.TestBasicSend.test_specialchars",
        "basic_test.TestConnectionErrors.test_connect_nowait_error",
        "basic_test.TestConnectionErrors.test_connect_wait_error",
        "basic_test.TestContext.test_with_context",
    ],
    [
        "nonascii_test.TestNonAsciiSend.test_image_send",
        "nonascii_test.TestNonAsciiSend.test_send_nonascii",
        "nonascii_test.TestNonAsciiSendAutoDecode.test_send_nonascii_auto_decoding",
        "nonascii_test.TestNonAsciiSendSpecificEncoding.test_send_nonascii_auto_encoding",
    ],
    [
        "s10_test.Test10Connect.testclientack10",
        "s10_test.Test10Connect.testsend10",
        "s11_test.Test11Send.test11",
        "s11_test.Test11Send.testheartbeat",
        "s12_test.Test12Connect.test_clientack",
        "s12_test.Test12Connect.test_clientnack",
        "s12_test.Test12Connect.test_send",
        "s12_test.Test12Connect.test_specialchars",
        "activemq_test.TestRabbitMQSend.testbasic",
        "apollo_test.TestApolloSend.testbasic",
        "rabbitmq_test.TestRabbitMQSend.testbasic",
        "misc_test.TestMessageTransform.test_transform",
        "local_test.TestIPV6Send.test_ipv6",
        "ssl_test.TestSSL.test_ssl_connection",
    ],
]

# Tests of stomp.py's list that are not run, and why.
NO_BROKER = "talks to no broker, or to its own"
NOT_RUN = {
    "basic_test.TestBasicSend.test_timeout": NO_BROKER,
    "cli_test.TestCLI.teststats": "it fails if its message comes back before it has unsubscribed",
    "misc_test.TestNoResponseConnectionKill": NO_BROKER,
    "multicast_test": NO_BROKER,
    "p3_backward_test": NO_BROKER,
    "s11_test.Test11Send.testheartbeat_timeout": NO_BROKER,
    "s12_test.Test12Connect.test_suppress_content_length": NO_BROKER,
    "s12_test.Test12Connect.test_timeout": NO_BROKER,
    "ss_test": NO_BROKER,
    "ssl_test.TestSSLParams": NO_BROKER,
    "stompserver_test": "for a broker that lets everybody in without a login",
    "transport_test": NO_BROKER,
    "utils_test": NO_BROKER,
}
LIST = """
import unittest, stomp.test as suite
def names(tests):
    for test in tests:
        yield from names(test) if isinstance(test, unittest.TestSuite) else [test.id()]
for module in suite.__all__ + ["apollo_test"]:
    print(*names(unittest.defaultTestLoader.loadTestsFromName(f"stomp.test.{module}")), sep="\\n")
"""


@pytest.fixture(scope="module")
def stomp_py(tmp_path_factory, tls_server):
    """stomp.py's source package, configured for our server."""
    folder = tmp_path_factory.mktemp("stomp.py")
    download = ["download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "-d", folder]
    subprocess.run([sys.executable, "-m", "pip", *download, "-r", FOLDER / "requirements.txt"], check=True)
    [package] = folder.glob("*.tar.gz")
    shutil.unpack_archive(package, folder)
    source = folder / package.name.removesuffix(".tar.gz")
    settings = configparser.RawConfigParser()
    login = {"user": "library", "password": tls_server.token("library")}
    address = {"host": "localhost", "port": tls_server.stomp_port, **login}
    settings.read_dict(
        {
            "default": {**address, "ssl_port": tls_server.stomp_tls_port},
            "rabbitmq": address,
            "apollo": address,
            "ipv6": {**address, "host": "::1"},
        }
    )
    with open(source / "stomp/test/setup.ini", "w") as file:
        settings.write(file)
    fixed = source / "stomp/test/local_test.py"
    fixed.write_text(fixed.read_text().replace("'admin', 'password'", "get_default_user(), get_default_password()"))
    # testrun unsubscribes without waiting for its message, which may then be the first that testrunarg gets from the same queue.
    racing = source / "stomp/test/cli_test.py"
    before, name, after = racing.read_text().partition("def testrunarg")
    own_file = "create_test_file(); open(f.name, 'w').write(test_text.replace('testfile', 'testrunarg'))"
    after = after.replace("create_test_file()", own_file).replace("/queue/testfile", "/queue/testrunarg")
    racing.write_text(before + name + after)
    return source


@pytest.fixture(scope="module")
def results(tls_server, stomp_py):
    """Starts all, and returns their future results."""
    address = [str(tls_server.stomp_port), str(tls_server.stomp_tls_port), "library", tls_server.token("library")]

    def once(name):
        if name.startswith("SimpleStomp"):
            command = [FOLDER / "stompest_suite.py", *address, name]
        else:
            command = ["-W", "ignore", "-m", "unittest", "-v", f"stomp.test.{name}"]
        try:
            return subprocess.run(
                [sys.executable, *command],
                cwd=stomp_py,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120 * PATIENCE,
            )
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, 1, f"{(late.output or b'').decode()} took too long")

    def run(name):
        """Some of their tests wait for a fixed time, which is too short on a busy machine. A test that fails is run a second time, and that result counts."""
        first = once(name)
        return first if first.returncode == 0 else once(name)

    with ThreadPoolExecutor(12) as threads:
        lists = [(names, threads.submit(lambda names=names: [run(name) for name in names])) for names in STOMPEST + STOMP_PY]
        yield lambda wanted: next(done.result()[names.index(wanted)] for names, done in lists if wanted in names)


@pytest.mark.parametrize("name", [name for names in STOMPEST + STOMP_PY for name in names])
def test_a_librarys_own_test_passes(results, name):
    done = results(name)
    assert done.returncode == 0, done.stdout


def test_no_test_of_stomp_py_is_forgotten(stomp_py):
    listed = subprocess.run([sys.executable, "-W", "ignore", "-c", LIST], cwd=stomp_py, capture_output=True, text=True)
    all_names = {name.removeprefix("stomp.test.") for name in listed.stdout.split()}
    run = {name for names in STOMP_PY for name in names}
    left_out = {name for name in all_names if any(f"{name}.".startswith(f"{prefix}.") for prefix in NOT_RUN)}
    assert run | left_out == all_names and not run & left_out


def test_no_test_of_stompest_is_forgotten():
    from stompest.tests import sync_client_integration_test as suite

    methods = {name for name in dir(suite.SimpleStompIntegrationTest) if name.startswith("test_")}
    assert {name.rpartition(".")[2] for names in STOMPEST for name in names} == methods
