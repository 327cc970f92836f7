import CongestionControl
import MediaModel
import RTP
import Transport
import Octets

/// One participant's transport with its tracks and slots.
final class Peer: Scheduled {
  enum ConnectionState {
    /// No handshake yet.
    case waiting
    case connected
    /// The handshake is done, but no address is proven, or nothing authentic has arrived for the consent timeout.
    case silent
    /// It closed DTLS. Only a new peer can follow.
    case closed
  }

  /// Streams of one peer, including RTX; further ones are not latched.
  static let maximumStreams = 64
  /// Addresses of one peer; a newer one replaces the oldest.
  static let maximumPairs = 8

  let id: PeerID
  /// The worker that has the peer and relays its tracks; nil for a peer of this worker.
  let home: RelayEnd?
  unowned let call: ForwardedCall
  /// Its slots are filled by `pins`, and no ranking contains its tracks.
  let isPinned: Bool
  /// The pin of each slot, by its mid. Set by `PinFiller`.
  var pins: [String: SlotPin] = [:]
  var configuration: PeerConfiguration
  let transport = SendTransport()
  var connectionState = ConnectionState.waiting
  /// The addresses from which authentic checks came, oldest first.
  var pairs: [CandidatePair] = []
  /// Where media goes.
  var pair: CandidatePair?
  var nominations: UInt64 = 0
  /// Makes our checks; exists only while some are outstanding.
  var checker: ConnectivityChecker?
  /// It has answered one of our checks.
  var answersChecks = false
  /// Limits checks and DTLS datagrams to addresses that have not proven that they receive them.
  var checks = TokenBucket(perSecond: 1, burst: 16)
  var flights = TokenBucket(perSecond: 1, burst: 16)
  /// nil before the first datagram of a handshake.
  var association: Association?
  var inbound: SRTPReceiver?
  var upTracks: [UpTrack] = [] {
    didSet { encodings = upTracks.flatMap(\.encodings) }
  }
  /// Those of `upTracks`.
  private(set) var encodings: [Encoding] = []
  private(set) var downTracks: [DownTrack] = []
  /// Those of `downTracks` for each kind.
  private(set) var audioSlots: [DownTrack] = []
  private(set) var videoSlots: [DownTrack] = []
  /// Slots whose m-lines are inactive: if one comes back, its numbers must continue. SRTP never accepts a number twice, nor one from far behind.
  private(set) var restingSlots: [DownTrack] = []
  /// The bits of the call's format keys that the slots carry, and how many keys there were.
  private var carried: (audio: UInt64, video: UInt64, keys: Int) = (0, 0, -1)
  /// Its slots must be filled at the next allocation, whatever else changed.
  var needsSlots = false
  /// It is in its call's queue for slots.
  var isWaitingForSlots = false
  /// None of its slots carries the format of some track.
  var lacksFormats = false
  /// Until when one of its slots is held against a better ranked track.
  var heldUntil: Instant?
  /// It was removed.
  var isGone = false
  var streams: ContiguousArray<Stream> = []
  /// In flat memory, because each packet changes it; nil if the peer does not number its packets.
  var arrivals: UnsafeMutablePointer<ArrivalReports>? { arrivalsBox?.pointer }
  private var arrivalsBox: Box<ArrivalReports>?
  var voice = Voice()
  /// The peer's own worker knows that its frames are encrypted; the configuration here does not say so.
  var isEncryptedElsewhere = false
  /// Offset from the clock of the peer's sender reports to ours, in nanoseconds. The same for all its tracks, to keep audio
  /// and video in sync.
  var clockOffset: UInt64?
  var roundTrip = Duration.milliseconds(60)
  /// Nothing is sent to it or received from it.
  var isHeld = false
  var wishes = Wishes()
  var quality = QualityMeter()
  /// Payload bytes in all slots, including removed ones.
  var octetsSent: UInt64 = 0
  /// For the packets of all its tracks, and for its RTCP.
  var published: UnsafeMutablePointer<PublishingBudget> { publishedBox.pointer }
  private let publishedBox: Box<PublishingBudget>
  var controlled: PublishingBudget
  /// A NACK of 1,200 bytes can ask for 5,000 packets.
  var retransmissions = TokenBucket(perSecond: 2_000, burst: 500)
  var slotMap = SlotMap(revision: 0, slots: [], unsupported: [])
  var need = SlotNeed()
  /// Set while the worker cannot keep up.
  var load: LoadDivision?
  var nextReport: Instant?
  /// When the wishes for this peer's tracks are next repeated to the worker that has the peer.
  var wishReminder = WishReminder()
  /// The encoding that the next receiver report begins with; one has room for 16.
  var reportedFrom = 0
  /// When `SFU.handleTimeout` has work for this peer.
  private(set) var deadline: Instant?
  var place = -1

  init(
    _ configuration: PeerConfiguration, home: RelayEnd? = nil, call: ForwardedCall, limits: SFUConfiguration = .init()
  ) {
    id = configuration.peer
    publishedBox = Box(PublishingBudget(limits.publisher))
    controlled = PublishingBudget(limits.control)
    self.home = home
    self.call = call
    isPinned = configuration.filling == .pinned
    self.configuration = configuration
  }

  /// Reports continue over later offers as long as the packets have numbers.
  func describeArrivals() {
    let id = configuration.extensions.transportSequence
    if let arrivals {
      arrivals.pointee.extensionID = id
    } else if id != 0, !configuration.tracks.isEmpty {
      arrivalsBox = Box(ArrivalReports(extensionID: id))
    }
  }

  var isEncrypted: Bool { configuration.isOnKeyList || isEncryptedElsewhere }

  func downTrack(_ ssrc: UInt32) -> DownTrack? { downTracks.first { $0.description.ssrc == ssrc } }

  func setSlots(_ slots: [DownTrack], resting: [DownTrack]) {
    restingSlots = resting
    // Waiting packets are identified by their slots' numbers.
    if !slots.starts(with: downTracks, by: ===) { for down in downTracks { down.forgetWaiting() } }
    downTracks = slots
    audioSlots = slots.filter { $0.description.kind == .audio }
    videoSlots = slots.filter { $0.description.kind == .video }
    for (number, down) in videoSlots.enumerated() {
      down.slot.pointee.number = number < Pacer.slots ? UInt8(number) : nil
    }
    carried.keys = -1
    call.recountVoices()
  }

  /// The bits of the format keys of the call that a slot of this kind carries.
  func carriedFormats(_ kind: MediaKind) -> UInt64 {
    let formats = call.formats
    if carried.keys != formats.count {
      func bits(_ slots: [DownTrack]) -> UInt64 {
        formats.indices.reduce(0) { bits, key in
          slots.contains { $0.carries(key, of: formats) } ? bits | 1 << UInt64(key) : bits
        }
      }
      carried = (bits(audioSlots), bits(videoSlots), formats.count)
    }
    return kind == .audio ? carried.audio : carried.video
  }

  func schedule(_ instant: Instant?) {
    guard let instant else { return }
    deadline = min(deadline ?? instant, instant)
  }

  func clearDeadline() { deadline = nil }
}
