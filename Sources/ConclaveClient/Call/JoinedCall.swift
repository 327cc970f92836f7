import Contract
import MediaModel

/// A call that this device is in.
public final class JoinedCall: Sendable {
  /// The call's id.
  public let id: String
  /// Encrypts and decrypts the call's frames.
  public let cipher: FrameCipher
  /// The call's updates, to be read by one task.
  public let updates: AsyncStream<CallUpdate>

  /// A TURN server and the credentials for it.
  public struct ICEServer: Sendable, Hashable {
    /// `turn:` and `stun:` addresses.
    public var urls: [String]
    /// Name to log in with.
    public var username: String?
    /// Password to log in with.
    public var credential: String?
  }

  /// The result of each ring of `CallClient.start`, by user: `ringing`, `offline`, `unavailable`, `busy`, `no-keys`, and the others of `invite`; empty for a call
  /// that this device did not start.
  public let ringResults: [String: String]

  let callID: CallID
  let client: CallClient
  private let stay: CurrentStay

  init(
    _ id: CallID, stay: CurrentStay, cipher: FrameCipher, updates: AsyncStream<CallUpdate>, client: CallClient,
    ringResults: [String: String] = [:]
  ) {
    callID = id
    self.ringResults = ringResults
    self.id = id.text
    self.stay = stay
    self.cipher = cipher
    self.updates = updates
    self.client = client
  }

  /// This device's number in the call; a new one after each `CallUpdate.rejoined`.
  public var participant: UInt32 { stay.now.participant }

  /// TURN servers for the PeerConnection.
  public var iceServers: [ICEServer] { stay.now.iceServers }

  /// The current state of the call; nil if it is over for this device.
  public var snapshot: CallSnapshot? { get async { await client.snapshot(callID) } }

  /// The 40 digits to compare by voice; nil before the first key. Equal digits prove that both devices were shown the same
  /// list of devices.
  public var code: String? { get async { await client.code(callID) } }

  /// Every device that may hold the key in use, as covered by the call code. Show them all.
  public var devices: [PinnedDevice] { get async { await client.listed(callID) } }

  /// Accepts the key in the warning as its device's own, after a person has looked at it: the device becomes *known*, not verified, which is what `verify`
  /// does. If the device has a different key by now, that key stays untrusted.
  public func trust(_ warning: KeyWarning) async {
    await client.trust(
      PinnedDevice(user: warning.user, device: warning.device, fingerprint: warning.fingerprint))
  }

  /// Marks one person's devices verified, exactly as they were shown when the person began to compare. Throws if they belong to several
  /// users.
  public func verify(_ shown: [ListedDevice]) async throws(SignalingError) {
    guard Set(shown.map(\.user)).count == 1 else { throw .invalidIdentifier }
    for device in shown {
      await client.trust(
        PinnedDevice(user: device.user, device: device.device, fingerprint: device.fingerprint, isVerified: true))
    }
  }

  /// Sends in spite of exactly these devices: those of `SilenceCause.strangers`, `.departed`, `.revoked` and `.changedKeys` as the person was shown them; none
  /// for only `.held`. Any other device, or the same one with another key or in another stay, stops sending again.
  public func sendAnyway(_ shown: [ListedDevice]) async { await client.sendAnyway(shown, in: callID) }

  /// Returns as a new participant, with new keys and a new PeerConnection: the way out of `SilenceCause.brokenHistory`.
  public func rejoin() async { await client.recover(callID, .historyBroken) }

  /// Leaves; the call goes on for the others. The keys are forgotten even if the server cannot be told.
  public func leave() async throws(SignalingError) {
    let left = await client.leave(callID)
    try left.get()
  }

  /// Ends the call for all; only its initiator may.
  public func end() async throws(SignalingError) { try await client.perform(.call(callID, .end)) }
}
