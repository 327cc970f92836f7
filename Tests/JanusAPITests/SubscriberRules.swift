import JanusAPI
import MediaModel
import Testing

@Suite struct SubscriberRules {
  /// A room in which Ana and Bea publish sound and picture, and a handle of a third client.
  private func room(_ fields: JSONObject = ["videocodec": "vp8,vp9"]) throws -> (Stage, [Handle], [JSONTree], Handle) {
    let stage = try Stage()
    let handles = stage.room(1, fields, "Ana", "Bea")
    for handle in handles { _ = handle.publish() }
    let feeds = [handles[0].feed(named: "Ana"), handles[0].feed(named: "Bea")]
    return (stage, handles, feeds, stage.client(9).handle())
  }

  private func subscribe(_ handle: Handle, _ streams: JSONTree, _ fields: JSONObject = [:]) -> JSONTree {
    handle.request(
      JSONObject(
        [
          .init(name: "request", value: "join"), .init(name: "room", value: 1),
          .init(name: "ptype", value: "subscriber"), .init(name: "streams", value: streams),
        ] + fields.members))
  }

  private func answer(_ handle: Handle, _ sdp: String = "answer") -> JSONTree {
    handle.request(["request": "start"], jsep: ["type": "answer", "sdp": .text(sdp)])
  }

  @Test func aSubscriberIsOfferedTheStreamsThatItNames() throws {
    let (stage, _, feeds, handle) = try room()
    let attached = subscribe(
      handle, [["feed": feeds[0]], ["feed": feeds[1], "mid": "0", "crossrefid": "x"]], ["use_msid": true])
    #expect(attached["videoroom"] == "attached" && attached["room"] == 1)
    #expect(
      attached["streams"][0] == [
        "type": "audio", "active": true, "mindex": 0, "mid": "0", "ready": false, "send": true, "feed_id": feeds[0],
        "feed_display": "Ana", "feed_mid": "0", "codec": "opus",
      ])
    #expect(attached["streams"][2]["crossrefid"] == "x" && attached["streams"].count == 3)
    #expect(attached["jsep"]["type"] == "offer")
    let id = try #require(feeds[0].number)
    #expect(attached["jsep"]["sdp"].string?.hasPrefix("audio 0 1.1 \(id) 0, video 1 1.2 \(id) 1, audio 2 2.1") == true)
    #expect(answer(handle) == ["videoroom": "event", "room": 1, "started": "ok"])
    #expect(handle.events() == ["webrtcup"])
    #expect(stage.peers.count == 3 && stage.gateway.summaries.first?.subscribers == 1)
    let updated = handle.request(["request": "subscribe", "streams": [["feed": feeds[0]]]])
    #expect(updated == ["videoroom": "updated", "room": 1])
    #expect(handle.request(["request": "configure"])["configured"] == "ok")
    let listed = handle.request(["request": "switch", "streams": []])["streams"]
    #expect(listed[0]["ready"] == true)
  }

  @Test func theOlderFormNamesOneFeed() throws {
    let (_, _, feeds, handle) = try room()
    let attached = handle.request([
      "request": "join", "room": 1, "ptype": "subscriber", "feed": feeds[0], "offer_video": false,
    ])
    #expect(attached["warning"] == "deprecated_api" && attached["id"] == feeds[0] && attached["display"] == "Ana")
    #expect(attached["streams"].count == 1 && attached["jsep"]["sdp"] == "audio 0 1.1 janus janus0")
    #expect(answer(handle)["started"] == "ok")
  }

  @Test func wrongJoinsGetTheirCodes() throws {
    let (_, handles, feeds, handle) = try room()
    #expect(handle.request(["request": "join", "room": 1, "ptype": "subscriber"]).code == 429)
    for (streams, code) in [
      ([], 429), (5, 430), (["x"], 430), ([[:]], 429), ([["feed": "x"]], 430), ([["feed": 99]], 428),
      ([["feed": feeds[0], "mid": "7"]], 428), ([["feed": feeds[0], "send": 5]], 430),
      ([["feed": feeds[0], "substream": -1]], 430),
    ] as [(JSONTree, Int)] { #expect(subscribe(handle, streams).code == code, "\(streams)") }
    let withOffer = handle.request(
      ["request": "join", "room": 1, "ptype": "subscriber", "streams": [["feed": feeds[0]]]],
      jsep: ["type": "offer", "sdp": "audio 0"])
    #expect(withOffer.code == 423)
    _ = handles[0].publish("data 0")
    #expect(subscribe(handle, [["feed": feeds[0]]]).code == 437)
    let attendee = handle.stage.client(11).handle()
    _ = attendee.request(["request": "join", "room": 1, "ptype": "publisher", "id": 70])
    #expect(subscribe(handle, [["feed": 70]]).code == 428)
  }

  @Test func aSubscribeWithARoomIsTakenAsAJoin() throws {
    let (_, _, feeds, handle) = try room()
    let attached = handle.request([
      "request": "subscribe", "room": 1, "ptype": "subscriber", "streams": [["feed": feeds[0]]],
    ])
    #expect(attached["videoroom"] == "attached" && attached["jsep"]["type"] == "offer")
  }

  @Test func aRoomMayAskForThePrivateIDOfAParticipant() throws {
    let stage = try Stage()
    let ana = stage.room(1, ["require_pvtid": true], "Ana")[0]
    _ = ana.publish()
    let bea = stage.client(5).handle()
    let joined = bea.request(["request": "join", "room": 1, "ptype": "publisher"])
    let feed = ana.feed(named: "Ana")
    let handle = stage.client(5).handle()
    #expect(subscribe(handle, [["feed": feed]]).code == 433)
    #expect(subscribe(handle, [["feed": feed]], ["private_id": 1]).code == 433)
    #expect(subscribe(handle, [["feed": feed]], ["private_id": joined["private_id"]])["videoroom"] == "attached")
  }

  // MARK: Offers and answers

  @Test func changesWhileAnOfferWaitsComeInOneOfferAfterTheAnswer() throws {
    let (_, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0], "mid": "0"]])
    let updating = handle.request(["request": "subscribe", "streams": [["feed": feeds[0]]]])
    #expect(updating["videoroom"] == "updating" && updating["streams"].count == 2 && updating["jsep"] == .null)
    #expect(
      handle.request(["request": "unsubscribe", "streams": [["feed": feeds[0], "mid": "0"]]])["videoroom"] == "updating"
    )
    _ = handles[1].request(["request": "leave"])
    _ = handle.client.received()
    #expect(answer(handle)["started"] == "ok")
    let events = handle.client.received().filter { $0["janus"] == "event" }
    #expect(events.count == 1 && events[0]["plugindata"]["data"]["videoroom"] == "updated")
    #expect(events[0]["transaction"] == .null)
    #expect(events[0]["jsep"]["sdp"] == "audio 0 idle janus janus0, video 1 1.2 janus janus1")
    #expect(answer(handle)["started"] == "ok" && answer(handle).code == 469)
  }

  @Test func answersAreForOffersAndOffersForPublishers() throws {
    let (_, _, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    #expect(handle.request(["request": "start"], jsep: ["type": "offer", "sdp": "audio 0"]).code == 431)
    #expect(handle.request(["request": "configure"], jsep: ["type": "answer", "sdp": "x"]).code == 423)
    #expect(answer(handle, "bad").code == 437)
    #expect(answer(handle)["started"] == "ok" && answer(handle).code == 469)
    #expect(handle.request(["request": "join", "room": 1, "ptype": "publisher"]).code == 425)
    #expect(handle.request(["request": "unpublish"]).code == 423)
  }

  @Test func anOfferWithoutAnAnswerEndsTheConnection() throws {
    let (stage, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    stage.keepAlive(handles + [handle], for: .seconds(29))
    #expect(stage.peers.count == 3)
    stage.keepAlive(handles + [handle], for: .seconds(2))
    #expect(stage.peers.count == 2)
    let again = handle.request(["request": "subscribe", "streams": [["feed": feeds[1], "mid": "0"]]])
    #expect(again["videoroom"] == "updated" && again["jsep"]["sdp"] == "audio 0 2.1 janus janus0")
    #expect(answer(handle)["started"] == "ok")
    stage.keepAlive(handles + [handle], for: .seconds(40))
    #expect(stage.peers.count == 3)
  }

  @Test func aRefusedLineIsNotUsedAgain() throws {
    let (_, _, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle, "answer 1")
    _ = handle.request(["request": "unsubscribe", "streams": [["feed": feeds[0]]]])
    _ = answer(handle)
    let updated = handle.request(["request": "subscribe", "streams": [["feed": feeds[1]]]])
    #expect(updated["jsep"]["sdp"] == "audio 0 2.1 janus janus0, video 1 idle janus janus1, video 2 2.2 janus janus2")
  }

  @Test func linesAreUsedAgainForTheSameCodecAlone() throws {
    let (_, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0], "mid": "1"]])
    _ = answer(handle)
    _ = handle.request(["request": "unsubscribe", "streams": [["sub_mid": "0"]]])
    _ = answer(handle)
    _ = handles[1].publish("audio 0, video 1 VP9")
    let updated = handle.request(["request": "subscribe", "streams": [["feed": feeds[1], "mid": "1"]]])
    #expect(updated["jsep"]["sdp"] == "video 0 idle janus janus0, video 1 2.2 janus janus1")
    #expect(
      updated["streams"][0] == [
        "type": "video", "active": false, "mindex": 0, "mid": "0", "ready": false, "send": true,
      ])
  }

  @Test func aHandleHasSoManyLines() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.limits.linesOfHandle = 3
    let stage = try Stage(configuration)
    let handles = stage.room(1, [:], "Ana", "Bea")
    for handle in handles { _ = handle.publish() }
    let handle = stage.client(9).handle()
    let feeds = [handles[0].feed(named: "Ana"), handles[0].feed(named: "Bea")]
    #expect(subscribe(handle, [["feed": feeds[0]], ["feed": feeds[1]]]).code == 437)
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle)
    #expect(handle.request(["request": "subscribe", "streams": [["feed": feeds[1]]]]).code == 437)
    // The refused request changed nothing.
    #expect(handle.request(["request": "switch", "streams": []])["streams"].count == 2)
    #expect(
      handle.request(["request": "update", "subscribe": [["feed": feeds[1], "mid": "0"]]])["streams"].count == 3)
  }

  @Test func severalSubscriptionsOfAHandleChangeAtOnce() throws {
    let (_, _, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle)
    #expect(handle.request(["request": "update"]).code == 429)
    #expect(handle.request(["request": "unsubscribe", "streams": [[:]]]).code == 429)
    let updated = handle.request([
      "request": "update", "unsubscribe": [["feed": feeds[0]]], "subscribe": [["feed": feeds[1]]],
    ])
    #expect(updated["jsep"]["sdp"] == "audio 0 2.1 janus janus0, video 1 2.2 janus janus1")
    _ = answer(handle)
    #expect(
      handle.request(["request": "update", "unsubscribe": [["feed": feeds[0]]]]) == ["videoroom": "updated", "room": 1])
  }

  // MARK: Publishers that go

  @Test func aPublisherThatGoesLeavesIdleLines() throws {
    let (stage, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]], ["feed": feeds[1]]])
    _ = answer(handle)
    _ = handle.client.received()
    _ = handles[0].request(["request": "leave"])
    let event = handle.client.received()
    #expect(event.count == 1 && event[0]["plugindata"]["data"]["videoroom"] == "updated")
    #expect(
      event[0]["jsep"]["sdp"]
        == "audio 0 idle janus janus0, video 1 idle janus janus1, audio 2 2.1 janus janus2, video 3 2.2 janus janus3")
    #expect(stage.pins?.keys.sorted() == ["2", "3"])
  }

  @Test func aSubscriberThatUpdatesItselfGetsNoOffer() throws {
    let (_, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]], ["feed": feeds[1]]], ["autoupdate": false])
    _ = answer(handle)
    _ = handle.client.received()
    _ = handles[0].request(["request": "unpublish"])
    #expect(handle.client.received().isEmpty)
    let next = handle.request(["request": "unsubscribe", "streams": [["feed": feeds[1], "mid": "1"]]])
    #expect(
      next["jsep"]["sdp"]
        == "audio 0 idle janus janus0, video 1 idle janus janus1, audio 2 2.1 janus janus2, video 3 idle janus janus3")
  }

  @Test func aStreamThatItsPublisherDropsBecomesIdle() throws {
    let (_, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle)
    _ = handle.client.received()
    _ = handles[0].publish("audio 0")
    #expect(handle.client.received().last?["jsep"]["sdp"] == "audio 0 1.1 janus janus0, video 1 idle janus janus1")
  }

  @Test func feedsThatEncryptAndOthersDoNotMixInAHandle() throws {
    let (_, handles, feeds, handle) = try room()
    _ = handles[0].request(["request": "configure"], jsep: ["type": "offer", "sdp": "audio 0, video 1", "e2ee": true])
    let attached = subscribe(handle, [["feed": feeds[0]]])
    #expect(attached["jsep"]["e2ee"] == true)
    _ = answer(handle)
    #expect(handle.request(["request": "subscribe", "streams": [["feed": feeds[1]]]]).code == 438)
    #expect(handle.request(["request": "switch", "feed": feeds[1]]).code == 438)
  }

  // MARK: Pausing, layers, switching

  @Test func pausesAndLayersBecomePins() throws {
    let (stage, _, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0], "substream": 1]])
    _ = answer(handle)
    #expect(handle.request(["request": "pause"])["paused"] == "ok")
    #expect(stage.pins?["1"]?.isPaused == true && stage.pins?["1"]?.highestLayer == 1)
    #expect(handle.request(["request": "start"])["started"] == "ok")
    #expect(stage.pins?["1"]?.isPaused == false)
    let publisher = try #require(stage.peers.min { $0.rawValue < $1.rawValue })
    #expect(
      handle.request(["request": "configure", "streams": [["mid": "1", "send": false, "substream": 0, "temporal": 1]]])[
        "configured"] == "ok")
    #expect(
      stage.pins?["1"]
        == LinePin(
          publisher: publisher, track: TrackID(participant: 1, index: 2), highestLayer: 0, highestTemporal: 1,
          isPaused: true))
    #expect(stage.pins?["0"]?.isPaused == false)
    #expect(handle.request(["request": "configure", "streams": [["mid": "8"]]]).code == 428)
    #expect(handle.request(["request": "configure", "streams": [[:]]]).code == 429)
    let updated = handle.request(["request": "configure", "restart": true])
    #expect(updated["videoroom"] == "updated" && updated["jsep"]["type"] == "offer")
  }

  @Test func switchingShowsAnotherFeedWithoutAnOffer() throws {
    let (stage, handles, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle)
    let offers = stage.gateway.counters.offers
    let switched = handle.request(["request": "switch", "feed": feeds[1]])
    #expect(switched["switched"] == "ok" && switched["changes"] == 2 && switched["streams"][1]["feed_id"] == feeds[1])
    #expect(stage.pins?["1"]?.track == TrackID(participant: 2, index: 2))
    let back = handle.request(["request": "switch", "streams": [["feed": feeds[0], "mid": "1", "sub_mid": "1"]]])
    #expect(back["changes"] == 1 && stage.gateway.counters.offers == offers)
    for (streams, code) in [
      ([["feed": feeds[0], "mid": "1"]], 429), ([["feed": feeds[0], "sub_mid": "1"]], 429),
      ([["feed": 99, "mid": "1", "sub_mid": "1"]], 428), ([["feed": feeds[0], "mid": "1", "sub_mid": "5"]], 428),
      ([["feed": feeds[0], "mid": "0", "sub_mid": "1"]], 430),
    ] as [(JSONTree, Int)] {
      #expect(handle.request(["request": "switch", "streams": streams]).code == code, "\(streams)")
    }
    // An idle line that shows something again needs an offer.
    _ = handles[0].request(["request": "leave"])
    _ = answer(handle)
    let revived = handle.request(["request": "switch", "streams": [["feed": feeds[1], "mid": "1", "sub_mid": "1"]]])
    #expect(revived["videoroom"] == "updated" && revived["jsep"]["type"] == "offer")
  }

  // MARK: Ends

  @Test func leavingAndDetachingEndTheConnection() throws {
    let (stage, _, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle)
    _ = handle.client.received()
    #expect(handle.request(["request": "leave"]) == ["videoroom": "event", "room": 1, "left": "ok"])
    #expect(handle.events() == ["hangup"] && stage.peers.count == 2)
    let other = stage.client(10).handle()
    _ = subscribe(other, [["feed": feeds[0]]])
    #expect(stage.peers.count == 3)
    _ = other.core("detach")
    #expect(stage.peers.count == 2 && stage.gateway.summaries.first?.subscribers == 0)
  }

  @Test func lostMediaEndsTheLinesAndTheNextSubscribeBeginsAnotherConnection() throws {
    let (stage, _, feeds, handle) = try room()
    _ = subscribe(handle, [["feed": feeds[0]]])
    _ = answer(handle)
    _ = handle.client.received()
    let peer = try #require(stage.peers.max { $0.rawValue < $1.rawValue })
    stage.run(.media(.disconnected(peer, silence: .seconds(10))))
    #expect(handle.client.received().map { $0["reason"] } == ["ICE failed"])
    #expect(handle.request(["request": "switch", "streams": []])["streams"].count == 0)
    #expect(
      handle.request(["request": "subscribe", "streams": [["feed": feeds[1], "mid": "0"]]])["jsep"]["sdp"]
        == "audio 0 2.1 janus janus0")
    #expect(!stage.peers.contains(peer) && stage.peers.count == 3)
  }
}
