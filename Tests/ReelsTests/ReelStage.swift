import MediaModel
import Octets
import RTP
import Recording
import Seeded
import Testing

@testable import Reels

/// Recorded participants in virtual time, and a store that keeps all bytes.
final class ReelStage {
  static let recording = RecordingID([UInt8](repeating: 7, count: 16))!
  static let worker = WorkerAddress(node: Incarnation(0), worker: 0)
  /// Microseconds since 1970 when the stage's clock was 0.
  static let epochStart: Int64 = 1_800_000_000_000_000

  let table: ReelTable
  private(set) var now = Instant(nanoseconds: 5_000_000_000)
  /// The contents of each reel's segments, with their starts.
  private(set) var segments: [ReelName: [(start: Int64, bytes: [UInt8])]] = [:]
  private(set) var ended: Set<ReelName> = []
  private(set) var wishes: [ReelWish] = []
  private var open: Set<ReelName> = []
  /// The store does not answer.
  var isStuck = false
  private(set) var largestBacklog = 0
  private var unwritten: [(ReelName, Int)] = []

  init(_ configuration: ReelTable.Configuration = .init()) {
    table = ReelTable(configuration)
    table.setWallClock(Self.epochStart)
  }

  func advance(_ duration: Duration) {
    let end = now.advanced(by: duration)
    while now < end {
      now = min(end, now.advanced(by: ReelTable.tickTime))
      table.tick(now: now)
      collect()
    }
  }

  func collect() {
    for output in table.takeOutputs() {
      switch output {
      case .begin(let name, let start):
        #expect(!open.contains(name), "a segment begins within another")
        open.insert(name)
        segments[name, default: []].append((start, []))
      case .write(let name, let bytes):
        #expect(open.contains(name))
        let last = segments[name]!.count - 1
        segments[name]![last].bytes += bytes
        unwritten.append((name, bytes.count))
      case .close(let name): #expect(open.remove(name) != nil)
      case .end(let name): ended.insert(name)
      case .erase(let name):
        segments[name] = nil
        open.remove(name)
      }
    }
    largestBacklog = max(largestBacklog, table.backlog)
    wishes += table.takeWishes()
    guard !isStuck else { return }
    for (name, count) in unwritten { table.written(count, of: name) }
    unwritten = []
  }

  func takeWishes() -> [ReelWish] {
    defer { wishes = [] }
    return wishes
  }

  /// The parsed segments of the participant's reel.
  func contents(of sender: TestSender) -> [SegmentContents] {
    (segments[sender.name] ?? []).map { SegmentContents(parsing: $0.bytes.span.bytes, start: $0.start) }
  }

  struct Stored {
    var stream: RecordedStream
    var frame: RecordedFrame
    var bytes: [UInt8]
  }

  /// All frames of a participant, in order.
  func frames(of sender: TestSender, track: UInt8? = nil) -> [Stored] {
    var found: [Stored] = []
    for (segment, contents) in zip(segments[sender.name] ?? [], contents(of: sender)) {
      var streams: [UInt8: RecordedStream] = [:]
      for record in contents.records {
        switch record {
        case .stream(let stream): streams[stream.index] = stream
        case .frame(let frame):
          guard let stream = streams[frame.index], track == nil || stream.n == track else { continue }
          found.append(Stored(stream: stream, frame: frame, bytes: Array(segment.bytes[frame.range])))
        default: break
        }
      }
    }
    return found
  }

  func gaps(of sender: TestSender) -> [RecordedGap] {
    contents(of: sender).flatMap(\.records).compactMap { if case .gap(let gap) = $0 { gap } else { nil } }
  }

  func marks(of sender: TestSender) -> [UInt8] {
    contents(of: sender).flatMap(\.records).compactMap { if case .mark(let mark) = $0 { mark.what } else { nil } }
  }
}

/// A participant: a microphone (track 1), and a camera (track 2) with one layer or more.
final class TestSender {
  /// A frame as its transform returned it.
  struct Sent: Hashable {
    var track: UInt8
    var rank: UInt8
    var epoch: UInt32
    var bytes: [UInt8]
    var at: Instant
    var isKeyFrame: Bool
  }

  let stage: ReelStage
  let participant: ParticipantNumber
  let peer: PeerID
  let videoCodec: String
  var configuration: PeerConfiguration
  private(set) var sent: [Sent] = []
  private var random: SeededGenerator
  private var indexes: [TrackID: [UInt8: UInt64]] = [:]
  private var counter: UInt64 = 0
  /// Whether a packet with this number arrives.
  var arrives: (UInt64) -> Bool = { _ in true }
  var restarts: UInt32 = 0

  static let microphone: UInt8 = 1
  static let camera: UInt8 = 2

  init(
    _ stage: ReelStage, _ participant: ParticipantNumber = 2, layers: Int = 1, video: String = "VP8", seed: UInt64 = 1
  ) {
    self.stage = stage
    self.participant = participant
    peer = PeerID(rawValue: UInt64(participant))
    videoCodec = video
    random = SeededGenerator(seed: seed)
    func track(_ n: UInt8, _ source: TrackSource, _ format: PayloadFormat, rids: [String] = []) -> UpTrackDescription {
      UpTrackDescription(
        track: TrackID(participant: participant, index: n), source: source, mid: "\(n)", muted: false,
        formats: [format],
        ssrcs: [UInt32(n)], rtx: [:], rids: rids)
    }
    configuration = PeerConfiguration(
      peer: peer, call: CallID(unchecked: "call"), participant: participant, isOnKeyList: true,
      local: ICECredentials(fragment: "a", password: "b"), remote: ICECredentials(fragment: "a", password: "b"),
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: []), extensions: HeaderExtensionIDs(),
      tracks: [
        track(1, .microphone, PayloadFormat(payloadType: 111, codec: "opus", clockRate: 48_000)),
        track(
          2, .camera, PayloadFormat(payloadType: 96, codec: video, clockRate: 90_000),
          rids: layers > 1 ? (0..<layers).map { "r\($0)" } : []),
      ], slots: [])
  }

  var name: ReelName { ReelName(recording: ReelStage.recording, reel: participant, peer: peer) }

  func keep(_ keys: [(epoch: UInt32, track: UInt8)], awaited: [(epoch: UInt32, track: UInt8)] = []) {
    func set(_ list: [(epoch: UInt32, track: UInt8)]) -> Set<RecordedPeer.Key> {
      Set(list.map { RecordedPeer.Key(epoch: $0.epoch, track: $0.track) })
    }
    let kept = RecordedPeer(
      recording: ReelStage.recording, call: configuration.call, peer: peer, participant: participant, keys: set(keys),
      awaited: set(awaited))
    stage.table.keep(kept, configuration, on: ReelStage.worker, now: stage.now)
    stage.collect()
  }

  /// The timestamps of the microphone and the camera count from these.
  private static let audioStart: UInt32 = 0xffff_ff00
  private static let videoStart: UInt32 = 1_000

  func timestamp(_ track: UInt8, at instant: Instant) -> UInt32 {
    let microseconds = instant.nanoseconds / 1_000
    return track == 1
      ? Self.audioStart &+ UInt32(truncatingIfNeeded: microseconds * 48 / 1_000)
      : Self.videoStart &+ UInt32(truncatingIfNeeded: microseconds * 90 / 1_000)
  }

  func speak(_ epoch: UInt32, as participant: ParticipantNumber? = nil, track: UInt8 = 1) {
    let frame = sealed(0, epoch, participant: participant, track: track, length: 60)
    note(frame, TestSender.microphone, 0, epoch, isKeyFrame: true)
    deliver([(frame, true)], TestSender.microphone, rank: 0, payloadType: 111)
  }

  /// - Parameter length: bytes of the picture.
  func show(_ epoch: UInt32, isKeyFrame: Bool = false, rank: UInt8 = 0, length: Int = 3_000) {
    let isVP8 = videoCodec == "VP8"
    let frame = sealed(isVP8 ? (isKeyFrame ? 10 : 3) : 0, epoch, track: 2, length: length, isKeyFrame: isKeyFrame)
    note(frame, TestSender.camera, rank, epoch, isKeyFrame: isKeyFrame)
    var payloads: [([UInt8], Bool)] = []
    for first in stride(from: 0, to: frame.count, by: 1_100) {
      let part = Array(frame[first..<min(first + 1_100, frame.count)])
      let isLast = first + 1_100 >= frame.count
      let descriptor: UInt8 =
        isVP8
        ? (first == 0 ? 0x10 : 0)
        : (first == 0 ? 0x08 : 0) | (isLast ? 0x04 : 0) | (isKeyFrame ? 0 : 0x40)
      payloads.append(([descriptor] + part, isLast))
    }
    deliver(payloads, TestSender.camera, rank: rank, payloadType: 96)
  }

  /// Speaks every 20 ms and shows a picture every 40 ms.
  func talk(_ epoch: UInt32, for duration: Duration, keyFrameFirst: Bool = true, rank: UInt8 = 0) {
    let end = stage.now.advanced(by: duration)
    var isKeyFrame = keyFrameFirst
    var isPicture = true
    while stage.now < end {
      speak(epoch)
      if isPicture {
        show(epoch, isKeyFrame: isKeyFrame, rank: rank)
        isKeyFrame = false
      }
      isPicture.toggle()
      stage.advance(.milliseconds(20))
    }
  }

  private func note(_ frame: [UInt8], _ track: UInt8, _ rank: UInt8, _ epoch: UInt32, isKeyFrame: Bool) {
    sent.append(
      Sent(track: track, rank: rank, epoch: epoch, bytes: frame, at: stage.now, isKeyFrame: isKeyFrame))
  }

  private func sealed(
    _ clear: Int, _ epoch: UInt32, participant: ParticipantNumber? = nil, track: UInt8, length: Int,
    isKeyFrame: Bool = false
  ) -> [UInt8] {
    counter += 1
    let keyID = FrameKeyID(participant: participant ?? self.participant, track: track, epoch: epoch)
    let header = SFrameHeader(keyID: keyID.rawValue, counter: counter)
    var bytes = [UInt8](repeating: 0, count: header.byteCount)
    bytes.withUnsafeMutableBytes { _ = header.write(into: $0) }
    var first = (0..<clear).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    // VP8's P bit (RFC 7741 section 4.3).
    if clear > 0 { first[0] = first[0] & 0xfe | (isKeyFrame ? 0 : 1) }
    return first + bytes + (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  private func deliver(_ payloads: [([UInt8], Bool)], _ n: UInt8, rank: UInt8, payloadType: UInt8) {
    let track = TrackID(participant: participant, index: n)
    for (payload, marker) in payloads {
      let index = indexes[track]?[rank] ?? 65_000
      indexes[track, default: [:]][rank] = index + 1
      guard arrives(index) else { continue }
      pass(packet(payload, marker, n, index, payloadType), index, track, rank)
    }
  }

  private func packet(_ payload: [UInt8], _ marker: Bool, _ n: UInt8, _ index: UInt64, _ type: UInt8) -> [UInt8] {
    var packet = [UInt8](repeating: 0, count: RTPHeader.fixedLength)
    let timestamp = timestamp(n, at: stage.now)
    packet.withUnsafeMutableBytes {
      RTPHeader.write(
        marker: marker, payloadType: type, sequenceNumber: UInt16(truncatingIfNeeded: index), timestamp: timestamp,
        ssrc: UInt32(n), into: $0)
    }
    return packet + payload
  }

  /// Packets that are on their way, for `shuffle`.
  var inFlight: [(packet: [UInt8], index: UInt64, track: TrackID, rank: UInt8)] = []
  var holdsBack: (UInt64) -> Bool = { _ in false }

  private func pass(_ packet: [UInt8], _ index: UInt64, _ track: TrackID, _ rank: UInt8) {
    guard !holdsBack(index) else { return inFlight.append((packet, index, track, rank)) }
    stage.table.receive(
      packet.span.bytes, index: index, restarts: restarts, of: track, rank: rank, peer: peer, from: ReelStage.worker,
      now: stage.now)
  }

  /// The packets that were held back arrive, in any order.
  func release() {
    for (packet, index, track, rank) in inFlight.shuffled(using: &random) {
      stage.table.receive(
        packet.span.bytes, index: index, restarts: restarts, of: track, rank: rank, peer: peer, from: ReelStage.worker,
        now: stage.now)
    }
    inFlight = []
  }

  func report(_ n: UInt8, skew: Duration = .zero) {
    stage.table.report(
      timestamp(n, at: stage.now), at: stage.now.advanced(by: skew), of: TrackID(participant: participant, index: n),
      rank: 0, peer: peer, now: stage.now)
  }
}
