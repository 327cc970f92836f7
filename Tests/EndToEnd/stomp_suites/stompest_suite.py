"""Runs one of stompest's own integration tests: stompest_suite.py PORT TLS-PORT USER TOKEN TEST"""

import logging
import sys
import unittest
import uuid

from stompest import tests
from stompest.config import StompConfig
from stompest.protocol import StompSpec

port, tls_port, user, token, name = sys.argv[1:]
tests.HOST, tests.PORT, tests.PORT_SSL = "localhost", int(port), int(tls_port)
tests.LOGIN, tests.PASSCODE, tests.VIRTUALHOST = user, token, "localhost"

from stompest.tests import sync_client_integration_test as suite  # noqa: E402 it reads its settings when it is imported

# Concurrent tests must not take each other's messages, and one test has the port in its text.
suite.SimpleStompIntegrationTest.DESTINATION = f"/queue/{uuid.uuid4()}"
suite.StompConfig = lambda uri, **options: StompConfig(uri.replace(":61613", f":{port}"), **options)
if name.rpartition(".")[2] in ("test_1_integration", "test_2_transaction", "test_3_socket_failure_and_replay"):
    # They are written for ActiveMQ, which accepts client-individual in 1.0, too; 1.0 itself has only `client`.
    StompSpec.ACK_CLIENT_INDIVIDUAL = StompSpec.ACK_CLIENT
logging.disable()
unittest.main(module=suite, argv=["stompest", "-v", name])
