import COpenSSL
package import MediaModel

/// One DTLS 1.2 association with use_srtp (RFC 5764, RFC 6347): passive for the SFU, active for a client.
///
/// ## Overview
/// The peer's certificate is compared with the fingerprint from signaling during the handshake, so no keys exist if it is wrong.
/// Each input may produce datagrams; they are passed to `send` before the call returns and are valid only during `send`.
///
/// ## Retransmission
/// The caller provides the time. OpenSSL's own timer reads the wall clock, so it is set beyond the handshake's deadline and never
/// fires. Instead this type keeps the last flight and sends it again, under new record numbers if they are in the clear. The
/// server's last flight has no timer, because nothing answers it: it is sent again whenever the client repeats its own.
package final class DTLSSession {
  package enum Role: Sendable { case client, server }

  package enum Failure: Sendable, Equatable {
    /// The peer's certificate is not the one that signaling announced.
    case wrongFingerprint
    /// No common SRTP profile.
    case noProfile
    /// A fatal alert or an error in the handshake.
    case handshake
    /// Not finished in 30 seconds.
    case timedOut
    /// More handshake bytes than any honest peer needs.
    case flooded
  }

  package enum Progress: Sendable {
    /// Nothing for the caller to do.
    case none
    /// The handshake is done; reported once.
    case connected(SRTPKeys)
    /// The association is dead; reported once.
    case failed(Failure)
    /// The peer sent close_notify; reported once.
    case closed
  }

  private enum State {
    /// Nothing has been received or sent.
    case idle
    case handshaking(Handshake)
    case connected(repeats: Int)
    case over
  }

  private struct Handshake {
    var deadline: Instant
    /// nil until there is a flight to repeat.
    var resendAt: Instant?
    /// A quarter of RFC 6347's second, because calls begin with this; a spurious repetition costs a few datagrams.
    var interval = Duration.milliseconds(250)
    var bytes = 0
    var earlyDatagrams = 0
  }

  private static let handshakeLimit = Duration.seconds(30)
  private static let longestInterval = Duration.seconds(4)
  /// An honest client sends about 3 KB, and repeats it some ten times at worst.
  private static let handshakeBytesLimit = 65_536
  /// OpenSSL keeps a record of a future epoch with a buffer of 17 KB until the epoch begins; repetitions of an honest
  /// client contain one each.
  private static let earlyDatagramLimit = 32
  /// Answers to repeats after the handshake.
  private static let repeatLimit = 32

  let role: Role
  let remoteFingerprint: CertificateFingerprint
  private let certificate: DTLSCertificate
  private let pipe = DatagramPipe()
  let ssl: OpaquePointer
  private var state = State.idle
  private var flight = Flight()
  /// The number of the next record of epoch 0.
  private var recordNumber: UInt64 = 0
  var isFingerprintWrong = false

  /// - Parameter maximumDatagram: bytes of the largest datagram sent, without IP and UDP headers; at least 280.
  package init(
    role: Role, certificate: DTLSCertificate, remoteFingerprint: CertificateFingerprint, maximumDatagram: Int = 1200
  ) {
    guard let ssl = SSL_new(certificate.context), let bio = pipe.makeBIO() else { fatalError("out of memory") }
    self.role = role
    self.certificate = certificate
    self.remoteFingerprint = remoteFingerprint
    self.ssl = ssl
    SSL_set_bio(ssl, bio, bio)
    // OpenSSL does not count the nonce and the tag of an encrypted record.
    copenssl_set_mtu(ssl, maximumDatagram - 24)
    // An hour, in microseconds.
    DTLS_set_timer_cb(ssl) { _, _ in 3_600_000_000 }
    SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    switch role {
    case .client: SSL_set_connect_state(ssl)
    case .server: SSL_set_accept_state(ssl)
    }
  }

  deinit { SSL_free(ssl) }

  /// Whether the next datagram can belong to the handshake, whose arithmetic takes long.
  package var isHandshaking: Bool {
    switch state {
    case .idle, .handshaking: true
    case .connected, .over: false
    }
  }

  /// When `handleTimeout` must be called; nil if nothing is outstanding.
  package var nextTimeout: Instant? {
    guard case .handshaking(let handshake) = state else { return nil }
    return min(handshake.deadline, handshake.resendAt ?? handshake.deadline)
  }

  /// Client: sends the ClientHello. Server: starts the clock of the handshake; optional, because the first datagram does
  /// so, too.
  package func start(now: Instant, send: (UnsafeRawBufferPointer) -> Void) -> Progress {
    guard case .idle = state else { return .none }
    state = .handshaking(Handshake(deadline: now.advanced(by: Self.handshakeLimit)))
    return role == .client ? advance(nil, now, send) : .none
  }

  /// A datagram of kind `.dtls` from the peer's validated address; any bytes are safe.
  package func handle(
    _ datagram: UnsafeRawBufferPointer, now: Instant, send: (UnsafeRawBufferPointer) -> Void
  ) -> Progress {
    guard !datagram.isEmpty else { return .none }
    if case .idle = state { state = .handshaking(Handshake(deadline: now.advanced(by: Self.handshakeLimit))) }
    switch state {
    case .idle, .over: return .none
    case .handshaking(var handshake):
      handshake.bytes += datagram.count
      guard handshake.bytes <= Self.handshakeBytesLimit else { return fail(.flooded) }
      // A client that fails to connect should report why; a server must not let a stranger end a handshake.
      let records = Self.inspect(datagram.bytes, dropsAlerts: role == .server)
      if records == .later { handshake.earlyDatagrams += 1 }
      state = .handshaking(handshake)
      guard records != .foreign, handshake.earlyDatagrams <= Self.earlyDatagramLimit else { return .none }
      return advance(datagram, now, send)
    case .connected(let repeats): return receive(datagram, repeats, send)
    }
  }

  /// Sends the last flight again, or gives up.
  package func handleTimeout(now: Instant, send: (UnsafeRawBufferPointer) -> Void) -> Progress {
    guard case .handshaking(var handshake) = state else { return .none }
    guard now < handshake.deadline else { return fail(.timedOut) }
    guard let resendAt = handshake.resendAt, now >= resendAt else { return .none }
    flight.send(numbering: &recordNumber, send)
    handshake.interval = min(handshake.interval * 2, Self.longestInterval)
    handshake.resendAt = now.advanced(by: handshake.interval)
    state = .handshaking(handshake)
    return .none
  }

  /// Sends close_notify; the session is of no use afterwards.
  package func close(send: (UnsafeRawBufferPointer) -> Void) {
    if case .connected = state, SSL_alloc_buffers(ssl) == 1 {
      ERR_clear_error()
      SSL_shutdown(ssl)
      var farewell = pipe.takeOutput()
      farewell.send(numbering: &recordNumber, send)
    }
    state = .over
  }

  /// One step of the handshake.
  private func advance(
    _ datagram: UnsafeRawBufferPointer?, _ now: Instant, _ send: (UnsafeRawBufferPointer) -> Void
  ) -> Progress {
    ERR_clear_error()
    pipe.input = datagram
    let result = SSL_do_handshake(ssl)
    pipe.input = nil
    var written = pipe.takeOutput()
    written.send(numbering: &recordNumber, send)
    guard result == 1 || SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else {
      return fail(isFingerprintWrong ? .wrongFingerprint : .handshake)
    }
    if !written.isEmpty { flight = written }
    if result == 1 {
      guard let keys = exportKeys() else { return fail(.noProfile) }
      state = .connected(repeats: 0)
      SSL_free_buffers(ssl)
      return .connected(keys)
    }
    if case .handshaking(var handshake) = state, !written.isEmpty {
      handshake.interval = Handshake(deadline: now).interval
      handshake.resendAt = now.advanced(by: handshake.interval)
      state = .handshaking(handshake)
    }
    return .none
  }

  /// After the handshake only close_notify, alerts and repetitions of the peer's last flight have a meaning. Application data is
  /// read and discarded.
  private func receive(
    _ datagram: UnsafeRawBufferPointer, _ repeats: Int, _ send: (UnsafeRawBufferPointer) -> Void
  ) -> Progress {
    // A record of the first epoch is not authentic, so it must not end the association (RFC 6347 section 4.1.2.7). From a client it means at most
    // that the client has not seen the last flight.
    guard Self.isProtected(datagram.bytes) else {
      repeatLastFlight(datagram, repeats, send)
      return .none
    }
    // 34 KB of record buffers, which are freed again because a session without records does not need them. OpenSSL does
    // not allocate the write buffer by itself.
    guard SSL_alloc_buffers(ssl) == 1 else { return .none }
    defer { SSL_free_buffers(ssl) }
    ERR_clear_error()
    pipe.input = datagram
    let result = withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 1) { scratch in
      var result: Int32
      repeat { result = SSL_read(ssl, scratch.baseAddress, Int32(scratch.count)) } while result > 0
      return result
    }
    pipe.input = nil
    var written = pipe.takeOutput()
    written.send(numbering: &recordNumber, send)
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ:
      if written.isEmpty { repeatLastFlight(datagram, repeats, send) }
      return .none
    case SSL_ERROR_ZERO_RETURN:
      state = .over
      return .closed
    default: return fail(.handshake)
    }
  }

  /// ChangeCipherSpec or handshake: the client has not seen the last flight.
  private func repeatLastFlight(
    _ datagram: UnsafeRawBufferPointer, _ repeats: Int, _ send: (UnsafeRawBufferPointer) -> Void
  ) {
    guard role == .server, [20, 22].contains(datagram[0]), repeats < Self.repeatLimit else { return }
    state = .connected(repeats: repeats + 1)
    flight.send(numbering: &recordNumber, send)
  }

  private func fail(_ failure: Failure) -> Progress {
    state = .over
    return .failed(failure)
  }
}
