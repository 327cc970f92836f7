import Contract
import Crypto
import JSON
import MediaModel
import NIOCore
import Octets

@testable import ConclaveClient

private let bodies = BodyDecoder(PublicWork(capacity: 1 << 20))

/// The first byte chooses the event, the rest is its body.
func readEvent(_ input: UnsafeMutableRawBufferPointer) {
  guard let first = input.first else { return }
  let name = EventName.allCases[Int(first) % EventName.allCases.count]
  _ = try? bodies.event(name, from: ByteBuffer(bytes: input.dropFirst()))
}

private let replies = [
  reader(of: Joined.self), reader(of: StartedCall.self), reader(of: InviteResults.self), reader(of: Registered.self),
  reader(of: Devices.self), reader(of: CallList.self), reader(of: MediaAnswer.self), reader(of: CallLink.self),
  reader(of: PresenceList.self), reader(of: HistoryList.self), reader(of: Totals.self), reader(of: KeysDelivered.self),
  reader(of: KeyList.self), reader(of: ConfirmationTags.self), reader(of: ErrorReply.self),
]

private func reader(of type: (some Decodable & Sendable).Type) -> @Sendable (ByteBuffer) -> Void {
  { body in _ = try? bodies.decode(type, from: body) }
}

/// The first byte chooses the reply, the rest is its body.
func readReply(_ input: UnsafeMutableRawBufferPointer) {
  guard let first = input.first else { return }
  replies[Int(first) % replies.count](ByteBuffer(bytes: input.dropFirst()))
}

/// A key list from a server: read, checked, hashed and changed.
func readList(_ input: UnsafeMutableRawBufferPointer) {
  guard let list = try? bodies.decode(KeyList.self, from: ByteBuffer(bytes: input)),
    let call = CallID("AAAAAAAAAAAAAAAAAAAAAA"), let checked = try? EpochList(list.list, epoch: list.epoch)
  else { return }
  _ = checked.hash(list.epoch, of: call, previous: EpochList.noPrevious)
  for entry in checked.entries {
    precondition(checked.holds(entry) && checked[entry.address] == entry)
    precondition(checked.entries(of: entry.user).contains { $0.address == entry.address })
  }
  _ = try? checked.changed(adding: list.list, removing: [], epoch: list.epoch)
}

private let privateKey = P256.KeyAgreement.PrivateKey()

/// Nothing opens that was not sealed to this key.
func openEnvelope(_ input: UnsafeMutableRawBufferPointer) {
  guard (try? WrapAlgorithm.open(input.octets, with: privateKey)) == nil else { fatalError("a forged envelope opens") }
}

/// The elements found for a list within a text are those that a parser of the whole text finds.
func readElements(_ input: UnsafeMutableRawBufferPointer) {
  let text = ByteBuffer(bytes: input)
  for path in [["list"], ["call", "members"]] {
    guard let parts = JSONElements(of: text, at: path) else { continue }
    if !parts.elements.isEmpty { _ = parts.text(of: 0..<parts.elements.count) }
    guard case .list(let wanted)? = (try? JSONCoding.decode(AnyValue.self, from: input.octets))?[path[...]] else {
      continue
    }
    let found = parts.elements.map { try? JSONCoding.decode(AnyValue.self, from: Array($0.readableBytesView)) }
    precondition(found == wanted.map(Optional.some))
    let rest = try? JSONCoding.decode(AnyValue.self, from: Array(parts.rest.readableBytesView))
    precondition(rest?[path[...]] == .list([]))
  }
}

extension AnyValue {
  /// The member at the end of a path of names.
  fileprivate subscript(path: ArraySlice<String>) -> AnyValue? {
    guard let name = path.first else { return self }
    guard case .object(let members) = self else { return nil }
    return members[name]?[path.dropFirst()]
  }
}

private let identity = DeviceIdentity(user: "alice", device: "phone")!

/// Messages of the other device in a pairing, one per line, to either side; and the text of a scanned picture.
func readPairing(_ input: UnsafeMutableRawBufferPointer) {
  if let fingerprint = PairingCode.fingerprint(scanned: input.text) {
    precondition(PairingCode.scanned(fingerprint) == input.text)
  }
  let messages = input.split(separator: UInt8(ascii: "\n")).map {
    try? JSONCoding.decode(PairingSession.Message.self, from: Array($0))
  }
  let now = Instant(nanoseconds: 1)
  let other = DeviceID("laptop")!
  // Predictable random numbers, so that the input gets further than the first step.
  var zeros = Zeros()
  var sides = [
    PairingSession.beginning(identity, with: other, now: now, using: &zeros).0,
    PairingSession.waiting(identity, for: other, now: now, using: &zeros),
  ]
  for side in sides.indices {
    for message in messages {
      guard let message else { continue }
      let wasOver = sides[side].isOver
      let actions = sides[side].handle(message, from: other, now: now)
      precondition(!wasOver || actions.isEmpty)
      for action in actions {
        if case .trust = action { fatalError("a device is trusted without its digits") }
      }
    }
    _ = sides[side].type("000000", registered: [], now: now)
  }
}

private struct Zeros: RandomNumberGenerator {
  mutating func next() -> UInt64 { 0 }
}

private let keys = EpochKeys(
  epoch: 1,
  derivation: SenderDerivation(
    call: CallID("c1")!, epoch: 1, listHash: [UInt8](repeating: 1, count: 32),
    secret: SymmetricKey(data: [UInt8](repeating: 3, count: 64))),
  senders: [1: SenderIdentity(fingerprint: [UInt8](repeating: 4, count: 32), joinId: [UInt8](repeating: 5, count: 16))])

/// A frame of a sender whose key is known. The first byte decides whether it arrives in a slot or as a message. A
/// forged frame never opens.
func openFrame(_ input: UnsafeMutableRawBufferPointer) {
  guard let first = input.first else { return }
  let now = Instant(nanoseconds: 1)
  var opener = FrameOpener()
  opener.install(keys)
  opener.assign(["s1": TrackID(participant: 1, index: 1)], now: now)
  let source: FrameSource = first & 1 == 0 ? .slot("s1", now: now) : .message(from: 1)
  let frame = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(input)[1...])
  withUnsafeTemporaryAllocation(byteCount: frame.count, alignment: 1) { room in
    let metadata = UnsafeRawBufferPointer(start: nil, count: 0)
    let opened = try? opener.decrypt(frame, from: source, metadata: metadata, into: room)
    precondition(opened == nil)
  }
}
