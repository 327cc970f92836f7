import JanusAPI
import MediaModel
import Testing

@Suite struct PublisherRules {
  @Test func joiningTellsWhoPublishesAlready() throws {
    let stage = try Stage()
    let handles = stage.room(
      1, ["notify_joining": true, "description": "Choir", "videocodec": "vp8,h264"], "Ana", "Bea")
    let configured = handles[0].publish("audio 0, video 1 H264, data 2")
    #expect(
      configured["configured"] == "ok" && configured["audio_codec"] == "opus" && configured["video_codec"] == "h264")
    #expect(configured["jsep"] == ["type": "answer", "sdp": "answer"] && configured["streams"].count == 2)
    let joined = stage.client(5).handle().request([
      "request": "join", "room": 1, "ptype": "publisher", "id": 7, "metadata": ["a": 1],
    ])
    #expect(joined["room"] == 1 && joined["description"] == "Choir" && joined["id"] == 7)
    let privateID = try #require(joined["private_id"].number)
    #expect(privateID <= UInt64(UInt32.max))
    #expect(
      joined["publishers"] == [
        [
          "id": handles[0].feed(named: "Ana"), "display": "Ana", "audio_codec": "opus", "video_codec": "h264",
          "streams": [
            ["type": "audio", "mindex": 0, "mid": "0", "codec": "opus"],
            ["type": "video", "mindex": 1, "mid": "1", "codec": "h264", "h264_profile": "42e01f"],
          ],
        ]
      ])
    #expect(joined["attendees"] == [["id": handles[1].feed(named: "Bea"), "display": "Bea"]])
  }

  @Test func othersHearOfAPublisherWhenItsMediaIsUp() throws {
    let stage = try Stage()
    stage.connects = false
    let handles = stage.room(1, [:], "Ana", "Bea")
    _ = handles[0].events()
    _ = handles[1].events()
    _ = handles[0].publish()
    #expect(handles[1].events().isEmpty)
    let peer = try #require(stage.peers.first)
    #expect(peer.isOfRoom)
    stage.run(.media(.connected(peer)))
    #expect(handles[0].events() == ["webrtcup"])
    let told = handles[1].events()
    #expect(told.count == 1 && told[0]["publishers"][0]["display"] == "Ana")
    stage.run(.media(.connected(peer)))
    #expect(handles[0].events().isEmpty && handles[1].events().isEmpty)
  }

  @Test func theEventComesAfterTheAckAlsoIfTheMediaPlaneTakesItsTime() throws {
    let stage = try Stage()
    let handle = stage.room(1, [:], "Ana")[0]
    _ = handle.client.received()
    stage.isAnswering = false
    let first = handle.send(["request": "configure"], jsep: ["type": "offer", "sdp": "audio 0"])
    let second = handle.send(["request": "configure", "display": "Eva"])
    #expect(handle.client.received().map { $0["janus"] } == ["ack", "ack"])
    stage.isAnswering = true
    stage.resume()
    let events = handle.client.received().filter { $0["transaction"] != .null }
    #expect(events.map { $0["transaction"] } == [.text(first), .text(second)])
    #expect(events.map { $0["plugindata"]["data"]["configured"] } == ["ok", "ok"])
  }

  @Test func aHandleHasSoManyRequestsThatWait() throws {
    let stage = try Stage()
    let handle = stage.room(1, [:], "Ana")[0]
    stage.isAnswering = false
    handle.send(["request": "configure"], jsep: ["type": "offer", "sdp": "audio 0"])
    for _ in 0..<32 { #expect(handle.core("message", ["body": ["request": "configure"]])["janus"] == "ack") }
    #expect(handle.core("message", ["body": ["request": "configure"]]).code == 462)
    #expect(stage.gateway.counters.refusals[.requests] == 1)
  }

  @Test func joinAndConfigureJoinsAndPublishesOrDoesNeither() throws {
    let stage = try Stage()
    _ = stage.room(1, ["notify_joining": true])
    let handle = stage.client(1).handle()
    let join: JSONObject = [
      "request": "joinandconfigure", "room": 1, "ptype": "publisher", "display": "Ana", "audio": true,
    ]
    #expect(handle.request(join, jsep: ["type": "offer", "sdp": "bad"]).code == 437)
    #expect(stage.gateway.summaries.first?.participants == 0)
    #expect(handle.request(join, jsep: ["type": "answer", "sdp": "audio 0"]).code == 469)
    let joined = handle.request(join, jsep: ["type": "offer", "sdp": "audio 0"])
    #expect(joined["videoroom"] == "joined" && joined["jsep"]["type"] == "answer")
    #expect(stage.gateway.summaries.first?.publishers == 1)
  }

  @Test func requestsInTheWrongStateGetTheirCodes() throws {
    let stage = try Stage()
    let handle = stage.client(1).handle()
    for name in [
      "configure", "publish", "unpublish", "start", "pause", "switch", "unsubscribe", "update", "leave", "subscribe",
    ] {
      #expect(handle.request(["request": .text(name)]).code == 424, "\(name)")
    }
    #expect(handle.request(["request": "join", "ptype": "publisher"]).code == 429)
    #expect(handle.request(["request": "join", "room": 1]).code == 429)
    #expect(handle.request(["request": "join", "room": 1, "ptype": "listener?"]).code == 430)
    #expect(handle.request(["request": "join", "room": 1, "ptype": "publisher"]).code == 426)
    let ana = stage.room(1, [:], "Ana")[0]
    #expect(ana.request(["request": "join", "room": 1, "ptype": "publisher"]).code == 425)
    #expect(ana.request(["request": "start"]).code == 423 && ana.request(["request": "unpublish"]).code == 435)
    #expect(ana.request(["request": "configure"], jsep: ["type": "answer", "sdp": "audio 0"]).code == 431)
    #expect(ana.publish("bad").code == 437)
    #expect(ana.request(["request": "configure", "bitrate": "x"]).code == 430)
    #expect(ana.request(["request": "configure", "videocodec": "av1"]).code == 430)
    #expect(
      ana.request(["request": "configure", "metadata": ["a": .text(String(repeating: "x", count: 5_000))]]).code == 430)
    _ = ana.publish()
    #expect(ana.request(["request": "publish"], jsep: ["type": "offer", "sdp": "audio 0"]).code == 434)
    let wrong: [JSONObject] = [
      ["display": 5], ["display": .text(String(repeating: "x", count: 129))], ["id": "x"], ["metadata": 5],
    ]
    for fields in wrong {
      let join = JSONObject(
        [
          .init(name: "request", value: "join"), .init(name: "room", value: 1),
          .init(name: "ptype", value: "publisher"),
        ] + fields.members)
      #expect(handle.request(join).code == 430, "\(fields)")
    }
  }

  @Test func aRoomTakesSoManyPublishersAndAnyNumberOfAttendees() throws {
    let stage = try Stage()
    let handles = stage.room(1, ["publishers": 1], "Ana", "Bea")
    #expect(handles[0].publish()["configured"] == "ok")
    #expect(handles[1].publish().code == 432 && stage.gateway.counters.refusals[.publishers] == 1)
    _ = handles[0].request(["request": "unpublish"])
    #expect(handles[1].publish()["configured"] == "ok")
  }

  @Test func peersAndStreamsHaveLimits() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.limits.peersOfRoom = 1
    configuration.limits.streamsOfPublisher = 2
    let stage = try Stage(configuration)
    let handles = stage.room(1, [:], "Ana", "Bea")
    #expect(handles[0].publish("audio 0, video 1, video 2").code == 437)
    #expect(handles[0].publish("audio 0, video 1")["configured"] == "ok")
    #expect(handles[1].publish().code == 499)
    #expect(stage.gateway.counters.refusals == [.streams: 1, .peers: 1])
  }

  @Test func aRoomMayRequireThatClientsSayTheyEncrypt() throws {
    let stage = try Stage()
    let handle = stage.room(1, ["require_e2ee": true], "Ana")[0]
    #expect(handle.publish().code == 433)
    let configured = handle.request(["request": "publish"], jsep: ["type": "offer", "sdp": "audio 0", "e2ee": true])
    #expect(configured["jsep"]["e2ee"] == true)
  }

  // MARK: Changes

  @Test func aNewNameAndRatesReachOthersAndTheMedia() throws {
    let stage = try Stage()
    let handles = stage.room(1, ["bitrate": 100_000, "bitrate_cap": true], "Ana", "Bea")
    _ = handles[0].publish()
    let ana = handles[0].feed(named: "Ana")
    _ = handles[1].events()
    stage.media = []
    let fields: JSONObject = ["request": "configure", "display": "Eva", "bitrate": 500_000, "keyframe": true]
    #expect(handles[0].request(fields) == ["videoroom": "event", "room": 1, "configured": "ok"])
    #expect(handles[1].events() == [["videoroom": "event", "room": 1, "id": ana, "display": "Eva"]])
    let peer = try #require(stage.peers.first)
    let video = TrackID(participant: 1, index: 2)
    #expect(stage.media == [.limit(peer, bitrate: 100_000), .requestKeyFrame(peer, video)])
    stage.media = []
    _ = handles[0].request(["request": "configure", "audio": false])
    #expect(stage.mutes == [Mute(index: 1, isMuted: true)])
    let entry = stage.client(6).handle().request(["request": "join", "room": 1, "ptype": "publisher"])["publishers"][0]
    #expect(entry["streams"][0]["disabled"] == true && entry["streams"][1]["disabled"] == .null)
  }

  @Test func aSecondOfferChangesTheStreamsAndTellsOthers() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    _ = handles[0].publish("audio 0")
    let peers = stage.peers
    _ = handles[1].events()
    #expect(handles[0].publish("audio 0, video 1 VP8 layers")["streams"].count == 2)
    let told = handles[1].events()
    #expect(told.count == 1 && told[0]["publishers"][0]["streams"][1]["simulcast"] == true)
    #expect(stage.peers == peers)
  }

  @Test func anotherCertificateIsAnotherConnectionOfTheSameFeed() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    _ = handles[0].publish()
    let ana = handles[1].feed(named: "Ana")
    let peers = stage.peers
    _ = handles[1].events()
    _ = handles[0].publish("audio 0, cert two")
    let told = handles[1].events()
    #expect(told.first?["unpublished"] == ana && told.last?["publishers"][0]["id"] == ana)
    #expect(stage.peers.count == 1 && stage.peers != peers)
  }

  @Test func unpublishingEndsTheConnectionAndNotTheStay() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    _ = handles[0].publish()
    let ana = handles[1].feed(named: "Ana")
    for handle in handles { _ = handle.events() }
    #expect(handles[0].request(["request": "unpublish"])["unpublished"] == "ok")
    #expect(handles[0].events() == ["hangup"])
    #expect(handles[1].events() == [["videoroom": "event", "room": 1, "unpublished": ana]])
    #expect(stage.peers.isEmpty && stage.gateway.summaries.first?.participants == 2)
    #expect(handles[0].publish()["configured"] == "ok")
    _ = handles[1].events()
    #expect(handles[0].request(["request": "leave"]) == ["videoroom": "event", "room": 1, "leaving": "ok"])
    #expect(handles[1].events() == [["videoroom": "event", "room": 1, "leaving": ana, "display": "Ana"]])
    #expect(stage.peers.isEmpty && handles[0].request(["request": "configure"]).code == 426)
  }

  @Test func hangupEndsTheConnectionAlsoWhileItIsNegotiated() throws {
    let stage = try Stage()
    let handle = stage.room(1, [:], "Ana")[0]
    stage.isAnswering = false
    let transaction = handle.send(["request": "configure"], jsep: ["type": "offer", "sdp": "audio 0"])
    _ = handle.client.received()
    #expect(handle.core("hangup")["janus"] == "success")
    let events = handle.client.received().filter { $0["transaction"] == .text(transaction) }
    #expect(events.count == 1 && events[0]["plugindata"]["data"].code == 499)
    stage.isAnswering = true
    stage.resume()
    #expect(stage.peers.isEmpty && handle.client.received().isEmpty)
    #expect(handle.publish()["configured"] == "ok")
  }

  // MARK: Ghosts

  @Test func silentMediaEndsAFeedAndLetsItsOwnerComeBackUnderItsID() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    let join: JSONObject = ["request": "join", "room": 1, "ptype": "publisher", "id": 7]
    let ghost = stage.client(7).handle()
    _ = ghost.request(join)
    _ = ghost.publish()
    let peer = try #require(stage.peers.first)
    let again = stage.client(8).handle()
    #expect(again.request(join).code == 436)
    for handle in handles { _ = handle.events() }
    stage.run(.media(.disconnected(peer, silence: .seconds(10))))
    #expect(ghost.client.received().last?["reason"] == "ICE failed")
    #expect(handles[1].events() == [["videoroom": "event", "room": 1, "unpublished": 7]])
    #expect(again.request(join)["id"] == 7 && stage.gateway.counters.takenOver == 1)
    #expect(ghost.events() == [["videoroom": "event", "room": 1, "leaving": "ok", "reason": "replaced"]])
    #expect(ghost.request(["request": "configure"]).code == 426)
    #expect(handles[1].events() == [["videoroom": "event", "room": 1, "unpublished": 7]])
  }

  @Test func aClosedConnectionIsNoGhost() throws {
    let stage = try Stage()
    let handle = stage.room(1, [:], "Ana")[0]
    _ = handle.publish()
    let peer = try #require(stage.peers.first)
    stage.run(.media(.disconnected(peer, silence: .zero)))
    #expect(handle.client.received().last?["reason"] == "DTLS alert")
    let id = handle.feed(named: "Ana")
    #expect(
      stage.client(8).handle().request(["request": "join", "room": 1, "ptype": "publisher", "id": id]).code == 436)
  }

  @Test func theFeedOfABrokenSocketIsTakenOverByTheSamePersonAlone() throws {
    let stage = try Stage(GatewayConfiguration(anyoneCreates: true))
    let (ana, bea) = (Grant(token: TokenGrant(identity: "ana")), Grant(token: TokenGrant(identity: "bea")))
    let first = stage.client(1, grant: ana).handle()
    _ = first.ask(["request": "create", "room": 1])
    let join: JSONObject = ["request": "join", "room": 1, "ptype": "publisher", "id": 7]
    _ = first.request(join)
    _ = first.publish()
    stage.run(.socketEnded(1, .broken))
    let second = stage.client(2, grant: ana).handle()
    #expect(stage.client(3, grant: bea).handle().request(join).code == 436)
    #expect(second.request(join)["id"] == 7 && stage.peers.isEmpty)
    #expect(second.publish()["configured"] == "ok")
  }

  @Test func streamsThatPauseAndSpeakersAreTold() throws {
    let stage = try Stage()
    let handles = stage.room(1, ["audiolevel_event": true], "Ana", "Bea")
    _ = handles[0].publish()
    let ana = handles[1].feed(named: "Ana")
    let peer = try #require(stage.peers.first)
    for handle in handles { _ = handle.events() }
    stage.run(.media(.receiving(peer, mid: "1", false)))
    let media = handles[0].client.received()
    #expect(media.first?["janus"] == "media" && media.first?["type"] == "video" && media.first?["receiving"] == false)
    let call = try #require(CallID("room~1"))
    stage.run(.media(.speakers(call, [1])))
    #expect(handles[1].events() == [["videoroom": "talking", "room": 1, "id": ana]])
    stage.run(.media(.speakers(call, [1])))
    #expect(handles[1].events().isEmpty)
    stage.run(.media(.speakers(call, [])))
    #expect(handles[1].events() == [["videoroom": "stopped-talking", "room": 1, "id": ana]])
    stage.run(.media(.speakers(CallID(unchecked: "room~2"), [1])))
    stage.run(.media(.speakers(CallID(unchecked: "4b1b0d8c-1111-4a3e-9d3e-000000000000"), [1])))
    #expect(handles[1].events().isEmpty)
  }
}
