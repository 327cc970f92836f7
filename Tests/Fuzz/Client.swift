import Contract
import Crypto
import MediaModel
import NIOCore

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
  reader(of: KeyList.self), reader(of: Confirmations.self), reader(of: ErrorReply.self),
]

private func reader(of type: (some Decodable & Sendable).Type) -> @Sendable (ByteBuffer) -> Void {
  { body in _ = try? bodies.decode(type, from: body) }
}

/// The first byte chooses the reply, the rest is its body.
func readReply(_ input: UnsafeMutableRawBufferPointer) {
  guard let first = input.first else { return }
  replies[Int(first) % replies.count](ByteBuffer(bytes: input.dropFirst()))
}

/// A key list as the server sends it: read, checked, hashed and changed.
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
