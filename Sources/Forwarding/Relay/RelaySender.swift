import MediaModel
import RTP

/// Sends messages to the other ends of tracks: packets and reports of this worker's peers, and to the workers of remote peers what is wanted of their tracks.
final class RelaySender {
  /// nil when there are no other ends.
  private let relay: (any Relay)?
  private let output: SFUOutput

  init(_ relay: (any Relay)?, output: SFUOutput) {
    self.relay = relay
    self.output = output
  }

  /// Passes a packet to the ends that get this encoding.
  func send(_ packet: borrowing Packet, of encoding: Encoding, isRetransmission: Bool, now: Instant) {
    // The padding is already cut off.
    if packet.header.paddingLength > 0 {
      RTPHeader.setPadding(false, in: packet.overwritten)
    }
    let body = RelayMessage.Body.packet(
      index: packet.index, isRetransmission: isRetransmission, restarts: encoding.restarts)
    for target in encoding.relays {
      if send(body, about: encoding, packet.bytes, to: target.end) {
        output.counts.pointee.relayed &+= 1
      } else if target.end != .recorder {
        // The receivers there can continue from the next key frame. A recorder asks for one when it has time again.
        output.requestKeyFrame(of: encoding, now: now)
      }
    }
  }

  /// The last sender report, to all ends that get the encoding.
  func sendReport(of encoding: Encoding) {
    for target in encoding.relays { sendReport(of: encoding, to: target.end) }
  }

  func sendReport(of encoding: Encoding, to end: RelayEnd) {
    guard let report = encoding.reception.pointee.statistics.lastReport,
      let clockOffset = encoding.track.peer.clockOffset
    else { return }
    _ = send(
      .report(
        ntp: report.ntp.rawValue, rtp: report.rtp, at: report.at.nanoseconds, clockOffset: clockOffset),
      about: encoding, to: end)
  }

  /// Key-frame requests for a remote peer's tracks, and the wishes for them.
  func handleTimeout(of peer: Peer, on home: RelayEnd, now: Instant) {
    for encoding in peer.encodings {
      let isAwaited = encoding.isAwaited && !encoding.track.isSilent
      if encoding.reception.pointee.keyFrames.takeDue(now, isAwaited: isAwaited, roundTrip: peer.roundTrip) {
        _ = send(.keyFrame, about: encoding, to: home)
        encoding.noteRequest(now)
      }
      peer.schedule(encoding.reception.pointee.keyFrames.deadline)
    }
    if peer.wishReminder.isDue(now) {
      for track in peer.upTracks { tellWishes(for: track, to: home, again: true) }
    }
    peer.schedule(peer.upTracks.isEmpty ? nil : peer.wishReminder.deadline)
  }

  /// Tells the worker that has the track's peer what is wanted of it here: all microphones, because their levels say who speaks, and videos that a slot
  /// shows.
  func tellWishes(for track: UpTrack, to home: RelayEnd, again: Bool = false) {
    let isShown = track.kind == .audio || track.encodings.contains(where: \.isWanted)
    for encoding in track.encodings {
      let wish: RelayWish = !isShown ? .nothing : track.kind == .audio || encoding.isWanted ? .wanted : .packets
      guard again || wish != encoding.toldWish else { continue }
      encoding.toldWish = wish
      _ = send(.wish(wish), about: encoding, to: home)
    }
  }

  func endWishes(for track: UpTrack, to home: RelayEnd) {
    for encoding in track.encodings { _ = send(.wish(.nothing), about: encoding, to: home) }
  }

  /// Nothing is wanted of the encoding that `message` is about.
  func refuse(_ message: RelayMessage, to end: RelayEnd) {
    var answer = message
    answer.body = .wish(.nothing)
    if let relay, !relay.send(answer, UnsafeRawBufferPointer(start: nil, count: 0), to: end) {
      output.drop(.relayFull)
    }
  }

  /// Returns whether there was room.
  private func send(
    _ body: RelayMessage.Body, about encoding: Encoding,
    _ packet: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0), to end: RelayEnd
  ) -> Bool {
    let message = RelayMessage(
      peer: encoding.track.peer.id, track: encoding.track.track, rank: UInt8(encoding.rank), body: body)
    guard let relay, relay.send(message, packet, to: end) else {
      output.drop(.relayFull)
      return false
    }
    return true
  }
}
