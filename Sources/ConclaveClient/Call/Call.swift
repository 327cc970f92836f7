import Contract
import MediaModel

/// A call that this device is in.
public final class Call: Sendable {
  /// The call's id.
  public let id: String
  /// This device's number in the call.
  public let participant: UInt32
  /// TURN servers for the PeerConnection.
  public let iceServers: [ICEServer]
  /// Encrypts and decrypts the call's frames.
  public let cipher: FrameCipher
  /// What happens in the call, to be read by one task.
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

  let callID: CallID
  private let client: CallClient

  init(_ joined: Joined, cipher: FrameCipher, updates: AsyncStream<CallUpdate>, client: CallClient) {
    callID = joined.call.id
    id = joined.call.id.text
    participant = joined.participant
    iceServers = joined.ice.servers.map {
      ICEServer(urls: $0.urls, username: $0.username, credential: $0.credential)
    }
    self.cipher = cipher
    self.updates = updates
    self.client = client
  }

  /// How the call stands now; nil when it is over for this device.
  public var snapshot: CallSnapshot? { get async { await client.snapshot(callID) } }

  /// The 40 digits to compare by voice; nil before the first key.
  public var code: String? { get async { await client.code(callID) } }

  /// Sends an SDP offer, the first or a later one, and returns the answer.
  public func offer(_ sdp: String, tracks: [OfferedTrack]) async throws(SignalingError) -> AnsweredOffer {
    try await client.offer(callID, sdp, tracks)
  }

  /// Mutes or unmutes one of this device's tracks: the server tells all, and forwards nothing of a muted one.
  public func setMuted(_ muted: Bool, track: String) async throws(SignalingError) {
    guard let track = TrackID(track) else { throw .invalidIdentifier }
    try await client.perform(.track(callID, track, ChangeTrack(muted: muted)))
  }

  /// Rings more users; returns what became of each: `ringing`, `offline`, `busy`, `no-keys` and so on.
  public func invite(_ users: [String]) async throws(SignalingError) -> [String: String] {
    try await client.invite(callID, users)
  }

  /// Stops the ringing of these users, or of all.
  public func cancel(_ users: [String]? = nil) async throws(SignalingError) {
    try await client.perform(.cancel(callID, Cancel(callees: try users.map(CallClient.identifiers))))
  }

  /// Leaves; the call goes on for the others. The keys are forgotten even when the server cannot be told.
  public func leave() async throws(SignalingError) {
    let left = await client.leave(callID)
    try left.get()
  }

  /// Ends the call for all; only its initiator may.
  public func end() async throws(SignalingError) { try await client.perform(.end(callID)) }
}
