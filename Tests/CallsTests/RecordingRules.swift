import Contract
import MediaModel
import Testing

@testable import Calls

/// Requests about recordings, on their way to the store (protocol section 13.4).
struct RecordingRules {
  static let id = RecordingID([UInt8](repeating: 7, count: 16))!
  static let note = AddNote(
    id: id, number: 0, ciphertext: Base64Bytes([]), sigAlg: "ES256", signature: Base64Bytes([]))

  static func start(by device: Device) -> StartRecording {
    let nothing = Base64Bytes([])
    return StartRecording(
      statement: RecordingStatement(
        id: id, kind: .own, publicKey: nothing, media: [.audio], readers: [], at: Stage.start, by: device,
        sigAlg: "ES256", signature: nothing),
      reelKey: ReelKey(ciphertext: nothing, sigAlg: "ES256", signature: nothing))
  }

  let stage = Stage()

  /// The requests that the store got.
  private func queries() -> [RecordingQuery] {
    stage.takeOthers().compactMap { if case .recordings(_, _, let query) = $0 { query } else { nil } }
  }

  private func send(_ request: RecordingsRequest, _ client: Client) -> RequestError.Code? {
    let reply = stage.request(client.session) { .request(client.session, id: $0, .recordings(request)) }
    if case .failed(let error) = reply { return error.code }
    return nil
  }

  @Test func theStoreGetsARequestWithTheKeysOfItsDevice() throws {
    let alice = stage.connect("alice")
    let start = RecordingsRequest.start(Self.start(by: alice.device))
    #expect(send(start, alice) == nil)
    let query = try #require(queries().first)
    #expect(query.device == alice.device && query.request == start)
    #expect(query.entry?.keys.contains { $0.use == .sign } == true)
  }

  @Test func aDeviceWithoutKeysRecordsNothing() {
    let alice = stage.connect("alice", keys: false)
    let requests: [RecordingsRequest] = [
      .start(Self.start(by: alice.device)), .finish(FinishRecording(id: Self.id, reels: [])),
      .share(ShareRecording(id: Self.id, grants: [])), .note(Self.note),
    ]
    for request in requests { #expect(send(request, alice) == .keysNotAllowed) }
    #expect(queries().isEmpty)
    // It may see and delete its user's.
    #expect(send(.list(ListRecordings()), alice) == nil && send(.get(GetRecording(id: Self.id)), alice) == nil)
    #expect(send(.delete(DeleteRecordings(ids: [Self.id])), alice) == nil)
    #expect(queries().count == 3)
  }

  private func shared(
    to user: String, _ device: String?, by client: Client
  ) -> RecordingShared {
    let nothing = Base64Bytes([])
    let grant = RecordingGrant(
      recording: Self.id,
      to: .init(user: UserID(unchecked: user), device: device.map(DeviceID.init(unchecked:))), from: client.device,
      key: nothing, alg: "X", ciphertext: nothing, at: Stage.start, sigAlg: "ES256", signature: nothing)
    return RecordingShared(recording: Self.id, kind: .message, by: client.device, grant: grant)
  }

  @Test func theHolderOfAGrantIsTold() {
    let (alice, phone, laptop) = (stage.connect("alice"), stage.connect("bob"), stage.connect("bob", "laptop"))
    let toPhone = shared(to: "bob", "phone", by: alice)
    stage.handle(.shared([toPhone]))
    #expect(phone.events() == [.recordingShared(toPhone)] && laptop.events().isEmpty)
    let toBob = shared(to: "bob", nil, by: alice)
    stage.handle(.shared([toBob, shared(to: "bob", "tablet", by: alice), shared(to: "nobody", nil, by: alice)]))
    #expect(phone.events() == [.recordingShared(toBob)] && laptop.events() == [.recordingShared(toBob)])
    #expect(alice.events().isEmpty)
  }

  @Test func theDeviceThatGrantsItselfIsNotTold() {
    let (phone, laptop) = (stage.connect("alice"), stage.connect("alice", "laptop"))
    stage.handle(.shared([shared(to: "alice", "phone", by: phone), shared(to: "alice", "laptop", by: phone)]))
    #expect(phone.events().isEmpty && laptop.names() == [.recordingShared])
  }

  @Test func aDeviceThatIsAwayIsToldWhenItComesBack() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    bob.disconnect()
    let message = shared(to: "bob", "phone", by: alice)
    stage.handle(.shared([message]))
    #expect(stage.connect("bob", keys: false).events().contains(.recordingShared(message)))
  }

  @Test func listsAreBounded() {
    let alice = stage.connect("alice")
    for limit in [0, -1, 201] { #expect(send(.list(ListRecordings(limit: limit)), alice) == .requestInvalid) }
    let many = Array(repeating: Self.id, count: 101)
    #expect(send(.delete(DeleteRecordings(ids: many)), alice) == .requestTooLarge)
    #expect(queries().isEmpty)
    #expect(send(.list(ListRecordings(limit: 200)), alice) == nil)
    #expect(send(.delete(DeleteRecordings(ids: Array(many.prefix(100)))), alice) == nil)
    #expect(queries().count == 2)
  }
}
