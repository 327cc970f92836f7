import CallMessages
import Connections
import Contract
import Crypto
import Foundation
import JSON
import MediaModel
import NIOCore
import Octets
import Persistence
import Recording
import ReelStore
import Seeded
import StoreWriting
import Synchronization
import Testing

@testable import ConclaveServer
@testable import Listening

/// A store of recordings with its requests and its paths, in a folder that goes with it.
final class RecordingHouse: Sendable {
  let folder = NSTemporaryDirectory() + "recording-house-\(UInt64.random(in: .min ... .max))"
  let storage: SQLiteStore
  let service: RecordingService
  let announcements: Announcements
  let files: RecordingFiles
  let alice = RecordingDevice("alice", "phone")
  let bob = RecordingDevice("bob", "laptop")
  let carol = RecordingDevice("carol", "tablet")

  init(origins: OriginPolicy = .sameHost(also: [])) async throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    storage = try SQLiteStore(path: folder + "/conclave.sqlite")
    let token = try storage.load(now: Timestamp(milliseconds: 1)).token
    var configuration = Configuration.Recordings()
    configuration.reserveMiB = 0
    let store = RecordingStore(configuration.store(in: folder), storage: storage, token: token)
    try await store.recover()
    let told = Announcements()
    announcements = told
    service = RecordingService(store, configuration: configuration, clock: WallClock()) { told.add($0) }
    files = RecordingFiles(store, authenticator: NamedTokens(), origins: origins)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// Two users who had a call.
  func acquaint(_ one: RecordingDevice, _ other: RecordingDevice) throws {
    let call = CallID(
      unchecked: "call of \(one.user.text) and \(other.user.text)".replacingOccurrences(of: " ", with: "-"))
    let then = Timestamp(milliseconds: 1_000)
    let facts: [HistoryFact] = [
      .call(call, .audio, startedAt: then), .part(call, one.user, name: nil, .outgoing, .answered),
      .part(call, other.user, name: nil, .incoming, .answered), .ended(call, at: then),
    ]
    try storage.write(facts.map(StoreChange.history))
  }

  /// - Parameter change: of what the control plane knows.
  func ask(
    _ request: RecordingsRequest, by device: RecordingDevice, change: (inout RecordingQuery) -> Void = { _ in }
  ) async -> Result<ReplyBody, RequestError> {
    var query = RecordingQuery(
      device: device.address, name: device.user.text.capitalized, entry: device.entry, request: request)
    change(&query)
    let outcome = await service.outcome(of: query)
    for news in outcome.news { announcements.add(news) }
    return switch outcome.reply {
    case .ok(let body): .success(body)
    case .failed(let error): .failure(error)
    }
  }

  func error(of request: RecordingsRequest, by device: RecordingDevice) async -> RequestError? {
    if case .failure(let error) = await ask(request, by: device) { error } else { nil }
  }

  /// - Returns: the ticket.
  func start(_ recording: TestRecording, grants: [RecordingGrant]? = nil) async throws -> String {
    let request = RecordingsRequest.start(recording.start(grants: grants))
    return try await started(request, by: recording.device).ticket
  }

  func started(
    _ request: RecordingsRequest, by device: RecordingDevice, change: (inout RecordingQuery) -> Void = { _ in }
  ) async throws -> StartedRecording {
    guard case .startedRecording(let started) = try await ask(request, by: device, change: change).get() else {
      throw Unexpected()
    }
    return started
  }

  struct Unexpected: Error {}

  /// - Parameter bearer: a ticket, or `user/device` as a token.
  func request(
    _ method: String, _ path: String, bearer: String? = nil, headers: [String: String] = [:], body: [UInt8] = []
  ) async throws -> HTTPAnswer {
    var all = headers.map { (name: $0.key, value: $0.value) }
    if let bearer { all.append(("Authorization", "Bearer \(bearer)")) }
    if method == "PUT", headers["Content-Length"] == nil { all.append(("Content-Length", "\(body.count)")) }
    let request = HTTPRequest(
      method: method, path: path, query: nil, headers: all.filter { $0.value != "none" }, body: ByteBuffer(),
      remoteAddress: nil)
    let stream = HTTPBody(wanted: {})
    if !body.isEmpty { _ = stream.append(ByteBuffer(bytes: body)) }
    stream.finish()
    return HTTPAnswer(files.shared(await files.respond(to: request, stream), with: request))
  }

  func put(
    _ segment: TestRecording.Segment, of recording: TestRecording, bearer: String, witness: String? = nil,
    number: UInt32? = nil
  ) async throws -> HTTPAnswer {
    try await request(
      "PUT", "/recordings/\(recording.id.text)/1/\(number ?? segment.number)", bearer: bearer,
      headers: ["Conclave-Witness": witness ?? segment.witness], body: segment.bytes)
  }
}

/// The news for people.
final class Announcements: Sendable {
  private let news = Mutex<[RecordingNews]>([])

  func add(_ one: RecordingNews) { news.withLock { $0.append(one) } }
  func take() -> [RecordingNews] { news.withLock { exchange(&$0, with: []) } }
  /// The grants among them.
  func takeShared() -> [RecordingShared] {
    take().flatMap { if case .shared(let shared, _) = $0 { shared } else { [] as [RecordingShared] } }
  }
}

struct HTTPAnswer {
  let status: Int
  let headers: [String: String]
  let body: HTTPResponse.Body

  init(_ response: HTTPResponse) {
    status = response.status
    headers = Dictionary(response.headers.map { ($0.name, $0.value) }) { first, _ in first }
    body = response.body
  }

  /// That of an answer that is not a stream.
  func json<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try JSONCoding.decode(type, from: Array(body.bytes.readableBytesView))
  }
}

/// A token is `user/device`.
struct NamedTokens: Authenticator {
  func claims(of token: String) async -> Claims? {
    let parts = token.split(separator: "/").map(String.init)
    guard parts.count == 2, let user = UserID(parts[0]), let device = DeviceID(parts[1]) else { return nil }
    return Claims(
      user: user, name: nil, device: device, isService: false, expiresAt: Timestamp(milliseconds: .max))
  }
}

/// A device with its keys.
struct RecordingDevice: Sendable {
  let user: UserID
  let device: DeviceID
  private let wrap = P256.KeyAgreement.PrivateKey()
  private let sign = P256.Signing.PrivateKey()

  init(_ user: String, _ device: String) {
    self.user = UserID(unchecked: user)
    self.device = DeviceID(unchecked: device)
  }

  var address: Device { Device(user: user, device: device) }
  var token: String { "\(user.text)/\(device.text)" }

  private var keys: [DeviceKey] {
    [
      DeviceKey(
        use: .wrap, alg: "HPKE-P256-SHA256-AES256GCM",
        publicKey: Base64Bytes(Array(wrap.publicKey.derRepresentation))),
      DeviceKey(use: .sign, alg: "ES256", publicKey: Base64Bytes(Array(sign.publicKey.derRepresentation))),
    ]
  }

  var fingerprint: [UInt8] {
    let (wrap, sign) = (keys[0], keys[1])
    return sha256(
      Transcript.device(
        user: user.text, device: device.text, wrap: (wrap.alg, wrap.publicKey.bytes),
        sign: (sign.alg, sign.publicKey.bytes)
      ).bytes)
  }

  var entry: DeviceEntry {
    DeviceEntry(
      user: user, device: device, name: nil, keys: keys, fingerprint: Base64Bytes(fingerprint),
      registeredAt: Timestamp(milliseconds: 1))
  }

  func signature(of transcript: Transcript) -> Base64Bytes {
    Base64Bytes(Array((try! sign.signature(for: transcript.bytes)).rawRepresentation))
  }
}

/// A recording that a device makes. Sealed parts are random bytes, because the server opens none of them.
struct TestRecording {
  struct Segment {
    let number: UInt32
    let bytes: [UInt8]
    /// As in `Conclave-Witness`.
    let witness: String
  }

  let device: RecordingDevice
  let id: RecordingID
  let statement: RecordingStatement
  let statementHash: [UInt8]
  private var random: SeededGenerator
  private(set) var count: UInt32 = 0
  private(set) var head = [UInt8](repeating: 0, count: 32)

  init(_ device: RecordingDevice, seed: UInt64 = 1, change: (inout RecordingStatement) -> Void = { _ in }) {
    self.device = device
    random = SeededGenerator(seed: seed)
    id = RecordingID(random.bytes(16))!
    var statement = RecordingStatement(
      id: id, kind: .message, call: CallID(unchecked: "c1"),
      publicKey: Base64Bytes(Array(P256.KeyAgreement.PrivateKey().publicKey.derRepresentation)), media: [.audio],
      readers: Set([device.user, UserID(unchecked: "bob")]).sorted(), at: Timestamp(milliseconds: 1_800_000_000_000),
      by: device.address, sigAlg: "ES256", signature: Base64Bytes([]))
    change(&statement)
    let transcript = Transcript.recording(statement, fingerprint: device.fingerprint)
    if statement.signature.bytes.isEmpty { statement.signature = device.signature(of: transcript) }
    self.statement = statement
    statementHash = sha256(transcript.bytes)
  }

  func start(grants: [RecordingGrant]? = nil, notes: [RecordingNote]? = nil, alert: Bool? = nil) -> StartRecording {
    let ciphertext = [UInt8](repeating: 5, count: 113)
    let signature = device.signature(
      of: .reelKey(
        statement: statementHash, reel: 1, fingerprint: device.fingerprint, ciphertextHash: sha256(ciphertext)))
    return StartRecording(
      statement: statement,
      reelKey: ReelKey(ciphertext: Base64Bytes(ciphertext), sigAlg: "ES256", signature: signature), grants: grants,
      notes: notes, alert: alert)
  }

  /// - Parameter signer: the granting device, if it is not the one that records.
  func grant(
    to other: RecordingDevice, by signer: RecordingDevice? = nil, alg: String = "HPKE-P256-SHA256-AES256GCM"
  ) -> RecordingGrant {
    let signer = signer ?? device
    let ciphertext = [UInt8](repeating: 6, count: 113)
    var grant = RecordingGrant(
      recording: id, to: .init(user: other.user, device: other.device), from: signer.address,
      key: Base64Bytes(sha256(other.entry.keys[0].publicKey.bytes)), alg: alg,
      ciphertext: Base64Bytes(ciphertext), at: statement.at, sigAlg: "ES256", signature: Base64Bytes([]))
    grant.signature = signer.signature(
      of: .grant(grant, statement: statementHash, ciphertextHash: sha256(ciphertext)))
    return grant
  }

  func note(_ number: UInt32, by signer: RecordingDevice? = nil) -> RecordingNote {
    let ciphertext = [UInt8](repeating: 7, count: 337)
    let transcript = Transcript.note(statement: statementHash, number: number, ciphertextHash: sha256(ciphertext))
    return RecordingNote(
      number: number, ciphertext: Base64Bytes(ciphertext), sigAlg: "ES256",
      signature: (signer ?? device).signature(of: transcript))
  }

  mutating func segment(_ byteCount: Int = 1_000) -> Segment {
    var bytes: [UInt8] = Array("CREC".utf8) + [1, 1, 0, 96] + id.bytes
    bytes += UInt32(1).networkOrderBytes + count.networkOrderBytes
    bytes += UInt64(1_800_000_000_000_000 + 2_000_000 * Int(count)).networkOrderBytes
    bytes += head + random.bytes(12) + [UInt8](repeating: 0, count: 12)
    bytes += random.bytes(byteCount - bytes.count)
    head = sha256(bytes)
    count += 1
    return Segment(number: count - 1, bytes: bytes, witness: "7:ES256:\(witness(isEnd: false, at: 7).base64)")
  }

  private func witness(isEnd: Bool, at: Int64) -> Base64Bytes {
    let witness = ReelWitness(
      reel: 1, segments: count, head: Base64Bytes(head), at: Timestamp(milliseconds: at), isEnd: isEnd,
      by: device.address, sigAlg: "ES256", signature: Base64Bytes([]))
    return device.signature(of: .witness(witness, statement: statementHash))
  }

  func finish() -> FinishRecording {
    FinishRecording(
      id: id,
      reels: [
        .init(
          reel: 1, segments: count, head: Base64Bytes(head), at: Timestamp(milliseconds: 9), sigAlg: "ES256",
          signature: witness(isEnd: true, at: 9))
      ])
  }
}

func sha256(_ bytes: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: bytes)) }
