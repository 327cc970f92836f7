import JanusAPI
import MediaModel
import Testing

private let socket = Requester.socket(1)

@Suite struct CoreRules {
  @Test func requestsWithoutASessionAreAnsweredAtTheRoot() throws {
    let stage = try Stage(GatewayConfiguration(version: "1.2"))
    #expect(stage.ask(socket, ["janus": "ping"])["janus"] == "pong")
    let info = stage.ask(socket, ["janus": "info"])
    #expect(info["janus"] == "server_info" && info["name"] == "Conclave" && info["version_string"] == "1.2")
    #expect((info["version"].number ?? 0) >= 1000 && info["data_channels"] == false && info["ice-lite"] == true)
    #expect(info["plugins"]["janus.plugin.videoroom"]["version"].number != nil)
    #expect(stage.ask(socket, ["janus": "attach"]).code == 457)
    #expect(stage.ask(socket, ["janus": "nonsense"]).code == 457)
  }

  @Test func anythingButARequestGetsItsCode() throws {
    let stage = try Stage()
    stage.run(.unreadable(socket, reason: "not JSON at byte 0"))
    #expect(stage.received(socket).first?.code == 454)
    for (value, code) in [
      ([1], 455), ([:], 456), (["janus": "create"], 456), (["janus": "create", "transaction": 5], 467),
      (["janus": 7, "transaction": "a"], 467), (["transaction": "a"], 456),
      (["janus": "keepalive", "session_id": "x", "transaction": "a"], 467),
      (["janus": "keepalive", "session_id": 9, "transaction": "a"], 458),
      (["janus": "create", "id": -4, "transaction": "a"], 467),
    ] as [(JSONTree, Int)] {
      stage.run(.request(JanusRequest(from: socket, value: value)))
      let replies = stage.received(socket)
      #expect(replies.map(\.code) == [code], "\(value)")
      if value["transaction"].string != nil { #expect(replies.first?["transaction"] == "a") }
    }
  }

  @Test func anObjectOfTooManyMembersIsRefused() throws {
    let stage = try Stage()
    let many = JSONObject((0..<300).map { JSONObject.Member(name: "m\($0)", value: .null) })
    #expect(stage.ask(socket, ["janus": "ping", "x": .object(many)]).code == 454)
    #expect(stage.gateway.counters.refusals[.tooLong] == 1)
  }

  @Test func aSessionIsCreatedWithoutASessionIDInItsReply() throws {
    let stage = try Stage()
    let reply = stage.ask(socket, ["janus": "Create"])
    #expect(reply["janus"] == "success" && reply["session_id"] == .null)
    let id = try #require(reply["data"]["id"].number)
    #expect(id > 0 && id < 1 << 53)
    let taken = stage.ask(socket, ["janus": "create", "id": .integer(Int64(id))])
    #expect(taken.code == 468)
    #expect(stage.ask(socket, ["janus": "create", "id": 77])["data"]["id"] == 77)
  }

  @Test func handlesBelongToTheirSession() throws {
    let stage = try Stage()
    let (a, b) = (stage.client(1), stage.client(2))
    let handle = a.handle()
    #expect(a.ask("attach").code == 456 && a.ask("attach", ["plugin": 3]).code == 467)
    #expect(a.ask("attach", ["plugin": "janus.plugin.streaming"]).code == 460)
    let id = JSONTree.integer(Int64(handle.id))
    #expect(b.ask("message", ["handle_id": id, "body": [:]]).code == 459)
    #expect(a.ask("attach", ["handle_id": id, "plugin": "janus.plugin.videoroom"]).code == 457)
    #expect(a.ask("message", ["body": [:]]).code == 457)
    #expect(a.ask("nonsense").code == 453 && handle.core("nonsense").code == 453)
    #expect(handle.core("keepalive")["janus"] == "ack")
    #expect(handle.core("detach")["janus"] == "success")
    #expect(a.received().last?["janus"] == "detached")
    #expect(handle.core("keepalive").code == 459)
  }

  @Test func messagesAndCandidatesAreReadForTheirShape() throws {
    let stage = try Stage()
    let handle = stage.client(1).handle()
    for (fields, code) in [
      ([:], 456), (["body": 5], 467), (["body": []], 467),
      (["body": ["request": "exists", "room": 1], "jsep": 5], 455),
      (["body": ["request": "exists", "room": 1], "jsep": [:]], 456),
      (["body": ["request": "exists", "room": 1], "jsep": ["type": "pranswer", "sdp": ""]], 464),
      (["body": ["request": "exists", "room": 1], "jsep": ["type": "offer"]], 456),
      (["body": ["request": "exists", "room": 1], "jsep": ["type": "offer", "sdp": 5]], 467),
      (["body": ["request": "start"], "jsep": ["type": "answer", "sdp": "x"]], 469),
    ] as [(JSONObject, Int)] {
      #expect(handle.core("message", fields).code == code, "\(fields)")
    }
    let long = JSONTree.text(String(repeating: "v", count: 70_000))
    #expect(handle.core("message", ["body": ["request": "join"], "jsep": ["type": "offer", "sdp": long]]).code == 465)
    for (fields, code) in [
      ([:], 456), (["candidate": .null], 456), (["candidate": 5], 467), (["candidates": 5], 467),
      (["candidate": [:], "candidates": []], 454), (["candidate": ["completed": true]], nil),
      (["candidates": [[:]]], nil),
    ] as [(JSONObject, Int?)] {
      let reply = handle.core("trickle", fields)
      #expect(reply.code == code && (code != nil || reply["janus"] == "ack"), "\(fields)")
    }
  }

  @Test func pluginErrorsOfRequestsThatNeedNoEventComeInTheReply() throws {
    let stage = try Stage()
    let handle = stage.client(1).handle()
    #expect(handle.ask([:]).code == 429 && handle.ask(["request": 5]).code == 430)
    #expect(handle.ask(["request": "nonsense"]).code == 423 && handle.ask(["request": "rtp_forward"]).code == 423)
    #expect(
      handle.ask(["request": "exists"]).code == 429 && handle.ask(["request": "exists", "room": "x"]).code == 430)
  }

  // MARK: Authorization

  @Test func everythingButPingAndInfoNeedsASecretOrAToken() throws {
    let stage = try Stage(GatewayConfiguration(anyoneCreates: true))
    #expect(stage.ask(socket, ["janus": "create"]).code == 403)
    let right = Grant(hasSecret: true)
    let client = stage.client(1, grant: right)
    #expect(client.session != 0)
    #expect(stage.ask(socket, ["janus": "keepalive", "session_id": .integer(Int64(client.session))]).code == 403)
    #expect(stage.gateway.counters.refusals[.unauthorized] == 2)
    #expect(stage.ask(socket, ["janus": "info"])["janus"] == "server_info")
    stage.run(.poll(exchange: 9, session: client.session, maximum: nil, Grant()))
    #expect(stage.received(.exchange(9)).first?.code == 403)
  }

  @Test func aTokenThatDoesNotCoverThePluginAttachesNothing() throws {
    let stage = try Stage(GatewayConfiguration())
    let client = stage.client(1, grant: Grant(token: TokenGrant(coversVideoRoom: false)))
    #expect(client.ask("attach", ["plugin": "janus.plugin.videoroom"]).code == 405)
  }

  @Test func theSessionOfOnePersonIsNotThereForAnother() throws {
    let stage = try Stage(GatewayConfiguration())
    let ana = stage.client(1, grant: Grant(token: TokenGrant(identity: "ana")))
    let id = JSONTree.integer(Int64(ana.session))
    let bea = Grant(token: TokenGrant(identity: "bea"))
    #expect(stage.ask(.socket(2), ["janus": "claim", "session_id": id], grant: bea).code == 458)
    #expect(stage.ask(.socket(2), ["janus": "claim", "session_id": id], grant: ana.grant)["janus"] == "success")
  }

  // MARK: Limits

  @Test func sessionsAndHandlesHaveLimits() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.limits.sessions = 3
    configuration.limits.sessionsOfConnection = 2
    configuration.limits.handlesOfSession = 1
    let stage = try Stage(configuration)
    let client = stage.client(1)
    _ = client.handle()
    #expect(client.ask("attach", ["plugin": "janus.plugin.videoroom"]).code == 461)
    #expect(stage.client(1).session != 0)
    #expect(stage.ask(socket, ["janus": "create"]).code == 490)
    #expect(stage.client(2).session != 0)
    #expect(stage.ask(.socket(3), ["janus": "create"]).code == 472)
    #expect(stage.gateway.counters.refusals == [.handles: 1, .sessions: 2])
  }

  // MARK: Time

  @Test func aSessionWithoutRequestsEnds() throws {
    let stage = try Stage()
    let client = stage.client(1)
    stage.pass(.seconds(50))
    #expect(client.ask("keepalive")["janus"] == "ack")
    stage.pass(.seconds(59))
    #expect(client.received().map { $0["janus"] } == ["ack"])
    stage.pass(.seconds(2))
    #expect(client.received().map { $0["janus"] } == ["timeout"])
    #expect(client.ask("keepalive").code == 458 && stage.gateway.sessionCount == 0)
    stage.pass(.seconds(600))
    #expect(stage.gateway.nextDeadline == nil)
  }

  @Test func aSocketThatIsClosedEndsItsSessions() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    let ana = handles[1].feed(named: "Ana")
    _ = handles[1].events()
    stage.run(.socketEnded(1, .closed))
    #expect(handles[1].events() == [["videoroom": "event", "room": 1, "leaving": ana, "display": "Ana"]])
    #expect(stage.gateway.summaries.first?.participants == 1 && handles[0].core("keepalive").code == 458)
  }

  @Test func aBrokenSocketLeavesASessionToBeClaimedWithItsEvents() throws {
    let stage = try Stage()
    let handles = stage.room(1, ["notify_joining": true], "Ana", "Bea")
    _ = handles[0].client.received()
    stage.run(.socketEnded(1, .broken))
    _ = stage.client(9).handle().request(["request": "join", "room": 1, "ptype": "publisher", "display": "Cyd"])
    stage.pass(.seconds(19))
    let id = JSONTree.integer(Int64(handles[0].client.session))
    #expect(stage.ask(.socket(5), ["janus": "claim", "session_id": id])["janus"] == "success")
    let events = stage.received(.socket(5)).dropFirst()
    #expect(
      events.map { $0["plugindata"]["data"]["joining"]["display"] }
        == ["Bea", "Cyd"].suffix(events.count).map { .text($0) })
    #expect(!events.isEmpty && stage.received(.socket(1)).isEmpty)
    stage.pass(.seconds(30))
    #expect(stage.gateway.summaries.first?.participants == 3)
    // The session's events go only to the new socket.
    stage.run(.socketEnded(1, .closed))
    #expect(stage.gateway.summaries.first?.participants == 3)
  }

  @Test func aSessionThatIsNotClaimedEnds() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    stage.run(.socketEnded(1, .broken))
    stage.pass(.seconds(21))
    #expect(handles[1].events().contains { $0["leaving"] != .null })
    #expect(handles[0].core("keepalive").code == 458)
  }

  @Test func tooManyEventsForASessionEndIt() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.limits.waitingEvents = 5
    let stage = try Stage(configuration)
    let handles = stage.room(1, ["notify_joining": true], "Ana", "Bea")
    stage.run(.socketEnded(1, .broken))
    for name in 0..<6 { _ = handles[1].request(["request": "configure", "display": .text("Bea \(name)")]) }
    #expect(handles[0].core("claim").code == 458)
    #expect(stage.gateway.counters.refusals[.waitingEvents] == 1)
  }

  // MARK: Polls

  @Test func aPollWaitsForAnEventAndAlsoForNothing() throws {
    let stage = try Stage()
    let create = stage.ask(.exchange(1), ["janus": "create"])
    let session = try #require(create["data"]["id"].number)
    stage.run(.poll(exchange: 2, session: session, maximum: nil, Grant()))
    #expect(stage.received(.exchange(2)).isEmpty)
    stage.pass(.seconds(30))
    #expect(stage.received(.exchange(2)) == [["janus": "keepalive"]])
    let path = JanusRequest.Path.session(session)
    stage.send(.exchange(3), ["janus": "attach", "plugin": "janus.plugin.videoroom"], path: path)
    let handle = try #require(stage.received(.exchange(3)).first?["data"]["id"].number)
    stage.run(.poll(exchange: 4, session: session, maximum: nil, Grant()))
    stage.send(.exchange(5), ["janus": "message", "body": ["request": "join"]], path: .handle(session, handle))
    #expect(stage.received(.exchange(5)).map { $0["janus"] } == ["ack"])
    #expect(stage.received(.exchange(4)).first?["plugindata"]["data"].code == 429)
  }

  @Test func eventsWaitForThePollAndComeTogetherIfItAsksForSeveral() throws {
    let stage = try Stage()
    let session = try #require(stage.ask(.exchange(1), ["janus": "create"])["data"]["id"].number)
    stage.send(.exchange(2), ["janus": "attach", "plugin": "janus.plugin.videoroom"], path: .session(session))
    let handle = try #require(stage.received(.exchange(2)).first?["data"]["id"].number)
    for exchange in 3...5 as ClosedRange<UInt64> {
      stage.send(
        .exchange(exchange), ["janus": "message", "body": ["request": "leave"]], path: .handle(session, handle))
    }
    stage.run(.poll(exchange: 6, session: session, maximum: 2, Grant()))
    #expect(stage.received(.exchange(6)).first?.count == 2)
    stage.run(.poll(exchange: 7, session: session, maximum: 1, Grant()))
    #expect(stage.received(.exchange(7)).first?["plugindata"]["data"].code == 424)
  }

  @Test func aSecondPollEndsTheFirst() throws {
    let stage = try Stage()
    let session = try #require(stage.ask(.exchange(1), ["janus": "create"])["data"]["id"].number)
    stage.run(.poll(exchange: 2, session: session, maximum: nil, Grant()))
    stage.run(.poll(exchange: 3, session: session, maximum: nil, Grant()))
    #expect(stage.received(.exchange(2)) == [["janus": "keepalive"]] && stage.received(.exchange(3)).isEmpty)
    stage.run(.exchangeEnded(3))
    stage.pass(.seconds(31))
    #expect(stage.received(.exchange(3)).isEmpty)
    stage.pass(.seconds(30))
    #expect(stage.gateway.sessionCount == 0)
  }

  @Test func pollsKeepASessionAlive() throws {
    let stage = try Stage()
    let session = try #require(stage.ask(.exchange(1), ["janus": "create"])["data"]["id"].number)
    for exchange in 2...10 as ClosedRange<UInt64> {
      stage.run(.poll(exchange: exchange, session: session, maximum: nil, Grant()))
      stage.pass(.seconds(40))
      #expect(stage.received(.exchange(exchange)) == [["janus": "keepalive"]])
    }
    #expect(stage.gateway.sessionCount == 1)
  }

  @Test func aSessionWithAWebSocketIsNotPolled() throws {
    let stage = try Stage()
    let client = stage.client(1)
    stage.run(.poll(exchange: 2, session: client.session, maximum: nil, Grant()))
    #expect(stage.received(.exchange(2)).first?.code == 457)
    stage.send(.exchange(3), ["janus": "claim"], path: .session(client.session))
    #expect(stage.received(.exchange(3)).first?["janus"] == "success")
    stage.run(.poll(exchange: 4, session: client.session, maximum: nil, Grant()))
    #expect(stage.received(.exchange(4)).isEmpty)
  }

  @Test func destroyingASessionAnswersItsPoll() throws {
    let stage = try Stage()
    let session = try #require(stage.ask(.exchange(1), ["janus": "create"])["data"]["id"].number)
    stage.run(.poll(exchange: 2, session: session, maximum: nil, Grant()))
    stage.send(.exchange(3), ["janus": "destroy"], path: .session(session))
    #expect(stage.received(.exchange(2)).first?.code == 458)
    #expect(stage.received(.exchange(3)).first?["janus"] == "success")
  }

  @Test func aServerThatDrainsTakesNoSessionsAndEndsEmptyRooms() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana")
    #expect(handles[0].ask(["request": "create", "room": 2])["videoroom"] == "created")
    stage.run(.drain)
    #expect(stage.ask(.socket(9), ["janus": "create"]).code == 472)
    #expect(stage.gateway.summaries.map(\.id) == [.number(1)])
    _ = handles[0].request(["request": "leave"])
    #expect(stage.gateway.roomCount == 0)
  }
}
