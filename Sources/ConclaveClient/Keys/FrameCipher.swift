import Crypto
package import MediaModel
import SFrame
import Synchronization

/// Encrypts this participant's frames and decrypts everyone else's, with the keys that the call's key agreement puts in.
///
/// Made for media threads: every method may be called from any of them. A frame's sender is who its key says, whatever the server says of the slot.
public final class FrameCipher: Sendable {
  /// Bytes that `encrypt` adds at most.
  public static let maximumOverhead = CipherSuite.maximumOverhead

  private let lock = Mutex(())
  /// Only under `lock`. Not inside it, since a lock would take the caller's raw buffers for parts of what it guards.
  nonisolated(unsafe) private var keys = FrameKeys()

  /// A cipher without keys; a call fills it.
  public init() {}

  /// Who sent a decrypted frame, and how long it is.
  public struct Opened: Sendable, Hashable {
    /// The sending participant.
    public var participant: UInt32
    /// n of its track `participant.n`; 0 for a message.
    public var track: UInt8
    /// Bytes of plaintext.
    public var byteCount: Int
    /// The sender's count of the frames of this track and key.
    public var counter: UInt64
  }

  /// Encrypts one frame of the own track `n` into `output`, behind nothing: the bytes of `metadata`, which a packetizer must read, are authenticated and
  /// not copied. Returns the bytes written, at most `maximumOverhead` more than the frame's.
  public func encrypt(
    _ frame: UnsafeRawBufferPointer, track: UInt8, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Int {
    try lock.withLock { _ throws(FrameCipherError) in
      try keys.encrypt(frame, track: track, metadata: metadata, into: output)
    }
  }

  /// Decrypts one SFrame into `output`, which holds as many bytes as the frame. On an error nothing is written.
  public func decrypt(
    _ frame: UnsafeRawBufferPointer, metadata: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Opened {
    try lock.withLock { _ throws(FrameCipherError) in
      try keys.decrypt(frame, metadata: metadata, into: output)
    }
  }

  /// Rises with each switch of the sending key: a video encoder makes a key frame when it sees another number.
  public var sendingEpoch: UInt32? { lock.withLock { _ in keys.sendingEpoch } }

  package func install(_ keys: EpochKeys) { lock.withLock { _ in self.keys.install(keys) } }
  package func retire(_ epoch: UInt32) { lock.withLock { _ in keys.retire(epoch) } }
  /// Epochs whose frames open now.
  package var epochs: [UInt32] { lock.withLock { _ in keys.heldEpochs } }
  package func stopSending() { lock.withLock { _ in keys.sendingEpoch = nil } }
  package func send(_ epoch: UInt32, as participant: ParticipantNumber) {
    lock.withLock { _ in keys.send(epoch, as: participant) }
  }
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
  package func open(_ sealed: [UInt8], metadata: [UInt8] = []) throws(FrameCipherError) -> ([UInt8], Opened) {
    var output = [UInt8](repeating: 0, count: sealed.count)
    let result = output.withUnsafeMutableBytes { output in
      sealed.withUnsafeBytes { sealed in
        metadata.withUnsafeBytes { metadata in
          Result { () throws(FrameCipherError) in try decrypt(sealed, metadata: metadata, into: output) }
        }
      }
    }
    let opened = try result.get()
    return (Array(output.prefix(opened.byteCount)), opened)
  }
}
