import CallMessages
import Contract
import MediaModel

/// A device that joins a call, with the values that it brings.
struct Joiner {
  var device: Device
  var name: String?
  var joinId: Base64Bytes
  /// Only with a joinId made by the client.
  var joinKey: JoinKey?
  /// Its current keys; nil for a device without keys. They stay the same for its stay (rule 15).
  var keys: DeviceEntry?
  /// A link lets it in.
  var hasLink = false
  /// The word by which it joins by a link.
  var word: Admission?
  /// The device that signed the word, for a guest whom a member has admitted.
  var signer: Signer?
  /// For its media, created for this join.
  var peer: PeerID

  /// Its place in the epochs; nil for a device without registered keys, or without a join key.
  func keyedDevice(number: ParticipantNumber) -> KeyedDevice? {
    guard let joinKey, let keys else { return nil }
    return KeyedDevice(number: number, device: device, joinId: joinId, joinKey: joinKey, keys: keys)
  }

  var token: JoinToken { JoinToken(device: device, joinId: joinId) }
}

extension JoinKey {
  /// - Throws: `request.invalid` if it cannot be a join key. The server examines neither the key nor the signature.
  func check() throws(RequestError) {
    guard (1...64).contains(alg.utf8.count), (1...4_096).contains(publicKey.bytes.count),
      (1...1_024).contains(signature.bytes.count), at.isSignable
    else {
      throw RequestError(
        .requestInvalid, "a joinKey has an alg of up to 64 bytes, an SPKI, a time `at` and its signature",
        field: "joinKey")
    }
  }
}

/// The identity of a join, which a repeated join shares (rule 14).
struct JoinToken: Hashable {
  var device: Device
  var joinId: Base64Bytes
}
