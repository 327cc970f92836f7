"""GStreamer's webrtcbin as a process: prints its offer as a line of JSON, reads the answer, prints how many packets of each kind it received once there were enough."""

import json
import re
import signal
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

PIPELINE = """webrtcbin name=peer bundle-policy=max-bundle
  audiotestsrc is-live=true ! opusenc ! rtpopuspay pt=111 ! application/x-rtp,media=audio,encoding-name=OPUS,payload=111 ! peer.
  videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=15/1 ! vp8enc deadline=1 keyframe-max-dist=15
    ! rtpvp8pay pt=96 ! application/x-rtp,media=video,encoding-name=VP8,payload=96 ! peer."""

RECEIVED = {
    "audio": "application/x-rtp,media=audio,encoding-name=OPUS,payload=111,clock-rate=48000,encoding-params=(string)2",
    "video": "application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000",
}


class Peer:
    def __init__(self):
        self.loop = GLib.MainLoop()
        self.pipeline = Gst.parse_launch(PIPELINE)
        self.peer = self.pipeline.get_by_name("peer")
        self.received, self.counting = {"audio": 0, "video": 0}, threading.Lock()
        directions = GstWebRTC.WebRTCRTPTransceiverDirection
        for index in range(2):
            self.peer.emit("get-transceiver", index).set_property("direction", directions.SENDONLY)
        for caps in RECEIVED.values():
            for _ in range(2):
                self.peer.emit("add-transceiver", directions.RECVONLY, Gst.Caps.from_string(caps))
        self.peer.connect("on-negotiation-needed", self.negotiate)
        self.peer.connect("notify::ice-gathering-state", self.gathered)
        self.peer.connect("pad-added", self.count)
        self.pipeline.set_state(Gst.State.PLAYING)

    def negotiate(self, _):
        self.peer.emit("create-offer", None, Gst.Promise.new_with_change_func(self.offered, None))

    def offered(self, promise, _):
        reply = promise.get_reply()  # kept because it owns the description
        description = reply.get_value("offer")
        self.peer.emit("set-local-description", description, None)

    def gathered(self, *_):
        if self.peer.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            GLib.idle_add(self.exchange)

    def exchange(self):
        sdp = self.peer.get_property("local-description").sdp.as_text()
        mids = {}
        for section in re.split(r"(?m)^(?=m=)", sdp)[1:]:
            kind, mid = section[2:7], re.search(r"a=mid:(\S+)", section)[1]
            if "a=sendonly" in section or "a=sendrecv" in section:
                mids.setdefault(kind, mid)
        print(json.dumps({"sdp": sdp, "mids": mids}), flush=True)
        _, message = GstSdp.SDPMessage.new_from_text(json.loads(sys.stdin.readline())["sdp"])
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
        self.peer.emit("set-remote-description", answer, None)
        return False

    def count(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        kind = (pad.get_current_caps() or pad.query_caps(None)).get_structure(0).get_string("media")
        sink = Gst.ElementFactory.make("fakesink")
        sink.set_property("sync", False)
        self.pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.link(sink.get_static_pad("sink"))
        pad.add_probe(Gst.PadProbeType.BUFFER, self.arrived, kind)

    def arrived(self, _pad, _info, kind):
        with self.counting:
            was_enough = min(self.received.values()) > 50
            self.received[kind] += 1
            if not was_enough and min(self.received.values()) > 50:
                print(json.dumps(self.received), flush=True)
        return Gst.PadProbeReturn.OK


# Ends a hang in Python or in C: the default action needs no interpreter.
signal.alarm(30)
Gst.init(None)
Peer().loop.run()
