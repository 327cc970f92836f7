import CallMessages
import Contract
import MediaModel
import Testing

/// Offers and tracks of protocol section 6.
struct MediaRules {
  let stage = Stage()

  func joined(_ names: [String], policy: (inout Policy) -> Void = { _ in }) throws -> (CallID, [Client]) {
    let clients = names.map { stage.connect($0, keys: true) }
    let call = try clients[0].call(Array(names.dropFirst()) + ["nobody"], policy: policy)
    for client in clients.dropFirst() { try client.accept(call) }
    stage.advance(.milliseconds(50))
    for client in clients { _ = client.events() }
    return (call, clients)
  }

  @Test func anUnauthorizedOfferIsRefusedBeforeItsSDPIsRead() throws {
    let (call, clients) = try joined(["alice", "bob"])
    let unreadable = Result<MediaOffer, RequestError>.failure(RequestError(.mediaSDPInvalid, "line 1", field: "sdp"))
    #expect(clients[0].offer(call, unreadable, []) == .mediaSDPInvalid)
    #expect(stage.connect("eve").offer(call, unreadable, []) == .callNotFound)
    #expect(stage.connectService().offer(call, unreadable, []) == .authForbidden)
    _ = clients[1].ask(.call(call, .leave))
    #expect(clients[1].offer(call, unreadable, []) == .callNotJoined)
    _ = clients[0].ask(.call(call, .end))
    #expect(clients[0].offer(call, unreadable, []) == .callEnded)
  }

  /// The same after a lost connection: the SFU compares key IDs for the whole stay.
  @Test(arguments: [true, false])
  func theSFUIsToldWhichParticipantsAreOnTheKeyList(hasKeys: Bool) throws {
    let alice = stage.connect("alice", keys: hasKeys)
    let call: CallID
    if hasKeys {
      call = try alice.call(["nobody"], join: 1) { $0.aloneSeconds = 600 }
    } else {
      // A device without keys cannot start a call, but may join one.
      _ = stage.connect("alice", "tablet")
      call = try stage.connect("host").call(["alice"])
      try alice.accept(call)
    }
    for _ in 0..<2 {
      #expect(alice.offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
      #expect(stage.negotiations.last?.isOnKeyList == hasKeys)
      try alice.connectMedia(call)
      try alice.loseMedia(call)
      stage.advance(.seconds(5))
    }
    #expect(stage.negotiations.count == 2)
  }

  @Test func tracksKeepTheirIdWhileMidAndSourceStayAlsoThroughPauses() throws {
    let (call, clients) = try joined(["alice", "bob"])
    let alice = clients[0]
    let both: [MediaRequest.Track] = [.init(mid: "0", source: .microphone), .init(mid: "1", source: .camera)]
    let offer = MediaOffer.sending(["0": .microphone, "1": .camera])
    #expect(alice.offer(call, offer, both) == nil)
    #expect(stage.negotiations.last?.tracks.map(\.track.description) == ["1.1", "1.2"])
    #expect(stage.negotiations.last?.codecs == ["VP8"])
    #expect(alice.offer(call, offer, [both[0]]) == nil)
    #expect(stage.negotiations.last?.tracks.map(\.track.description) == ["1.1"])
    #expect(alice.offer(call, offer, both) == nil)
    #expect(stage.negotiations.last?.tracks.map(\.track.description) == ["1.1", "1.2"])
    #expect(alice.offer(call, offer, [both[0], .init(mid: "1", source: .screen)]) == nil)
    #expect(stage.negotiations.last?.tracks.map(\.track.description) == ["1.1", "1.3"])
    #expect(
      clients[1].names() == [
        .trackAdded, .trackAdded, .trackRemoved, .trackAdded, .trackRemoved, .trackAdded,
      ])
    #expect(alice.offer(call, .sending(["0": .microphone], direction: .inactive), [both[0]]) == nil)
    #expect(stage.negotiations.last?.tracks.isEmpty == true)
    #expect(try alice.state(call).members[0].participants[0].tracks.isEmpty)
  }

  @Test func anIdIsNeverUsedTwiceWhenTheSourceOfAnMLineChangesToAndFro() throws {
    let (call, clients) = try joined(["alice", "bob"])
    for source in [TrackSource.camera, .screen, .camera] {
      #expect(clients[0].offer(call, .sending(["1": source]), [.init(mid: "1", source: source)]) == nil)
    }
    #expect(stage.negotiations.suffix(3).map { $0.tracks.map(\.track.description) } == [["1.1"], ["1.2"], ["1.3"]])
  }

  @Test func audioIsOpus() throws {
    let (call, clients) = try joined(["alice", "bob"])
    let voice = [MediaRequest.Track(mid: "0", source: .microphone)]
    #expect(clients[0].offer(call, .sending(["0": .microphone], codec: "PCMU"), voice) == .mediaUnsupported)
  }

  @Test func anotherFingerprintNeedsARejoin() throws {
    let (call, clients) = try joined(["alice", "bob"])
    #expect(clients[1].offer(call, .sending([:]), []) == nil)
    #expect(clients[1].offer(call, .sending([:], fingerprint: 2), []) == .mediaSDPInvalid)
    try clients[1].rejoin(call)
    #expect(clients[1].offer(call, .sending([:], fingerprint: 2), []) == nil)
    #expect(stage.negotiations.map(\.peer).count == Set(stage.negotiations.map(\.peer)).count)
  }

  @Test func aSendingVideoSectionNeedsACodecOfThePolicy() throws {
    let (call, clients) = try joined(["alice", "bob"])
    let camera = [MediaRequest.Track(mid: "0", source: .camera)]
    #expect(clients[0].offer(call, .sending(["0": .camera], codec: "AV1"), camera) == .mediaUnsupported)
    #expect(clients[0].offer(call, .sending(["0": .camera], codec: "vp8"), camera) == nil)
    let (other, others) = try MediaRules().joined(["alice", "bob"]) { $0.codecs = ["AV1"] }
    #expect(others[0].offer(other, .sending(["0": .camera], codec: "AV1"), camera) == nil)
  }

  @Test func tracksHaveToBeInTheOffer() throws {
    let (call, clients) = try joined(["alice", "bob"])
    let offer = MediaOffer.sending(["0": .camera])
    func code(_ tracks: [MediaRequest.Track]) -> RequestError.Code? { clients[0].offer(call, offer, tracks) }
    #expect(code([.init(mid: "7", source: .camera)]) == .requestInvalid)
    #expect(code([.init(mid: "0", source: .microphone)]) == .requestInvalid)
    #expect(code([.init(mid: "0", source: .camera), .init(mid: "0", source: .screen)]) == .requestInvalid)
    #expect(stage.connect("eve").offer(call, offer, []) == .callNotFound)
    #expect(stage.negotiations.isEmpty && clients[1].events().isEmpty)
  }

  @Test func aParticipantHas255Tracks() throws {
    let (call, clients) = try joined(["alice", "bob"])
    for n in 1...255 {
      #expect(
        clients[0].offer(call, .sending(["\(n)": .camera]), [.init(mid: "\(n)", source: .camera)]) == nil)
    }
    let last = clients[0].offer(call, .sending(["256": .camera]), [.init(mid: "256", source: .camera)])
    #expect(last == .mediaTooManyTracks)
    #expect(stage.negotiations.last?.tracks.first?.track.index == 255)
  }

  @Test func oneScreenAtOnceUnlessReplaced() throws {
    let (call, clients) = try joined(["alice", "bob"])
    let offer = MediaOffer.sending(["0": .screen, "1": .screenAudio])
    func share(_ client: Client, replace: Bool?) -> RequestError.Code? {
      client.offer(
        call, offer, [.init(mid: "0", source: .screen, replace: replace), .init(mid: "1", source: .screenAudio)])
    }
    #expect(share(clients[0], replace: nil) == nil)
    #expect(share(clients[1], replace: nil) == .screenBusy)
    #expect(try clients[1].state(call).members[1].participants[0].tracks.isEmpty, "all or nothing")
    _ = clients[0].events()
    #expect(share(clients[1], replace: true) == nil)
    let removed = clients[0].events().compactMap { event in
      if case .trackRemoved(let track) = event { "\(track.track) \(track.cause?.rawValue ?? "")" } else { nil }
    }
    #expect(removed == ["1.1 replaced", "1.2 replaced"])
    #expect(stage.takeMedia().count == 2)
    #expect(share(clients[0], replace: false) == .screenBusy)
    #expect(share(clients[1], replace: nil) == nil, "its own stays")
    _ = clients[1].ask(.call(call, .leave))
    #expect(share(clients[0], replace: nil) == nil)
  }

  @Test func muteIsForOnesOwnTracks() throws {
    let (call, clients) = try joined(["alice", "bob"])
    #expect(clients[0].offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    _ = clients[1].events()
    let track = TrackID(participant: 1, index: 1)
    func code(_ client: Client, _ track: TrackID, _ muted: Bool = true) -> RequestError.Code? {
      client.code(.inCall(call, .track(track, ChangeTrack(muted: muted))))
    }
    #expect(code(clients[1], track) == .trackNotOwn)
    #expect(code(clients[1], TrackID(participant: 1, index: 2)) == .trackNotFound)
    #expect(code(clients[0], track) == nil)
    #expect(code(clients[0], track) == nil)
    #expect(clients[1].names() == [.trackUpdated])
    #expect(try clients[1].state(call).members[0].participants[0].tracks.map(\.muted) == [true])
    #expect(stage.takeMedia().count == 1)
    #expect(clients[0].offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    #expect(stage.negotiations.last?.tracks.map(\.muted) == [true])
  }

  @Test func aLeavingParticipantTakesItsTracksAlong() throws {
    let (call, clients) = try joined(["alice", "bob", "carol"])
    #expect(clients[1].offer(call, .sending(["0": .camera]), [.init(mid: "0", source: .camera)]) == nil)
    let peer = try clients[1].peer(in: call)
    _ = clients[2].events()
    _ = clients[1].ask(.call(call, .leave))
    #expect(clients[2].names() == [.trackRemoved, .callMember])
    #expect(stage.takeMedia().contains { if case .remove(peer) = $0 { true } else { false } })
    stage.handle(.media(.connected(peer)))
    #expect(clients[2].events().isEmpty, "reports about a former peer are ignored")
  }
}
