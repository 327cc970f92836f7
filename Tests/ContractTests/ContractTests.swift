import Contract
import JSON
import MediaModel
import Testing

@Test(arguments: ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy", "+/+/"])
func base64SurvivesThereAndBack(text: String) {
  #expect(Base64Bytes(base64: text)?.base64 == text)
}

@Test(arguments: ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "Zm9v=", "====", "Zm 9", "-_-_", "Zg==Zg=="])
func base64IsCanonicalOrRefused(text: String) {
  #expect(Base64Bytes(base64: text) == nil)
}

@Test(arguments: [
  "/app", "/app/", "/app/calls", "/app/calls/", "/app/calls/a b/state", "/app/calls//state", "/app/calls/x/explode",
  "/app/calls/x/state/more", "/app/calls/x/tracks/1", "/app/calls/x/tracks/1.0", "/app/calls/x/tracks/01.1",
  "/topic/calls/x", "app/calls/list", "/app/calls/x/keys/steal",
])
func unknownDestinationsAreNoRequests(destination: String) throws {
  #expect(try readRequest(destination, Array("{}".utf8)) == nil)
}

@Test(arguments: requests)
func aRequestIsReadWhereAClientSendsIt(destination: String, body: String) throws {
  let request = try #require(try readRequest(destination, Array(body.utf8)))
  let message = request.message
  #expect(message.destination == destination)
  #expect(String(decoding: try JSONCoding.encode(AnyBody(message.body)), as: UTF8.self) == body)
}

/// Reads a request as the server does.
func readRequest(_ destination: String, _ body: [UInt8]) throws -> Request? {
  let segments = destination.split(separator: "/", omittingEmptySubsequences: false)
  guard segments.prefix(2) == ["", "app"] else { return nil }
  return try Request(path: segments.dropFirst(2), body: JSONBody(bytes: body))
}

private struct JSONBody: RequestBody {
  let bytes: [UInt8]
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try JSONCoding.decode(type, from: bytes) }
}

private let requests = [
  ("/app/devices/register", #"{"name":"Phone","keys":[{"use":"wrap","alg":"X","publicKey":"AA=="}]}"#),
  ("/app/devices/list", #"{"users":["alice","bob"]}"#),
  ("/app/calls/start", #"{"id":"c1","callees":["bob"],"media":"video","policy":{"ringSeconds":10},"joinId":"AA=="}"#),
  (
    "/app/calls/c1/accept",
    #"{"joinId":"AA==","joinKey":{"v":2,"alg":"X","publicKey":"AA==","generation":0,"at":5,"signature":"AA=="}}"#
  ),
  ("/app/calls/c1/decline", #"{"reason":"busy"}"#),
  ("/app/calls/c1/invite", #"{"callees":["eve"],"metadata":"AA=="}"#),
  ("/app/calls/c1/cancel", #"{"callees":["eve"]}"#),
  ("/app/calls/c1/join", "{}"),
  ("/app/calls/c1/rejoin", #"{"joinId":"AA=="}"#),
  ("/app/calls/c1/leave", "{}"),
  ("/app/calls/c1/end", "{}"),
  ("/app/calls/c1/state", "{}"),
  ("/app/calls/list", "{}"),
  ("/app/calls/c1/media", #"{"sdp":"v=0","tracks":[{"mid":"0","source":"screen-audio"}]}"#),
  ("/app/calls/c1/tracks/1.2", #"{"muted":true}"#),
  (
    "/app/calls/c1/keys",
    #"{"epoch":2,"envelopes":[{"epoch":2,"to":{"user":"bob","device":"p"},"key":"AQ==","alg":"X","ciphertext":"AA==","encryptedAESKey":"AA=="}]}"#
  ),
  ("/app/calls/c1/keys/request", #"{"epoch":2}"#),
  ("/app/calls/c1/keys/list", "{}"),
]

@Test func anEnvelopeIsReadByEitherNameOfItsCiphertext() throws {
  let text = #"{"epoch":1,"to":{"user":"a","device":"b"},"key":"AQ==","alg":"X","encryptedAESKey":"AQ=="}"#
  #expect(try JSONCoding.decode(Envelope.self, from: Array(text.utf8)).ciphertext.bytes == [1])
  let neither = #"{"epoch":1,"to":{"user":"a","device":"b"},"key":"AQ==","alg":"X"}"#
  let error = #expect(throws: JSONError.self) { try JSONCoding.decode(Envelope.self, from: Array(neither.utf8)) }
  #expect(error?.field == "ciphertext")
}

@Test(arguments: [
  #"{"alg":"X","publicKey":"AA==","signature":"AA=="}"#,
  #"{"v":1,"alg":"X","publicKey":"AA==","generation":0,"at":5,"signature":"AA=="}"#,
  #"{"v":"2","alg":"X","publicKey":"AA==","generation":0,"at":5,"signature":"AA=="}"#,
  #"{"v":2,"alg":"X","publicKey":"AA==","generation":-1,"at":5,"signature":"AA=="}"#,
  #"{"v":2,"alg":"X","publicKey":"AA==","generation":4294967296,"at":5,"signature":"AA=="}"#,
  #"{"v":2,"alg":"X","publicKey":"AA==","generation":0.5,"at":5,"signature":"AA=="}"#,
  #"{"v":2,"alg":"X","publicKey":"AA==","generation":0,"signature":"AA=="}"#,
])
func aJoinKeyOfAnotherVersionIsRefusedAsAWhole(key: String) {
  let error = #expect(throws: JSONError.self) {
    try JSONCoding.decode(Join.self, from: Array(#"{"joinKey":\#(key)}"#.utf8))
  }
  #expect(error?.field == "joinKey")
}

@Test func anEventHasItsMembersBesideTheTime() throws {
  let track = TrackState(track: TrackID(participant: 1, index: 2), source: .camera, muted: false)
  let message = EventMessage(
    at: Timestamp(milliseconds: 5), call: CallID("c1"), body: .trackRemoved(TrackChange(track, cause: .replaced)))
  #expect(
    String(decoding: try JSONCoding.encode(message), as: UTF8.self)
      == #"{"at":5,"call":"c1","track":"1.2","source":"camera","kind":"video","muted":false,"participant":1,"cause":"replaced"}"#
  )
}

@Test(arguments: ["", "a b", "é", "a/b", String(repeating: "a", count: 129)])
func idsOutsideTheRuleAreRefused(text: String) {
  #expect(UserID(text) == nil)
}

@Test func idsAndSecretsDoNotPrint() throws {
  let user = try #require(UserID("alice"))
  let device = Device(user: user, device: try #require(DeviceID("laptop")))
  #expect(!"\(device) \(user)".contains("alice"))
  #expect(!"\(Base64Bytes([1, 2, 3]))".contains("AQID"))
}

/// Makes an existential body encodable.
private struct AnyBody: Encodable {
  let body: any Encodable
  init(_ body: any Encodable) { self.body = body }
  func encode(to encoder: any Encoder) throws { try body.encode(to: encoder) }
}
