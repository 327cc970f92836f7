import CallMessages
import Connections
import Contract
import JSON
import Listening
import MediaModel
import NIOCore
import Recording
import ReelStore
import Synchronization

/// `/recordings/`: segments come by PUT and go by GET (protocol section 13.5).
final class RecordingFiles: Sendable {
  static let methods = ["GET", "HEAD", "PUT", "OPTIONS"]
  /// The most downloads of a user at one time.
  static let downloadsOfUser = 16
  /// Bytes that are read at once.
  private static let part = 256 << 10
  /// Bytes that a segment brings in a second, at least: the room for uploads is everybody's.
  private static let slowest = 32 << 10

  private let store: RecordingStore
  private let authenticator: any Authenticator
  /// Pages of other origins that may use it.
  private let origins: LiveValue<OriginPolicy>
  private let patience: Duration
  private let downloads = Mutex<[UserID: Int]>([:])

  /// - Parameter patience: what a segment of any length may take beside the time that its bytes have.
  init(
    _ store: RecordingStore, authenticator: any Authenticator, origins: OriginPolicy = .sameHost(also: []),
    patience: Duration = .seconds(30)
  ) {
    self.patience = patience
    self.store = store
    self.authenticator = authenticator
    self.origins = LiveValue(origins)
  }

  func setOrigins(_ origins: OriginPolicy) { self.origins.set(origins) }

  var route: Route {
    Route(.under("/recordings/"), methods: Self.methods, maximumBody: SegmentHeader.maximumSegmentBytes) {
      self.shared(await self.respond(to: $0, $1), with: $0)
    }
  }

  /// A path below `/recordings/`.
  private enum Place {
    case recording(RecordingID)
    case segment(RecordingID, reel: UInt32, number: UInt32)

    /// nil for another path. Numbers are written in one way.
    init?(_ path: String) {
      let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2).map(String.init)
      guard let text = parts.first, let id = RecordingID(text) else { return nil }
      if parts.count == 1 {
        self = .recording(id)
        return
      }
      guard parts.count == 3, let reel = UInt32(parts[1]), let number = UInt32(parts[2]),
        "\(reel)" == parts[1], "\(number)" == parts[2]
      else { return nil }
      self = .segment(id, reel: reel, number: number)
    }
  }

  func respond(to request: HTTPRequest, _ body: HTTPBody) async -> HTTPResponse {
    if request.method == "OPTIONS" {
      return HTTPResponse(headers: [("allow", Self.methods.joined(separator: ", "))])
    }
    guard let place = Place(request.path) else { return Self.notFound }
    guard let bearer = request.bearer else {
      return HTTPResponse(
        status: 401, headers: [("www-authenticate", "Bearer")],
        body: ByteBuffer(string: "Send a token or the recording's ticket as Authorization: Bearer.\n"))
    }
    do throws(RecordingRefusal) {
      switch (request.method, place) {
      case ("PUT", .segment(let id, let reel, let number)):
        return try await put(request, body, bearer, id, reel: reel, number: number)
      case ("GET", .segment(let id, let reel, let number)):
        return try await get(request, bearer, id, reel: reel, number: number)
      case ("GET", .recording(let id)): return try await positions(of: id, bearer)
      default: return HTTPResponse(status: 405, text: "Only segments are put.\n")
      }
    } catch {
      return HTTPResponse(error)
    }
  }

  // MARK: access

  private enum Access {
    /// The holder of the ticket may upload, and see how far that is.
    case ticket
    /// The device that began the recording.
    case author(UserID)
    case reader(UserID)
    case nobody

    var mayUpload: Bool {
      switch self {
      case .ticket, .author: true
      case .reader, .nobody: false
      }
    }

    /// The user who downloads; nil if this may not read segments.
    var reader: UserID? {
      switch self {
      case .author(let user), .reader(let user): user
      case .ticket, .nobody: nil
      }
    }
  }

  /// - Parameter record: nil if there is no such recording.
  private func access(
    _ bearer: String, to id: RecordingID, _ record: RecordingRecord?
  ) async throws(RecordingRefusal) -> Access {
    if bearer.hasPrefix(UploadTicket.prefix) {
      return record?.ticket == UploadTicket.hash(of: bearer) ? .ticket : .nobody
    }
    guard let record, let claims = await authenticator.claims(of: bearer), claims.guestOf == nil, !claims.isService
    else {
      return .nobody
    }
    let by = record.statement.by
    if claims.user == by.user { return claims.device == by.device ? .author(by.user) : .reader(by.user) }
    let grants = try await store.ask { store throws(StoreError) in try store.grants(of: id, to: claims.user) }
    let recording = try await store.recording(id)
    return recording?.isOpen(to: claims.user, hasGrant: !grants.isEmpty) == true ? .reader(claims.user) : .nobody
  }

  private func record(of id: RecordingID) async throws(RecordingRefusal) -> RecordingRecord? {
    try await store.ask { store throws(StoreError) in try store.record(of: id) }
  }

  // MARK: up

  private func put(
    _ request: HTTPRequest, _ body: HTTPBody, _ bearer: String, _ id: RecordingID, reel: UInt32, number: UInt32
  ) async throws(RecordingRefusal) -> HTTPResponse {
    guard let length = request[header: "content-length"].flatMap({ Int($0) }) else {
      return HTTPResponse(status: 411, text: "Send the segment's length as Content-Length.\n")
    }
    guard let witness = UploadWitness(request[header: "conclave-witness"]) else {
      return HTTPResponse(status: 400, text: "Conclave-Witness: <at>:<sigAlg>:<base64> is missing.\n")
    }
    guard let record = try await record(of: id) else {
      return HTTPResponse(status: 410, text: "The recording was deleted.\n")
    }
    guard try await access(bearer, to: id, record).mayUpload, let checks = RecordingChecks(author: record) else {
      return HTTPResponse(status: 403, text: "Take the ticket of recordings/start, or start it again.\n")
    }
    let upload = try store.admit(id, reel: reel, byteCount: length)
    defer { store.release(upload) }
    let bytes: [UInt8]
    // In range: the upload was admitted.
    switch await body.collected(length, within: patience + .milliseconds(1_000 * length / Self.slowest)) {
    case .whole(let body): bytes = body
    case .another: return HTTPResponse(status: 400, text: "The body is not as long as it says.\n")
    case .late: return HTTPResponse(status: 408, text: "The segment came too slowly: make segments shorter.\n")
    }
    // The place is the path's, also for a segment that is there already.
    guard (try? SegmentHeader(parsing: bytes.span.bytes))?.number == number else { throw .invalid }
    let hash = checks.hash(of: record.statement)
    let result = try await store.append(bytes, of: upload) { segment throws(RecordingRefusal) in
      let said = ReelWitness(
        reel: reel, segments: number + 1, head: Base64Bytes(segment.hash.bytes), at: witness.at, isEnd: false,
        by: record.statement.by, sigAlg: witness.algorithm, signature: witness.signature)
      guard checks.isSigned(said, statement: hash) else { throw .unsigned }
      return [.witness(id, said)]
    }
    return HTTPResponse(status: result == .stored ? 201 : 200, text: "stored\n")
  }

  // MARK: down

  private struct Positions: Encodable {
    var reels: [String: Position]
  }

  private func positions(of id: RecordingID, _ bearer: String) async throws(RecordingRefusal) -> HTTPResponse {
    let record = try await record(of: id)
    if case .nobody = try await access(bearer, to: id, record) { return Self.notFound }
    guard let recording = try await store.recording(id) else { return Self.notFound }
    let reels = recording.reels.map { ("\($0.number)", Position($0.position)) }
    return HTTPResponse(json: Positions(reels: Dictionary(reels) { first, _ in first }))
  }

  private func get(
    _ request: HTTPRequest, _ bearer: String, _ id: RecordingID, reel: UInt32, number: UInt32
  ) async throws(RecordingRefusal) -> HTTPResponse {
    let record = try await record(of: id)
    guard let user = try await access(bearer, to: id, record).reader,
      let count = try await store.byteCount(of: id, reel: reel, segment: number)
    else { return Self.notFound }
    var headers: [(name: String, value: String)] = [
      ("content-type", "application/octet-stream"), ("cache-control", "no-store"), ("accept-ranges", "bytes"),
    ]
    var (status, range) = (200, 0..<count)
    switch ByteRange.wanted(request[header: "range"], of: count) {
    case .whole: break
    case .part(let part):
      (status, range) = (206, part)
      headers.append(("content-range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)"))
    case .nothing: return HTTPResponse(status: 416, headers: [("content-range", "bytes */\(count)")])
    }
    guard downloads.withLock({ $0[user, default: 0] }) < Self.downloadsOfUser else { throw .busy }
    let wanted = range
    let stream = HTTPStream(length: wanted.count) { [self] writer in
      // Here and not before: the answer to HEAD is not written.
      begin(user)
      defer { end(user) }
      var offset = wanted.lowerBound
      while offset < wanted.upperBound {
        let bytes = try await store.read(
          id, reel: reel, segment: number, from: offset, count: min(Self.part, wanted.upperBound - offset))
        // The file was deleted meanwhile: the client sees that the body is not complete.
        guard !bytes.isEmpty else { return }
        try await writer.write(ByteBuffer(bytes: bytes))
        offset += bytes.count
      }
    }
    return HTTPResponse(status: status, headers: headers, stream: stream)
  }

  private func begin(_ user: UserID) { downloads.withLock { $0[user, default: 0] += 1 } }

  private func end(_ user: UserID) {
    downloads.withLock { downloads in
      let left = downloads[user, default: 1] - 1
      downloads[user] = left > 0 ? left : nil
    }
  }

  // MARK: pages of other origins

  /// Cookies are of no use here, so none are requested (Fetch standard, CORS protocol).
  func shared(_ response: HTTPResponse, with request: HTTPRequest) -> HTTPResponse {
    var response = response
    response.headers.append(("vary", "origin"))
    guard let origin = request[header: "origin"], origins.value.names(origin) else { return response }
    response.headers.append(("access-control-allow-origin", origin))
    response.headers.append(("access-control-expose-headers", "retry-after, content-range"))
    guard request.method == "OPTIONS" else { return response }
    response.headers += [
      ("access-control-allow-methods", "GET, PUT"),
      ("access-control-allow-headers", "authorization, conclave-witness, content-type, range"),
      ("access-control-max-age", "600"),
    ]
    return response
  }

  private static let notFound = HTTPResponse(status: 404, text: "There is no such segment, or it is not for you.\n")
}

/// Where a reel goes on.
private struct Position: Encodable {
  var next: UInt32
  var head: Base64Bytes

  init(_ position: ReelPosition) {
    next = position.next
    head = Base64Bytes(position.head.bytes)
  }
}

/// The header `Conclave-Witness`: `<at>:<sigAlg>:<base64>`.
struct UploadWitness: Hashable {
  let at: Timestamp
  let algorithm: String
  let signature: Base64Bytes

  init?(_ header: String?) {
    let parts = header?.split(separator: ":", omittingEmptySubsequences: false).map(String.init) ?? []
    guard parts.count == 3, let at = Int64(parts[0]), at >= 0, parts[1].utf8.count <= 64,
      let signature = Base64Bytes(base64: parts[2])
    else { return nil }
    self.at = Timestamp(milliseconds: at)
    algorithm = parts[1]
    self.signature = signature
  }
}

extension HTTPRequest {
  /// RFC 6750 section 2.1.
  fileprivate var bearer: String? {
    guard let header = self[header: "authorization"], header.lowercased().hasPrefix("bearer ") else { return nil }
    return String(header.dropFirst(7))
  }
}

/// The outcome of reading a body.
private enum CollectedBody {
  case whole([UInt8])
  /// It has another length, or broke off.
  case another
  case late
}

extension HTTPBody {
  /// The whole body.
  fileprivate func collected(_ count: Int, within time: Duration) async -> CollectedBody {
    let isLate = Mutex(false)
    let reading = Task { await collected(count) }
    let timer = Task {
      try await Task.sleep(for: time)
      isLate.withLock { $0 = true }
      reading.cancel()
    }
    defer { timer.cancel() }
    let bytes = await withTaskCancellationHandler(operation: { await reading.value }, onCancel: { reading.cancel() })
    if let bytes { return .whole(bytes) }
    return isLate.withLock { $0 } ? .late : .another
  }

  private func collected(_ count: Int) async -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    do {
      for try await part in self {
        guard part.readableBytes <= count - bytes.count else { return nil }
        bytes += part.readableBytesView
      }
    } catch {
      return nil
    }
    return bytes.count == count ? bytes : nil
  }
}

extension HTTPResponse {
  fileprivate init(status: Int = 200, headers: [(name: String, value: String)] = [], json value: some Encodable) {
    self.init(
      status: status,
      headers: [("content-type", "application/json"), ("cache-control", "no-store")] + headers,
      body: ByteBuffer(bytes: (try? JSONCoding.encode(value)) ?? []))
  }

  fileprivate init(_ refusal: RecordingRefusal) {
    func retry(_ status: Int, _ seconds: Int, _ text: String) -> HTTPResponse {
      var response = HTTPResponse(status: status, text: text)
      response.headers.append(("retry-after", "\(seconds)"))
      return response
    }
    self =
      switch refusal {
      case .conflict(let position): HTTPResponse(status: 409, json: Position(position))
      case .notFound, .taken: HTTPResponse(status: 410, text: "The recording has ended or was deleted.\n")
      case .invalid: HTTPResponse(status: 400, text: "The bytes are no sealed segment of this place.\n")
      case .unsigned:
        HTTPResponse(status: 403, text: "Conclave-Witness is not the recording device's signature over this segment.\n")
      case .tooLarge: HTTPResponse(status: 413, text: "A segment has 8 MiB at most.\n")
      case .tooLong: HTTPResponse(status: 413, text: "The message is as long as it may be: finish it.\n")
      // Only requests are refused so.
      case .drafts, .grants, .unopened: HTTPResponse(status: 400, text: "That is no segment.\n")
      case .quota: HTTPResponse(status: 507, text: "There is no room left: delete recordings.\n")
      case .diskFull: retry(507, 60, "The server's disk is full.\n")
      case .busy: retry(429, 1, "Too much at once: try again in a moment.\n")
      case .unavailable: retry(503, 5, "The store of recordings does not answer: try again.\n")
      }
  }
}
