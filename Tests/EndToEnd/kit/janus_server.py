"""Janus from Debian, for comparisons: one event loop, only HTTP, ICE lite on the loopback interface."""

import os
import signal
import socket
import subprocess
import time

PLUGINS = "/usr/lib/x86_64-linux-gnu/janus"

CONFIGURATION = """
general: {{ plugins_folder = "{plugins}/plugins" transports_folder = "{plugins}/transports" event_loops = 1 session_timeout = 0 debug_level = 3 }}
media: {{ rtp_port_range = "{ports}" }}
nat: {{ ice_lite = true ice_enforce_list = "lo" }}
plugins: {{ disable = "{others}" }}
transports: {{ disable = "{transports}" }}
"""


def wait_until_it_listens(process, port, log):
    """Waits until a server accepts connections. Raises RuntimeError if it exits before, or does not accept any within 30 s; `log` is its file."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"the server does not listen on port {port}: see {log}") from None
            time.sleep(0.05)


def others(folder, kept):
    return ",".join(sorted(name for name in os.listdir(f"{PLUGINS}/{folder}") if name.endswith(".so") and name != kept))


class JanusServer:
    """A separate server, on the cores that `command` selects, as `("taskset", "-c", "0")`."""

    def __init__(self, folder, port, command=(), ports="20000-29999"):
        self.port = port
        configuration = folder / "janus"
        configuration.mkdir()
        (configuration / "janus.jcfg").write_text(
            CONFIGURATION.format(
                plugins=PLUGINS, ports=ports, others=others("plugins", "libjanus_videoroom.so"), transports=others("transports", "libjanus_http.so")
            )
        )
        (configuration / "janus.transport.http.jcfg").write_text(f'general: {{ json = "compact" base_path = "/janus" http = true port = {port} ip = "127.0.0.1" }}\n')
        (configuration / "janus.plugin.videoroom.jcfg").write_text("general: { }\n")
        self.log = (folder / "janus.log").open("wb")
        self.process = subprocess.Popen(
            [*command, "janus", "--configs-folder", configuration, "--config", configuration / "janus.jcfg"], stdout=self.log, stderr=self.log
        )
        wait_until_it_listens(self.process, port, self.log.name)

    @property
    def target(self):
        """The load test's options."""
        return ("--target", "janus", "--url", f"http://127.0.0.1:{self.port}/janus")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
