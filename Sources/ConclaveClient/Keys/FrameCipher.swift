package import MediaModel
import NIOCore
import SFrame
import Synchronization

/// Encrypts this participant's frames and decrypts everyone else's, with the keys that the call's key agreement installs.
///
/// Made for media threads: every method may be called from any of them. A frame counts only if its key and the slot in which it arrived name the same
/// track.
public final class FrameCipher: Sendable {
  /// The most bytes that `encrypt` adds.
  public static let maximumOverhead = CipherSuite.maximumOverhead

  private let sealing = Mutex(())
  private let opening = Mutex(())
  /// Accessed only under `sealing`. Not inside it, because the lock would treat the caller's raw buffers as parts of the
  /// guarded value.
  nonisolated(unsafe) private var sealer = FrameSealer()
  /// Accessed only under `opening`.
  nonisolated(unsafe) private var opener = FrameOpener()
  private let openingChanges = Atomic(0)

  /// A cipher without keys; a call fills it.
  public init() {}

  /// A decrypted frame's sender and length.
  public struct Opened: Sendable, Hashable {
    /// The sending participant.
    public var participant: UInt32
    /// n of its track `participant.n`; 0 for a message.
    public var track: UInt8
    /// Bytes of plaintext.
    public var byteCount: Int
    /// The sender's count of the frames of this track and key.
    public var counter: UInt64
    /// The epoch of the key that opened it.
    public var epoch: UInt32
  }

  /// Encrypts one frame of the own track `n` into `output`, from its start: the bytes of `metadata`, which a packetizer must read, are authenticated and
  /// not copied. Returns the number of bytes written, at most `maximumOverhead` more than the frame's.
  public func encrypt(
    _ frame: UnsafeRawBufferPointer, track: UInt8, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Int {
    try sealing.withLock { _ throws(FrameCipherError) in
      try sealer.encrypt(frame, track: track, metadata: metadata, into: output)
    }
  }

  /// Decrypts one SFrame that arrived in the slot `mid` (the m-line's) into `output`, which holds as many bytes as the frame. On an error nothing is
  /// written.
  public func decrypt(
    _ frame: UnsafeRawBufferPointer, slot mid: String, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Opened {
    try decrypt(frame, from: .slot(mid, now: Self.now), metadata: metadata, into: output)
  }

  package func decrypt(
    _ frame: UnsafeRawBufferPointer, from source: FrameSource, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Opened {
    try opening.withLock { _ throws(FrameCipherError) in
      try opener.decrypt(frame, from: source, metadata: metadata, into: output)
    }
  }

  /// Rises with each switch of the sending key: a video encoder makes a key frame when the number changes. nil while nothing may be sent.
  public var sendingEpoch: UInt32? { sealing.withLock { _ in sealer.sendingEpoch } }

  package func send(_ key: SendingKey) { sealing.withLock { _ in sealer.send(key) } }
  package func stopSending() { sealing.withLock { _ in sealer.stop() } }
  package func setMuted(_ isMuted: Bool, track: UInt8) {
    sealing.withLock { _ in sealer.setMuted(isMuted, track: track) }
  }
  package func withhold(_ tracks: Set<UInt8>) { sealing.withLock { _ in sealer.withhold(tracks) } }
  package func hold(_ isHeld: Bool) { sealing.withLock { _ in sealer.hold(isHeld) } }
  package func receiveSound(in mids: Set<String>) { opening.withLock { _ in opener.receiveSound(in: mids) } }
  package func install(_ keys: EpochKeys) {
    opening.withLock { _ in opener.install(keys) }
    openingChanges.add(1, ordering: .releasing)
  }

  /// Rises when keys or slots have arrived: waiting frames are worth another try.
  package var openingRevision: Int { openingChanges.load(ordering: .acquiring) }

  package func exclude(_ fingerprint: [UInt8]) { opening.withLock { _ in opener.exclude(fingerprint) } }
  package func retire(_ epoch: UInt32) { opening.withLock { _ in opener.retire(epoch) } }
  /// Epochs whose frames open now.
  package var epochs: [UInt32] { opening.withLock { _ in opener.heldEpochs } }
  package func assign(_ slots: [String: TrackID], now: Instant) {
    opening.withLock { _ in opener.assign(slots, now: now) }
    openingChanges.add(1, ordering: .releasing)
  }

  /// Forgets all keys: the call is over for this device.
  package func wipe() {
    sealing.withLock { _ in sealer.wipe() }
    opening.withLock { _ in opener.wipe() }
  }

  static var now: Instant { Instant(nanoseconds: NIODeadline.now().uptimeNanoseconds) }
}

extension FrameCipher {
  /// `encrypt` into a new array.
  package func seal(_ plaintext: [UInt8], track: UInt8, metadata: [UInt8] = []) throws(FrameCipherError) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: plaintext.count + Self.maximumOverhead)
    let result = output.withUnsafeMutableBytes { output in
      plaintext.withUnsafeBytes { plaintext in
        metadata.withUnsafeBytes { metadata in
          Result { () throws(FrameCipherError) in
            try encrypt(plaintext, track: track, metadata: metadata, into: output)
          }
        }
      }
    }
    return Array(output.prefix(try result.get()))
  }

  /// `decrypt` into a new array.
  package func open(
    _ sealed: [UInt8], from source: FrameSource, metadata: [UInt8] = []
  ) throws(FrameCipherError) -> ([UInt8], Opened) {
    var output = [UInt8](repeating: 0, count: sealed.count)
    let result = output.withUnsafeMutableBytes { output in
      sealed.withUnsafeBytes { sealed in
        metadata.withUnsafeBytes { metadata in
          Result { () throws(FrameCipherError) in
            try decrypt(sealed, from: source, metadata: metadata, into: output)
          }
        }
      }
    }
    let opened = try result.get()
    return (Array(output.prefix(opened.byteCount)), opened)
  }
}
