"""TLS as seen by OpenSSL's clients."""

import contextlib
import socket
import ssl

from conftest import UNVERIFIED


def secured(port, context=UNVERIFIED):
    # Less than the 5 s for which our TLS library waits for a close_notify.
    plain = socket.create_connection(("127.0.0.1", port), timeout=4)
    return context.wrap_socket(plain, suppress_ragged_eofs=False)


def signed_in(server):
    connection = secured(server.stomp_tls_port)
    connection.sendall(f"CONNECT\naccept-version:1.2\nhost:h\npasscode:{server.token('alice')}\n\n\0".encode())
    assert connection.recv(9) == b"CONNECTED"
    while not connection.recv(1000).endswith(b"\0"):
        pass
    return connection


def test_stomp_83_the_web_port_is_http_1_1_by_alpn(tls_server):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with secured(tls_server.http_port, context) as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"


def test_a_close_notify_ends_both_ways_at_once(tls_server):
    for connection in signed_in(tls_server), secured(tls_server.http_port):
        connection.setblocking(False)
        with contextlib.suppress(ssl.SSLWantReadError):
            connection.unwrap()
        connection.settimeout(4)
        # Whether a client can tell an end from a close_notify depends on OpenSSL's version; TLSTests waits for the close_notify.
        with contextlib.suppress(ssl.SSLZeroReturnError):
            assert connection.recv(1) == b""


def is_closed_by_server(connection):
    """Reads below TLS until the server ends the TCP connection; False if that takes longer than the timeout."""
    try:
        while socket.socket.recv(connection, 1000):
            pass
    except TimeoutError:
        return False
    return True


def test_an_end_without_a_close_notify_is_an_end_too(tls_server):
    for connection in signed_in(tls_server), secured(tls_server.http_port):
        socket.socket.shutdown(connection, socket.SHUT_WR)
        assert is_closed_by_server(connection)


def test_a_session_ends_with_a_close_notify(tls_server):
    connection = signed_in(tls_server)
    connection.sendall(b"DISCONNECT\nreceipt:bye\n\n\0")
    heard = b""
    while piece := connection.recv(1000):
        heard += piece
    assert heard == b"RECEIPT\nreceipt-id:bye\n\n\0"
