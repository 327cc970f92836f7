/// A simulcast layer of a camera with three temporal layers: every second frame is in T2, and every second of the
/// others in T1.
struct CameraLayer: Sendable {
  /// The lowest first, with the rates of browsers' layers: 150, 500 and 1,700 kbit/s of a camera with 1,700.
  static let all = [
    CameraLayer(rid: "q", share: 0.09), CameraLayer(rid: "h", share: 0.29), CameraLayer(rid: "f", share: 1),
  ]

  var rid: String
  /// Its rate, as a share of the highest layer's rate.
  var share: Double
}

/// A frame of a layered camera, as in its dependency descriptor.
struct LayeredFrame: Sendable, Hashable {
  /// The index of its layer, from 0.
  var rank: UInt8
  var temporalLayer: UInt8
  /// Counts the frames of all layers of the camera; the descriptor has its low 16 bits.
  var number: UInt32
  /// The number of the frame that it refers to; nil for a key frame.
  var reference: UInt32?
}

/// The frame numbers of one camera, which its layers share.
final class FrameCounter {
  private var last: UInt32 = 0

  func next() -> UInt32 {
    last += 1
    return last
  }
}

/// The frames of one layer, in order.
struct LayerFrames {
  let rank: UInt8
  private let counter: FrameCounter
  private var position = 0
  /// The last frames of T0 and T1.
  private var last: [UInt32] = [0, 0]

  private static let temporalLayers: [UInt8] = [0, 2, 1, 2]

  init(rank: Int, counter: FrameCounter) {
    self.rank = UInt8(rank)
    self.counter = counter
  }

  mutating func next(isKeyFrame: Bool) -> LayeredFrame {
    position = isKeyFrame ? 0 : (position + 1) % 4
    let temporal = Self.temporalLayers[position]
    let number = counter.next()
    // The last frame of a group refers to its T1 frame.
    let reference = isKeyFrame ? nil : last[position == 3 ? 1 : 0]
    if isKeyFrame {
      last = [number, number]
    } else if temporal < 2 {
      last[Int(temporal)] = number
    }
    return LayeredFrame(rank: rank, temporalLayer: temporal, number: number, reference: reference)
  }
}

extension LayeredFrame {
  private static let structure: [(value: Int, bits: Int)] = [
    // From template 0 on, three decode targets: T0, T1 and T2.
    (0, 6), (2, 5),
    // The second and the third template are each one temporal layer above the one before; there is no fourth.
    (0b01_01_11, 6),
    // Each template's indications for the targets: switch in all; absent, then switch; absent, absent, discardable.
    (0b10_10_10, 6), (0b00_10_10, 6), (0b00_00_01, 6),
    // No references, since each frame has its own; no chains; resolutions follow.
    (0, 3), (0, 2), (1, 1),
  ]

  /// The dependency descriptor of one of its packets (AV1 RTP specification, A.8).
  func descriptor(isFirst: Bool, isLast: Bool) -> [UInt8] {
    var writer = BitWriter()
    writer.append(isFirst ? 1 : 0, 1)
    writer.append(isLast ? 1 : 0, 1)
    writer.append(Int(temporalLayer), 6)
    writer.append(Int(number & 0xffff), 16)
    let hasStructure = isFirst && reference == nil
    // Whether the frame has its own structure, active targets, indications, references and chains.
    writer.append(hasStructure ? 0b10010 : 0b00010, 5)
    if hasStructure {
      for (value, bits) in Self.structure { writer.append(value, bits) }
      writer.append((320 << Int(rank)) - 1, 16)
      writer.append((180 << Int(rank)) - 1, 16)
    }
    if let reference {
      // A reference in 12 bits.
      writer.append(3, 2)
      writer.append(Int(number - reference) - 1, 12)
    }
    writer.append(0, 2)
    return writer.bytes
  }

  private struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var used = 8

    mutating func append(_ value: Int, _ bits: Int) {
      for shift in stride(from: bits - 1, through: 0, by: -1) {
        if used == 8 {
          bytes.append(0)
          used = 0
        }
        bytes[bytes.count - 1] |= UInt8(value >> shift & 1) << UInt8(7 - used)
        used += 1
      }
    }
  }
}

/// Determines whether a decoder could show the frames of a slot: it shows key frames, and frames whose reference it has
/// shown.
struct DecodableFrames {
  private static let window = 256
  private var track: TrackKey?
  private var numbers = [UInt32](repeating: 0, count: window)

  /// - Returns: whether the frame can be decoded. Frames come in order.
  mutating func take(_ frame: LayeredFrame, of track: TrackKey) -> Bool {
    if track != self.track {
      self.track = track
      numbers = [UInt32](repeating: 0, count: Self.window)
    }
    if let reference = frame.reference, numbers[Int(reference) % Self.window] != reference { return false }
    numbers[Int(frame.number) % Self.window] = frame.number
    return true
  }
}
