import Contract
import MediaModel
import NIOCore
import Recording
import ReelStore
import Testing

@testable import ConclaveServer
@testable import Listening

/// `/recordings/` (protocol section 13.5).
@Suite(.timeLimit(.minutes(5))) struct RecordingFilesTests {
  private struct Position: Decodable, Equatable {
    var next: UInt32
    var head: Base64Bytes
  }
  private struct Positions: Decodable { var reels: [String: Position] }

  @Test func aSegmentIsStoredOnceAndInOrder() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    let path = "/recordings/\(recording.id.text)"
    let nothing = try await house.request("GET", path, bearer: ticket).json(Positions.self)
    #expect(nothing.reels == ["1": Position(next: 0, head: Base64Bytes([UInt8](repeating: 0, count: 32)))])
    let segments = [recording.segment(), recording.segment(), recording.segment()]
    let firstHead = Base64Bytes(sha256(segments[0].bytes))
    #expect(try await house.put(segments[0], of: recording, bearer: ticket).status == 201)
    #expect(try await house.put(segments[0], of: recording, bearer: ticket).status == 200)
    let early = try await house.put(segments[2], of: recording, bearer: ticket)
    #expect(early.status == 409)
    #expect(try early.json(Position.self) == Position(next: 1, head: firstHead))
    // The device itself may send with its token, too.
    #expect(try await house.put(segments[1], of: recording, bearer: house.alice.token).status == 201)
    let now = try await house.request("GET", path, bearer: house.alice.token).json(Positions.self)
    #expect(now.reels["1"]?.next == 2 && now.reels["1"]?.head.bytes == sha256(segments[1].bytes))
  }

  @Test func onlyTheRecordingsDeviceUploads() async throws {
    let house = try await RecordingHouse()
    try house.acquaint(house.alice, house.bob)
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    let other = try await house.start(TestRecording(house.bob, seed: 2))
    let segment = recording.segment()
    #expect(try await house.request("PUT", "/recordings/\(recording.id.text)/1/0", body: segment.bytes).status == 401)
    for bearer in [other, "upload~", house.bob.token, "alice/laptop", "nonsense"] {
      #expect(try await house.put(segment, of: recording, bearer: bearer).status == 403, "\(bearer)")
    }
    // Its ticket alone is not enough: each segment has the device's signature.
    var forger = TestRecording(house.alice)
    let own = forger.segment(2_000)
    let unsigned = try await house.put(segment, of: recording, bearer: ticket, witness: own.witness)
    #expect(unsigned.status == 403)
    for witness in ["none", "", "7:ES256", "x:ES256:AA==", "7:ES256:A", "-1:ES256:AA=="] {
      #expect(try await house.put(segment, of: recording, bearer: ticket, witness: witness).status == 400, "\(witness)")
    }
    #expect(try await house.put(segment, of: recording, bearer: ticket).status == 201)
  }

  @Test func aPlaceThatIsNotTheSegmentsIsRefused() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    let segment = recording.segment()
    #expect(try await house.put(segment, of: recording, bearer: ticket, number: 1).status == 400)
    let root = "/recordings/\(recording.id.text)"
    for path in [
      "\(root)/1/00", "\(root)/1", "\(root)/1/0/0", "\(root)/1/-0", "\(root)/1/99999999999", "/recordings/x/1/0",
    ] {
      let answer = try await house.request(
        "PUT", path, bearer: ticket, headers: ["Conclave-Witness": segment.witness], body: segment.bytes)
      #expect(answer.status == 404, "\(path)")
    }
    #expect(try await house.request("PUT", root, bearer: ticket, body: segment.bytes).status == 405)
    let elsewhere = try await house.request(
      "PUT", "\(root)/2/0", bearer: ticket, headers: ["Conclave-Witness": segment.witness], body: segment.bytes)
    #expect(elsewhere.status == 410)
  }

  @Test func aBodyOfAnotherLengthIsRefused() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    let segment = recording.segment()
    for (length, status) in [("none", 411), ("999", 400), ("1001", 400), ("111", 400), ("8388609", 413), ("x", 411)] {
      let answer = try await house.request(
        "PUT", "/recordings/\(recording.id.text)/1/0", bearer: ticket,
        headers: ["Conclave-Witness": segment.witness, "Content-Length": length], body: segment.bytes)
      #expect(answer.status == status, "\(length)")
    }
    #expect(house.service.store.statistics.uploadBytes == 0, "nothing is reserved any more")
  }

  /// The room for uploads is everybody's.
  @Test func aSegmentThatTricklesInIsGivenUp() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    let files = RecordingFiles(house.service.store, authenticator: NamedTokens(), patience: .milliseconds(1))
    let request = HTTPRequest(
      method: "PUT", path: "/recordings/\(recording.id.text)/1/0", query: nil,
      headers: [
        ("Authorization", "Bearer \(ticket)"), ("Content-Length", "1000"),
        ("Conclave-Witness", recording.segment().witness),
      ], body: ByteBuffer(), remoteAddress: nil)
    let body = HTTPBody(wanted: {})
    _ = body.append(ByteBuffer(repeating: 1, count: 999))
    #expect(await files.respond(to: request, body).status == 408)
    #expect(house.service.store.statistics.uploadBytes == 0)
  }

  /// The path says the same as the header, also of a segment that is there.
  @Test func aStoredSegmentIsFoundInItsOwnPlaceOnly() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    let segments = [recording.segment(), recording.segment()]
    for segment in segments { #expect(try await house.put(segment, of: recording, bearer: ticket).status == 201) }
    #expect(try await house.put(segments[0], of: recording, bearer: ticket, number: 1).status == 400)
    #expect(try await house.put(segments[0], of: recording, bearer: ticket, number: 2).status == 400)
  }

  @Test func readersReadAndNobodyElse() async throws {
    let house = try await RecordingHouse()
    try house.acquaint(house.alice, house.bob)
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    _ = try await house.put(recording.segment(), of: recording, bearer: ticket)
    let path = "/recordings/\(recording.id.text)/1/0"
    for bearer in [house.alice.token, "alice/laptop", house.bob.token] {
      let answer = try await house.request("GET", path, bearer: bearer)
      #expect(answer.status == 200 && answer.headers["cache-control"] == "no-store")
      guard case .stream(let stream) = answer.body else { throw RecordingHouse.Unexpected() }
      #expect(stream.length == 1_000)
    }
    for bearer in [ticket, house.carol.token, "nonsense"] {
      #expect(try await house.request("GET", path, bearer: bearer).status == 404, "\(bearer)")
    }
    #expect(try await house.request("GET", path).status == 401)
    #expect(try await house.request("GET", "/recordings/\(recording.id.text)", bearer: house.carol.token).status == 404)
    #expect(
      try await house.request("GET", "/recordings/\(recording.id.text)/1/1", bearer: house.bob.token).status == 404)
  }

  @Test func aPartOfASegmentIsRead() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    _ = try await house.put(recording.segment(), of: recording, bearer: ticket)
    let path = "/recordings/\(recording.id.text)/1/0"
    func get(_ range: String) async throws -> HTTPAnswer {
      try await house.request("GET", path, bearer: house.alice.token, headers: ["Range": range])
    }
    let part = try await get("bytes=100-199")
    #expect(part.status == 206 && part.headers["content-range"] == "bytes 100-199/1000")
    guard case .stream(let stream) = part.body else { throw RecordingHouse.Unexpected() }
    #expect(stream.length == 100)
    let beyond = try await get("bytes=1000-")
    #expect(beyond.status == 416 && beyond.headers["content-range"] == "bytes */1000")
    #expect(try await get("bytes=0-9,20-29").status == 200)
  }

  @Test func aDeletedRecordingIsGone() async throws {
    let house = try await RecordingHouse()
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    _ = try await house.put(recording.segment(), of: recording, bearer: ticket)
    _ = try await house.ask(.delete(DeleteRecordings(ids: [recording.id])), by: house.alice).get()
    #expect(try await house.put(recording.segment(), of: recording, bearer: ticket).status == 410)
    let path = "/recordings/\(recording.id.text)/1/0"
    #expect(try await house.request("GET", path, bearer: house.alice.token).status == 404)
  }

  @Test(arguments: [("https://app.example", true), ("https://evil.example", false)])
  func pagesOfTheOperatorsOriginsUseIt(origin: String, isNamed: Bool) async throws {
    let house = try await RecordingHouse(origins: .sameHost(also: ["https://app.example"]))
    let asked = try await house.request("OPTIONS", "/recordings/x", headers: ["Origin": origin])
    #expect(asked.status == 200 && asked.headers["vary"] == "origin")
    #expect(asked.headers["access-control-allow-origin"] == (isNamed ? origin : nil))
    #expect(asked.headers["access-control-allow-methods"] == (isNamed ? "GET, PUT" : nil))
    let refused = try await house.request("GET", "/recordings/x", headers: ["Origin": origin])
    #expect(refused.status == 404 && refused.headers["access-control-allow-origin"] == (isNamed ? origin : nil))
  }
}

struct ByteRangeTests {
  @Test(
    arguments: [
      (nil, .whole), ("bytes=0-0", .part(0..<1)), ("bytes=0-99", .part(0..<100)), ("bytes=10-", .part(10..<100)),
      ("bytes=10-500", .part(10..<100)), ("bytes=99-99", .part(99..<100)), ("bytes=-1", .part(99..<100)),
      ("bytes=-500", .part(0..<100)), ("bytes=100-", .nothing), ("bytes=100-200", .nothing), ("bytes=-0", .nothing),
      ("bytes=5-4", .whole), ("bytes=", .whole), ("bytes=-", .whole), ("bytes=a-b", .whole), ("bytes=1-2,3-4", .whole),
      ("bytes=+1-2", .whole), ("items=0-1", .whole), ("bytes=0-99999999999999999999", .whole), ("bytes=1-2-3", .whole),
      ("bytes=0-999999999999999999", .part(0..<100)), ("bytes=999999999999999999-", .nothing),
    ] as [(String?, ByteRange.Wanted)])
  func oneRangeIsRead(header: String?, wanted: ByteRange.Wanted) {
    #expect(ByteRange.wanted(header, of: 100) == wanted)
  }

  @Test func anEmptyFileHasNoPart() {
    #expect(ByteRange.wanted("bytes=0-", of: 0) == .nothing && ByteRange.wanted("bytes=-1", of: 0) == .nothing)
    #expect(ByteRange.wanted(nil, of: 0) == .whole)
  }
}

struct UploadTicketTests {
  @Test func aTicketIsATextOfALongRandomNumber() {
    let ticket = UploadTicket(random: [UInt8](repeating: 0xff, count: 32))
    #expect(ticket.text == "upload~" + String(repeating: "_", count: 42) + "8")
    #expect(ticket.hash == UploadTicket.hash(of: ticket.text) && ticket.hash.bytes.count == 32)
    #expect(UploadTicket.fresh().text != UploadTicket.fresh().text)
  }
}
