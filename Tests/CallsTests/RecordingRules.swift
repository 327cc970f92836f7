import CallMessages
import Contract
import MediaModel
import Testing

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

  let stage = Stage { $0.pushKey = Base64Bytes([4, 2]) }

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
    #expect(send(.seen(SeenRecording(id: Self.id)), alice) == nil)
    #expect(send(.erase(EraseReel(id: Self.id)), alice) == nil)
    #expect(queries().count == 5)
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
    stage.handle(.recording(.shared([toPhone], newcomers: [])))
    #expect(phone.events() == [.recordingShared(toPhone)] && laptop.events().isEmpty)
    let toBob = shared(to: "bob", nil, by: alice)
    let others = [shared(to: "bob", "tablet", by: alice), shared(to: "nobody", nil, by: alice)]
    stage.handle(.recording(.shared([toBob] + others, newcomers: [])))
    #expect(phone.events() == [.recordingShared(toBob)] && laptop.events() == [.recordingShared(toBob)])
    #expect(alice.events().isEmpty)
  }

  @Test func theDeviceThatGrantsItselfIsNotTold() {
    let (phone, laptop) = (stage.connect("alice"), stage.connect("alice", "laptop"))
    let grants = [shared(to: "alice", "phone", by: phone), shared(to: "alice", "laptop", by: phone)]
    stage.handle(.recording(.shared(grants, newcomers: [])))
    #expect(phone.events().isEmpty && laptop.names() == [.recordingShared])
  }

  @Test func aDeviceThatIsAwayIsToldWhenItComesBack() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    bob.disconnect()
    let message = shared(to: "bob", "phone", by: alice)
    stage.handle(.recording(.shared([message], newcomers: [])))
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

  // MARK: who may be reached

  private func start(by client: Client, readers: [String], alert: Bool? = nil) -> RecordingsRequest {
    var start = Self.start(by: client.device)
    start.statement.readers = readers.map(UserID.init(unchecked:))
    start.alert = alert
    return .start(start)
  }

  @Test func theStoreKnowsWhoHasNoKeys() throws {
    let (alice, _, _) = (stage.connect("alice"), stage.connect("bob"), stage.connect("carol", keys: false))
    #expect(send(start(by: alice, readers: ["dave", "carol", "bob", "alice"]), alice) == nil)
    let query = try #require(queries().first)
    #expect(query.request.recipients(besides: alice.user).map(\.text) == ["bob", "carol", "dave"])
    #expect(query.keyless.map(\.text).sorted() == ["carol", "dave"])
    #expect(query.allowed == nil, "the history decides")
  }

  @Test func theAppsBackEndSaysWhoMayGetARecording() throws {
    let stage = Stage { $0.asksBackEnd = true }
    let alice = stage.connect("alice")
    let request = start(by: alice, readers: ["alice", "bob", "carol", "guest~1"])
    stage.handle(.request(alice.session, id: "r1", .recordings(request)))
    let asked = stage.takeOthers().compactMap { effect -> (QuestionID, Question)? in
      if case .ask(let id, let question) = effect { (id, question) } else { nil }
    }
    let bob = UserID(unchecked: "bob")
    let to = [bob, UserID(unchecked: "carol")]
    #expect(asked.map(\.1) == [.authorize(.message, from: alice.user, to: to)])
    stage.handle(.answer(try #require(asked.first?.0), allowed: [bob]))
    let queries = stage.takeOthers().compactMap { effect -> RecordingQuery? in
      if case .recordings(_, let id, let query) = effect, id == "r1" { query } else { nil }
    }
    #expect(queries.map(\.allowed) == [[bob]])
    // It is not asked about oneself.
    stage.handle(.request(alice.session, id: "r2", .recordings(start(by: alice, readers: ["alice"]))))
    #expect(stage.takeOthers().contains { if case .recordings = $0 { true } else { false } })
  }

  @Test func recordingsThatAlertAreLimited() {
    let alice = stage.connect("alice")
    for _ in 0..<5 { #expect(send(start(by: alice, readers: ["bob"], alert: true), alice) == nil) }
    #expect(send(start(by: alice, readers: ["bob"], alert: true), alice) == .rateLimited)
    #expect(send(start(by: alice, readers: ["bob"]), alice) == nil)
    stage.advance(.seconds(60))
    #expect(send(start(by: alice, readers: ["bob"], alert: true), alice) == nil)
  }

  // MARK: what the store has to tell

  @Test func aMessageWakesWhoCouldNotOpenItBefore() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    bob.subscribePush("bob")
    bob.disconnect()
    _ = stage.takeOthers()
    let message = shared(to: "bob", "phone", by: alice)
    stage.handle(.recording(.shared([message], newcomers: [bob.user])))
    let notice = PushNotice(type: .message, recording: Self.id, from: "alice", name: "alice")
    let sent = pushes()
    #expect(sent.map(\.notice) == [notice] && sent.map(\.until) == [stage.now + .seconds(86_400)])
    let push = PushRecording(user: bob.user, devices: [bob.device.device], from: alice.user, recording: Self.id)
    #expect(stage.webhooks.map(\.event.body) == [.pushMessage(push)])
    // It has the recording already, or it is no message.
    var own = message
    own.kind = .own
    stage.handle(.recording(.shared([message], newcomers: [])))
    stage.handle(.recording(.shared([own], newcomers: [bob.user])))
    #expect(pushes().isEmpty && stage.webhooks.count == 1)
  }

  private func pushes() -> [(notice: PushNotice, until: Timestamp)] {
    stage.takeOthers().compactMap { if case .push(_, _, let notice, let until) = $0 { (notice, until) } else { nil } }
  }

  @Test func theOwnerAndReadersAreToldWhatBecameOfIt() {
    let (phone, laptop) = (stage.connect("alice"), stage.connect("alice", "laptop"))
    let bob = stage.connect("bob")
    let mention = RecordingMention(recording: Self.id, by: bob.device)
    stage.handle(.recording(.seen(mention, owner: phone.user)))
    #expect(phone.events() == [.recordingSeen(mention)] && laptop.events() == [.recordingSeen(mention)])
    #expect(bob.events().isEmpty)
    let change = RecordingChanged(recording: Self.id, state: .running, reels: [])
    stage.handle(.recording(.changed(change, to: [bob.device], owner: phone.user)))
    #expect(bob.events() == [.recordingChanged(change)] && phone.events().isEmpty)
    let removed = RecordingRemoved(recording: Self.id, by: phone.device)
    stage.handle(.recording(.removed(removed, users: [phone.user, bob.user])))
    #expect(phone.events().isEmpty, "it knows")
    #expect(laptop.events() == [.recordingRemoved(removed)] && bob.events() == [.recordingRemoved(removed)])
  }
}
