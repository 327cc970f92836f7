import MediaModel
import Octets
import Transport

/// The outgoing side of one peer's transport: its address, its SRTP, its cursor in the outbox.
final class SendTransport {
  /// The data needed for each packet, in flat memory.
  struct Path {
    /// The proven address that the peer nominated last. Valid while `isOpen`.
    var destination = SocketAddress(high: 0, low: 0, port: 0)
    /// Media may be sent: the handshake is done and consent is fresh.
    var isOpen = false
    /// nil if the peer does not report arrivals.
    fileprivate(set) var downlink: UnsafeMutablePointer<Downlink>?
    var cursor = Outbox.Cursor()
    /// The transport's own sender, without reference counting for each packet.
    fileprivate(set) var sender: Unmanaged<SRTPSender>?
    /// Bytes that protection adds to an RTP packet.
    fileprivate(set) var overhead = 0
  }

  var path: UnsafeMutablePointer<Path> { pathBox.pointer }
  private let pathBox = Box(Path())
  private var downlinkBox: Box<Downlink>?

  /// nil before the handshake and after the end.
  var sender: SRTPSender? {
    didSet {
      path.pointee.sender = sender.map { .passUnretained($0) }
      path.pointee.overhead = sender?.profile.rtpOverhead ?? 0
    }
  }

  var downlink: UnsafeMutablePointer<Downlink>? { path.pointee.downlink }

  /// The peer reports arrivals, now or later.
  /// - Parameter feedback: not `.none`.
  func estimate(by feedback: RateFeedback, firstNumber: UInt16, now: Instant) {
    if let downlink = path.pointee.downlink {
      guard downlink.pointee.reportsRateAlone, feedback == .packets else { return }
      downlink.pointee = Downlink(feedback, firstNumber: firstNumber, now: now)
      return
    }
    downlinkBox = Box(Downlink(feedback, firstNumber: firstNumber, now: now))
    path.pointee.downlink = downlinkBox?.pointer
  }

  var isOpen: Bool { path.pointee.isOpen }

  /// Sends a datagram unchanged: DTLS.
  func send(_ datagram: UnsafeRawBufferPointer, to destination: SocketAddress, in outbox: Outbox) {
    guard let source = datagram.baseAddress, let room = outbox.reserve(datagram.count, &path.pointee.cursor) else {
      return
    }
    room.baseAddress!.copyMemory(from: source, byteCount: datagram.count)
    outbox.commit(datagram.count, &path.pointee.cursor, to: destination, isUrgent: true)
  }

  /// Protects and sends a compound RTCP packet.
  func sendRTCP(_ compound: UnsafeRawBufferPointer, in outbox: Outbox) {
    guard isOpen, let sender, compound.count > 0,
      let room = outbox.reserve(compound.count + sender.profile.rtcpOverhead, &path.pointee.cursor)
    else { return }
    room.baseAddress!.copyMemory(from: compound.baseAddress!, byteCount: compound.count)
    guard let length = sender.protectRTCP(room, length: compound.count) else { return }
    outbox.commit(length, &path.pointee.cursor, to: path.pointee.destination, isUrgent: true)
  }
}
