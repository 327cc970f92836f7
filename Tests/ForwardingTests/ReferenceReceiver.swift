import MediaModel
import RTP

@testable import Forwarding

/// Decodes what a slot received by the rules of Chromium's receiver: no packet number stays missing, a picture needs
/// all packets and its marker, timestamps and frame numbers rise, and a frame refers only to decoded frames. The
/// references come from the sender's own record and from the dependency descriptor.
struct ReferenceReceiver {
  private(set) var problems: [String] = []
  /// The decoded frames, in order, and when they were complete.
  private(set) var decoded: [(frame: LayerTrack.SentFrame, track: TrackID, timestamp: UInt32, at: Instant)] = []
  /// Frames that were not decoded because a key frame came before the missing data: at a switch, or when the sender
  /// replaced them.
  private(set) var abandoned = 0
  /// Frames since the last key frame that cannot be decoded so far.
  private var unfinished: [(problem: String, at: Instant)] = []
  /// The longest time for which a stream may continue with missing data.
  private static let patience = Duration.milliseconds(300)
  private(set) var descriptors = 0
  private var tracks: [UInt64: LayerTrack]
  private var structure = DependencyStructure()
  private var decodedSerials: Set<UInt64> = []
  private var decodedNumbers: Set<UInt16> = []
  private var lastNumber: UInt16?

  /// - Parameter descriptorID: the id of the receiver's dependency descriptors.
  init(_ stream: ReceivedStream, from senders: [TestPeer], descriptorID: UInt8) {
    let layers = senders.flatMap(\.tracks).compactMap { $0 as? LayerTrack }
    tracks = Dictionary(uniqueKeysWithValues: layers.map { ($0.serial >> 28, $0) })
    // Nothing before the first received packet counts as missing.
    let first = stream.packets.min { $0.value.arrival < $1.value.arrival }?.key ?? 0
    let numbers = stream.packets.keys.filter { $0 >= first }.sorted()
    for (a, b) in zip(numbers, numbers.dropFirst()) where b != a + 1 { problems.append("hole behind \(a)") }
    let pictures = Self.pictures(stream.ordered)
    var lastArrival: Instant?
    for picture in pictures {
      let arrival = picture.map(\.arrival).max() ?? picture[0].arrival
      decode(picture, at: arrival, lastArrival: lastArrival ?? arrival, descriptorID: descriptorID)
      lastArrival = max(arrival, lastArrival ?? arrival)
    }
    problems += unfinished.map(\.problem)
  }

  /// Starts over with a key frame; `lastArrival` is when the last packet before it arrived.
  private mutating func abandonUnfinished(_ lastArrival: Instant) {
    if let first = unfinished.first, first.at.duration(to: lastArrival) > Self.patience {
      problems += unfinished.map(\.problem)
    }
    abandoned += unfinished.count
    unfinished = []
  }

  /// The longest time between two decoded frames after `start`.
  func longestGap(after start: Instant) -> Duration {
    let times = decoded.lazy.map(\.at).filter { $0 >= start }
    return zip(times, times.dropFirst()).map { $0.duration(to: $1) }.max() ?? .seconds(1_000)
  }

  private static func pictures(_ packets: [ReceivedStream.Packet]) -> [[ReceivedStream.Packet]] {
    var pictures: [[ReceivedStream.Packet]] = []
    for packet in packets {
      // An answer without a packet represents a packet that is not sent.
      if packet.body.isEmpty { continue }
      if pictures.last?.last?.timestamp == packet.timestamp {
        pictures[pictures.count - 1].append(packet)
      } else {
        pictures.append([packet])
      }
    }
    return pictures
  }

  private func frame(_ packet: ReceivedStream.Packet) -> (frame: LayerTrack.SentFrame, track: LayerTrack)? {
    guard let track = tracks[packet.serial >> 28] else { return nil }
    var first = packet.serial
    while first > 0 {
      if let frame = track.frames[first] { return frame.serials.contains(packet.serial) ? (frame, track) : nil }
      first -= 1
      if packet.serial - first > 1_000 { return nil }
    }
    return nil
  }

  private mutating func decode(
    _ picture: [ReceivedStream.Packet], at arrival: Instant, lastArrival: Instant, descriptorID: UInt8
  ) {
    guard let (frame, track) = frame(picture[0]) else { return problems.append("unknown frame") }
    let name = "layer \(frame.layer) T\(frame.temporalLayer) at \(frame.tick)"
    for packet in picture where track.sent[packet.serial] != packet.body { problems.append("\(name): other bytes") }
    guard picture.map(\.serial) == Array(frame.serials), picture.last?.marker == true else {
      return unfinished.append(("\(name): incomplete, \(picture.count) of \(frame.serials.count)", arrival))
    }
    guard frame.isKeyFrame || frame.references.allSatisfy(decodedSerials.contains) else {
      return unfinished.append(("\(name): lacks a reference", arrival))
    }
    if frame.isKeyFrame { abandonUnfinished(lastArrival) }
    if picture.dropLast().contains(where: \.marker) { problems.append("\(name): marker within") }
    if let last = decoded.last?.timestamp, Int32(bitPattern: picture[0].timestamp &- last) <= 0 {
      problems.append("\(name): time falls")
    }
    if let element = picture[0].extensions[descriptorID] { read(element, frame, name) }
    decodedSerials.insert(frame.serials.lowerBound)
    decoded.append((frame, track.description.track, picture[0].timestamp, max(arrival, decoded.last?.at ?? arrival)))
  }

  private mutating func read(_ element: [UInt8], _ frame: LayerTrack.SentFrame, _ name: String) {
    descriptors += 1
    guard let descriptor = try? DependencyDescriptor(parsing: element.span.bytes, by: &structure) else {
      return problems.append("\(name): unreadable descriptor")
    }
    let number = descriptor.frameNumber
    if let lastNumber, !SequenceNumber.isNewer(number, than: lastNumber) {
      problems.append("\(name): number falls from \(lastNumber) to \(number)")
    }
    if descriptor.isKeyFrame != frame.isKeyFrame || Int(descriptor.frame.temporalLayer) != frame.temporalLayer {
      problems.append("\(name): another frame's descriptor")
    }
    if descriptor.isKeyFrame { decodedNumbers = [] }
    for i in 0..<descriptor.frame.referenceCount where !decodedNumbers.contains(number &- descriptor.frame.reference(i))
    {
      problems.append("\(name): lacks a reference by number")
    }
    decodedNumbers.insert(number)
    lastNumber = number
  }
}
