import MediaModel
import RTP
import Transport

/// One participant's transport with its tracks and slots.
final class Peer {
  enum Presence {
    /// No handshake yet.
    case waiting
    case connected
    /// The handshake is done, but no address is proven, or nothing authentic came from one for the consent timeout.
    case silent
    /// It closed DTLS; only a new peer can follow.
    case closed
  }

  /// Streams of one peer, RTX among them; more are not latched.
  static let maximumStreams = 64
  /// Addresses of one peer; a newer one takes the place of the oldest.
  static let maximumPairs = 8

  let id: PeerID
  unowned let call: Call
  var configuration: PeerConfiguration
  let link = Link()
  var presence = Presence.waiting
  /// The addresses that authentic checks came from, oldest first.
  var pairs: [CandidatePair] = []
  /// Where media goes.
  var pair: CandidatePair?
  var nominations: UInt64 = 0
  /// Of our checks; only while some are outstanding.
  var checker: ConnectivityChecker?
  /// It answered a check of ours once.
  var answersChecks = false
  /// Checks, and datagrams of DTLS, to addresses that have not proven that they receive them.
  var checks: Budget
  var flights: Budget
  var session: DTLSSession?
  /// Where the last DTLS datagram came from: answers and their repetitions go there.
  var sessionAddress: SocketAddress?
  /// All datagrams of the handshake came from there, so that ours went there alone.
  var isSessionOnOneAddress = true
  var inbound: SRTPReceiver?
  var upTracks: [UpTrack] = []
  var downTracks: [DownTrack] = []
  var streams: ContiguousArray<Stream> = []
  var loudness = Loudness()
  var isSpeaker = false
  /// When this peer last became a speaker, or the loudest one.
  var spokeAt = Instant(nanoseconds: 0)
  /// From the clock of the peer's sender reports to ours, in nanoseconds: one for all its tracks, so that lips stay in step.
  var clockOffset: UInt64?
  var roundTrip = Duration.milliseconds(60)
  /// Nothing goes to it or comes from it.
  var isHeld = false
  var wishes = Wishes()
  var quality = Quality()
  /// Payload bytes in all slots, also those that are gone.
  var octetsSent: UInt64 = 0
  /// A NACK of 1,200 bytes can ask for 5,000 packets.
  var retransmissions: Budget
  var slotMap = SlotMap(revision: 0, slots: [], unsupported: [])
  var need = Need()
  var nextReport: Instant?
  /// When `SFU.handleTimeout` has something to do for this peer.
  var deadline: Instant?

  init(_ configuration: PeerConfiguration, call: Call, now: Instant) {
    id = configuration.peer
    self.call = call
    self.configuration = configuration
    checks = Budget(perSecond: 1, burst: 16, now: now)
    flights = Budget(perSecond: 1, burst: 16, now: now)
    retransmissions = Budget(perSecond: 2_000, burst: 500, now: now)
  }

  func downTrack(_ ssrc: UInt32) -> DownTrack? { downTracks.first { $0.slot.ssrc == ssrc } }

  func schedule(_ instant: Instant?) {
    guard let instant else { return }
    deadline = min(deadline ?? instant, instant)
  }
}
