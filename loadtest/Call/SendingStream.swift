import ConclaveClient
import MediaModel
import Octets
import RTP

/// One track that a participant sends, or one layer of it: makes encrypted frames on schedule, packetizes them, and
/// says when each packet is sent.
final class SendingStream {
  let track: LocalMedia.Track
  let encoding: LocalMedia.Encoding
  /// The n of the track `participant.n`.
  let number: UInt8
  let key: TrackKey
  private(set) var sequence = UInt16.random(in: 0...0x7fff)
  var rtxSequence = UInt16.random(in: 0...0x7fff)
  private(set) var timestamp = UInt32.random(in: 0...UInt32.max)
  /// Packets and payload bytes since the start, for sender reports.
  private(set) var packetCount: UInt32 = 0
  private(set) var octetCount: UInt32 = 0
  /// The totals of the measured frames.
  private(set) var traffic: Traffic
  /// The server wants a key frame, or the key has changed.
  var wantsKeyFrame = true
  /// Whether receivers want the layer. Otherwise it pauses; it resumes with a key frame.
  var isWanted = true { didSet { if isWanted, !oldValue { wantsKeyFrame = true } } }
  let ring: PacketRing

  private let cipher: FrameCipher
  private var layer: LayerFrames?
  private let frameBytes: Int
  private let interval: Duration
  private var nextFrame: Instant
  /// The packets of the current frame that have not been sent: the number of the first, how many, and when it is due.
  private var pending: (first: UInt16, count: Int, due: Instant, gap: Duration)?
  private var pictureID: UInt16 = 0
  private var epoch: UInt32?
  private let frame: UnsafeMutableRawBufferPointer
  private let sealed: UnsafeMutableRawBufferPointer

  /// Bytes of payload in one packet at most, descriptor included.
  private static let payloadLimit = 1_100
  private static let largestFrame = 64 << 10
  /// VP8: X, then I, then a picture id of 15 bits (RFC 7741 section 4.2).
  private static let descriptorLength = 4
  private static let keyFrameFactor = 3
  /// Bytes of the header extensions that only layers have: RID and dependency descriptor.
  private static let layerHeaderLength = 24

  /// - Parameters:
  ///   - layer: the layer, for a track with several.
  ///   - videoKbps: the rate of a camera's highest layer; a microphone sends 32 kbit/s.
  ///   - start: when the first frame is due; different for each participant, since otherwise all would send at once.
  init(
    track: LocalMedia.Track, layer: LayerFrames? = nil, key: TrackKey, cipher: FrameCipher, videoKbps: Int,
    start: Instant
  ) {
    self.track = track
    self.layer = layer
    encoding = track.encodings[Int(layer?.rank ?? 0)]
    self.key = key
    number = key.track
    traffic = Traffic(isVideo: track.isVideo)
    self.cipher = cipher
    let share = layer.map { CameraLayer.all[Int($0.rank)].share } ?? 1
    frameBytes = track.isVideo ? max(40, Int(Double(videoKbps) * share * 1000 / 8 / 30)) : 80
    interval = track.isVideo ? .nanoseconds(1_000_000_000 / 30) : .milliseconds(20)
    nextFrame = start
    ring = PacketRing(capacity: track.isVideo ? 512 : 16)
    frame = .allocate(byteCount: Self.largestFrame, alignment: 16)
    sealed = .allocate(byteCount: Self.largestFrame + FrameCipher.maximumOverhead, alignment: 16)
    frame.initializeMemory(as: UInt8.self, repeating: 0)
  }

  deinit {
    frame.deallocate()
    sealed.deallocate()
  }

  /// nil for a track without layers.
  var rid: String? { layer.map { CameraLayer.all[Int($0.rank)].rid } }

  var nextTimeout: Instant { min(nextFrame, pending?.due ?? nextFrame) }

  /// Makes the frame that is due, if any, and if there is a key to encrypt it with.
  func advance(_ now: Instant, isMeasuring: Bool) {
    guard nextFrame <= now, pending == nil else { return }
    let due = nextFrame
    nextFrame = nextFrame.advanced(by: interval)
    // After a stall one frame is late; the frames that were due meanwhile are skipped.
    if nextFrame <= now { nextFrame = now.advanced(by: interval) }
    timestamp &+= track.isVideo ? 3_000 : 960
    guard isWanted else { return }
    makeFrame(due: due, isMeasured: isMeasuring)
  }

  /// The next packet that is due; the caller encrypts and sends it at once.
  func takeDue(_ now: Instant) -> (bytes: UnsafeRawBufferPointer, headerLength: Int)? {
    guard var sending = pending, sending.due <= now, let packet = ring.packet(sending.first) else { return nil }
    packetCount &+= 1
    octetCount &+= UInt32(packet.bytes.count - packet.headerLength)
    sending.first &+= 1
    sending.count -= 1
    sending.due = sending.due.advanced(by: sending.gap)
    pending = sending.count > 0 ? sending : nil
    return packet
  }

  private func makeFrame(due: Instant, isMeasured: Bool) {
    let sending = cipher.sendingEpoch
    if sending != epoch { wantsKeyFrame = true }
    epoch = sending
    let isKeyFrame = track.isVideo && wantsKeyFrame
    let size = min(Self.largestFrame / 2, isKeyFrame ? frameBytes * Self.keyFrameFactor : frameBytes)
    let clear = track.isVideo ? (isKeyFrame ? 10 : 3) : 0
    let room =
      Self.payloadLimit - (track.isVideo ? Self.descriptorLength : 0) - (track.isLayered ? Self.layerHeaderLength : 0)
    let count = (clear + size + FrameCipher.maximumOverhead + room - 1) / room
    // A frame's packets are spread over at most half of the frame interval, as by a browser's pacer.
    let gap = Duration.nanoseconds(min(1_000_000, interval.nanoseconds / 2 / Int64(count)))
    let last = due.advanced(by: gap * (count - 1))
    // The layer's numbers advance only if the frame is sent.
    var frames = layer
    let layered = frames?.next(isKeyFrame: isKeyFrame)
    TestFrame(isMeasured: isMeasured, packets: UInt16(count), sentAt: last.nanoseconds, layered: layered)
      .write(into: frame)
    writeClearBytes(isKeyFrame: isKeyFrame)
    guard
      let encrypted = try? cipher.encrypt(
        UnsafeRawBufferPointer(rebasing: frame[..<size]), track: number,
        metadata: UnsafeRawBufferPointer(rebasing: sealed[..<clear]),
        into: UnsafeMutableRawBufferPointer(rebasing: sealed[clear...]))
    else { return }
    if isKeyFrame { wantsKeyFrame = false }
    layer = frames
    cut(UnsafeRawBufferPointer(rebasing: sealed[..<(clear + encrypted)]), layered, count: count)
    pending = (sequence &- UInt16(count), count, due, gap)
    if isMeasured {
      traffic.frames += 1
      traffic.packets += UInt64(count)
    }
  }

  /// VP8's frame tag, and on key frames the start code and 640 × 360 (RFC 6386 section 9.1): the clear bytes in front
  /// of the SFrame.
  private func writeClearBytes(isKeyFrame: Bool) {
    guard track.isVideo else { return }
    sealed[0] = isKeyFrame ? 0x10 : 0x11
    sealed.store(UInt16(0), at: 1)
    guard isKeyFrame else { return }
    for (index, byte) in [0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01].enumerated() as EnumeratedSequence<[UInt8]> {
      sealed[3 + index] = byte
    }
  }

  /// Writes a frame as `count` packets of about the same length.
  private func cut(_ frame: UnsafeRawBufferPointer, _ layered: LayeredFrame?, count: Int) {
    pictureID = (pictureID + 1) & 0x7fff
    let share = (frame.count + count - 1) / count
    for index in 0..<count {
      let part = UnsafeRawBufferPointer(
        rebasing: frame[min(frame.count, share * index)..<min(frame.count, share * (index + 1))])
      write(part, layered, isFirst: index == 0, isLast: index == count - 1)
      sequence &+= 1
    }
  }

  private func write(_ part: UnsafeRawBufferPointer, _ layered: LayeredFrame?, isFirst: Bool, isLast: Bool) {
    let room = ring.room(for: sequence)
    RTPHeader.write(
      marker: track.isVideo ? isLast : false,
      payloadType: track.isVideo ? LocalMedia.PayloadType.vp8 : LocalMedia.PayloadType.opus, sequenceNumber: sequence,
      timestamp: timestamp, ssrc: encoding.ssrc, into: room)
    var extensions = HeaderExtensionWriter(room)
    let mid = Array(track.mid.utf8)
    extensions.append(LocalMedia.ExtensionID.mid, mid.span)
    if !track.isVideo { extensions.append(LocalMedia.ExtensionID.audioLevel, ([0x80 | 30] as [UInt8]).span) }
    if let layered {
      extensions.append(LocalMedia.ExtensionID.rid, Array(CameraLayer.all[Int(layered.rank)].rid.utf8).span)
      let descriptor = layered.descriptor(isFirst: isFirst, isLast: isLast)
      extensions.append(LocalMedia.ExtensionID.dependencyDescriptor, descriptor.span)
    }
    let header = extensions.finish()
    var length = header
    if layered != nil {
      // Browsers number frames only in the dependency descriptor.
      room[length] = isFirst ? 0x10 : 0
      length += 1
    } else if track.isVideo {
      room[length] = isFirst ? 0x90 : 0x80
      room[length + 1] = 0x80
      room.store(pictureID | 0x8000, at: length + 2)
      length += Self.descriptorLength
    }
    UnsafeMutableRawBufferPointer(rebasing: room[length...]).copyMemory(from: part)
    ring.finish(sequence, headerLength: header, length: length + part.count)
  }
}
