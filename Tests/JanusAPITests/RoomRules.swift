import JanusAPI
import MediaModel
import Testing

@Suite struct RoomRules {
  @Test func aRoomIsCreatedListedEditedAndDestroyed() throws {
    let stage = try Stage()
    let handle = stage.client(1).handle()
    let created = handle.ask([
      "request": "create", "room": 5501, "description": "Choir", "publishers": 6, "bitrate": 128_000, "secret": "s",
      "video": true, "videocodec": "h264,vp8", "pin": "1",
    ])
    #expect(created == ["videoroom": "created", "room": 5501, "permanent": false])
    #expect(handle.ask(["request": "create", "room": 5501]).code == 427)
    let entry = handle.ask(["request": "list"])["list"][0]
    #expect(entry["room"] == 5501 && entry["description"] == "Choir" && entry["max_publishers"] == 6)
    #expect(entry["videocodec"] == "h264,vp8" && entry["pin_required"] == true && entry["num_participants"] == 0)
    #expect(handle.ask(["request": "exists", "room": 5501])["exists"] == true)
    #expect(handle.ask(["request": "edit", "room": 5501, "new_description": "x"]).code == 429)
    #expect(handle.ask(["request": "edit", "room": 5501, "secret": "x", "new_description": "x"]).code == 433)
    let edited = handle.ask([
      "request": "edit", "room": 5501, "secret": "s", "new_description": "Band", "new_is_private": true,
    ])
    #expect(edited == ["videoroom": "edited", "room": 5501, "permanent": false])
    #expect(handle.ask(["request": "list"])["list"].count == 0)
    #expect(handle.ask(["request": "destroy", "room": 5501]).code == 429)
    #expect(handle.ask(["request": "destroy", "room": 5501, "secret": "s"])["videoroom"] == "destroyed")
    #expect(handle.ask(["request": "exists", "room": 5501])["exists"] == false)
    #expect(handle.ask(["request": "destroy", "room": 5501]).code == 426)
  }

  @Test(
    arguments: [
      (["bitrate": -4], 430), (["bitrate": "x"], 430), (["publishers": .number(3.5)], 430), (["is_private": "x"], 430),
      (["videocodec": "mpeg2"], 430), (["audiocodec": "pcmu"], 430), (["record": true], 430),
      (["permanent": true], 499),
      (["room": "x"], 430), (["room": 0], 430), (["room": .integer(1 << 53)], 430), (["allowed": "x"], 430),
      (["allowed": [5]], 430),
      (["description": .text(String(repeating: "x", count: 257))], 430),
    ] as [(JSONObject, Int)])
  func aRoomOfWrongElementsIsNotCreated(fields: JSONObject, code: Int) throws {
    let stage = try Stage()
    let handle = stage.client(1).handle()
    #expect(handle.ask(JSONObject([.init(name: "request", value: "create")] + fields.members)).code == code)
    #expect(stage.gateway.roomCount == 0)
  }

  @Test func aFailedEditChangesNothing() throws {
    let stage = try Stage()
    let handle = stage.client(1).handle()
    _ = handle.ask(["request": "create", "room": 1, "description": "Choir"])
    #expect(handle.ask(["request": "edit", "room": 1, "new_description": "x", "new_bitrate": "x"]).code == 430)
    #expect(handle.ask(["request": "list"])["list"][0]["description"] == "Choir")
  }

  @Test func roomsAreCreatedWithTheAdministratorsKeyUnlessEverybodyMay() throws {
    let stage = try Stage(GatewayConfiguration(adminKey: "key"))
    let handle = stage.client(1, grant: Grant(hasSecret: true)).handle()
    #expect(handle.ask(["request": "create"]).code == 429)
    #expect(handle.ask(["request": "create", "admin_key": "yek"]).code == 433)
    #expect(handle.ask(["request": "create", "admin_key": "key", "is_private": true])["videoroom"] == "created")
    #expect(handle.ask(["request": "list"])["list"].count == 0)
    #expect(handle.ask(["request": "list", "admin_key": "key"])["list"].count == 1)
    let creator = Grant(token: TokenGrant(mayCreate: true))
    #expect(handle.ask(["request": "create"], grant: creator)["videoroom"] == "created")
    let none = try Stage(GatewayConfiguration())
    #expect(none.client(1, grant: Grant(hasSecret: true)).handle().ask(["request": "create"]).code == 433)
  }

  @Test func theServerTakesSoManyRooms() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.limits.rooms = 2
    let stage = try Stage(configuration)
    let handle = stage.client(1).handle()
    #expect(handle.ask(["request": "create"])["videoroom"] == "created")
    #expect(handle.ask(["request": "create"])["room"].number != nil)
    #expect(handle.ask(["request": "create"]).code == 499 && stage.gateway.counters.refusals[.rooms] == 1)
  }

  @Test func textsAreIDsWhereTheConfigurationSaysSo() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.ids = .strings
    let stage = try Stage(configuration)
    let handle = stage.client(1).handle()
    #expect(handle.ask(["request": "create", "room": 5]).code == 430)
    #expect(handle.ask(["request": "create", "room": "a b"]).code == 430)
    #expect(handle.ask(["request": "create", "room": "choir"])["room"] == "choir")
    #expect(handle.ask(["request": "create"])["room"].string?.utf8.count == 32)
    let joined = handle.request(["request": "join", "room": "choir", "ptype": "publisher", "id": "ana"])
    #expect(joined["id"] == "ana")
    let generated = stage.client(2).handle().request(["request": "join", "room": "choir", "ptype": "publisher"])
    #expect(generated["id"].string != nil && generated["private_id"].number != nil)
  }

  // MARK: Who may join

  @Test func aPinIsAskedOfPublishersAndSubscribers() throws {
    let stage = try Stage()
    let ana = stage.room(1, ["pin": "1234"])
    #expect(ana.isEmpty)
    let handle = stage.client(1).handle()
    for kind in ["publisher", "subscriber"] as [JSONTree] {
      #expect(handle.request(["request": "join", "room": 1, "ptype": kind, "feed": 5]).code == 429)
      #expect(handle.request(["request": "join", "room": 1, "ptype": kind, "feed": 5, "pin": "4321"]).code == 433)
    }
    #expect(
      handle.request(["request": "join", "room": 1, "ptype": "subscriber", "feed": 5, "pin": "1234"]).code == 428)
    #expect(
      handle.request(["request": "join", "room": 1, "ptype": "publisher", "pin": "1234"])["videoroom"] == "joined")
  }

  @Test func aListOfTokensSaysWhoMayJoin() throws {
    let stage = try Stage()
    _ = stage.room(1, ["allowed": ["t1"], "secret": "s"])
    let handle = stage.client(1).handle()
    #expect(handle.request(["request": "join", "room": 1, "ptype": "publisher"]).code == 433)
    #expect(handle.request(["request": "join", "room": 1, "ptype": "publisher", "token": "t2"]).code == 433)
    #expect(handle.ask(["request": "allowed", "room": 1, "action": "add", "allowed": ["t2"]]).code == 429)
    let added = handle.ask(["request": "allowed", "room": 1, "secret": "s", "action": "add", "allowed": ["t2"]])
    #expect(added == ["videoroom": "success", "room": 1, "allowed": ["t1", "t2"]])
    #expect(handle.ask(["request": "allowed", "room": 1, "secret": "s", "action": "bless"]).code == 430)
    let removed = handle.ask(["request": "allowed", "room": 1, "secret": "s", "action": "remove", "allowed": ["t1"]])
    #expect(removed["allowed"] == ["t2"])
    #expect(handle.request(["request": "join", "room": 1, "ptype": "publisher", "token": "t1"]).code == 433)
    #expect(
      handle.request(["request": "join", "room": 1, "ptype": "publisher", "token": "t2"])["videoroom"] == "joined")
    let disabled = handle.ask(["request": "allowed", "room": 1, "secret": "s", "action": "disable"])
    #expect(disabled["allowed"] == .null)
    #expect(
      stage.client(2).handle().request(["request": "join", "room": 1, "ptype": "publisher"])["videoroom"] == "joined")
  }

  @Test func signedTokensAndTokensOfRequestsAreForTheirRooms() throws {
    let stage = try Stage(GatewayConfiguration(anyoneCreates: true))
    let host = stage.client(1, grant: Grant(hasSecret: true)).handle()
    _ = host.ask(["request": "create", "room": 1, "signed_tokens": true])
    _ = host.ask(["request": "create", "room": 2])
    let join: JSONObject = ["request": "join", "room": 1, "ptype": "publisher", "token": "x"]
    #expect(host.request(join).code == 433)
    let other = Grant(hasSecret: true, bodyToken: TokenGrant(rooms: ["2"]))
    #expect(host.request(join, grant: other).code == 433)
    let right = Grant(hasSecret: true, bodyToken: TokenGrant(rooms: ["1"]))
    #expect(host.request(join, grant: right)["videoroom"] == "joined")
    let bound = Grant(token: TokenGrant(identity: "ana", rooms: ["3"], mayPublish: false))
    let ana = stage.client(2, grant: bound).handle()
    #expect(ana.request(["request": "join", "room": 2, "ptype": "publisher"]).code == 433)
    #expect(
      ana.ask(["request": "list"])["list"].count == 0
        && ana.ask(["request": "listparticipants", "room": 2]).code == 433)
  }

  @Test func aTokenWithoutTheRightToPublishListens() throws {
    let stage = try Stage(GatewayConfiguration(anyoneCreates: true))
    let host = stage.client(1, grant: Grant(hasSecret: true)).handle()
    _ = host.ask(["request": "create", "room": 1])
    let listener = stage.client(2, grant: Grant(token: TokenGrant(mayPublish: false))).handle()
    #expect(listener.request(["request": "join", "room": 1, "ptype": "publisher"])["videoroom"] == "joined")
    #expect(listener.publish().code == 433)
  }

  @Test func anAdministratorsTokenStandsForARoomsSecret() throws {
    let stage = try Stage(GatewayConfiguration(anyoneCreates: true))
    let host = stage.client(1, grant: Grant(hasSecret: true)).handle()
    _ = host.ask(["request": "create", "room": 1, "secret": "s"])
    _ = host.ask(["request": "create", "room": 2])
    let person = stage.client(2, grant: Grant(token: TokenGrant())).handle()
    #expect(person.ask(["request": "destroy", "room": 1]).code == 429)
    #expect(person.ask(["request": "destroy", "room": 2]).code == 433)
    let administrator = Grant(token: TokenGrant(isAdministrator: true))
    #expect(person.ask(["request": "destroy", "room": 1], grant: administrator)["videoroom"] == "destroyed")
    #expect(host.ask(["request": "destroy", "room": 2])["videoroom"] == "destroyed")
  }

  // MARK: Kicking and moderating

  @Test func aKickedParticipantIsOutAndAllAreTold() throws {
    let stage = try Stage()
    let handles = stage.room(1, ["secret": "s"], "Ana", "Bea")
    let bea = handles[0].feed(named: "Bea")
    _ = handles[1].publish()
    _ = handles[0].events()
    #expect(handles[0].ask(["request": "kick", "room": 1, "id": bea]).code == 429)
    #expect(handles[0].ask(["request": "kick", "room": 1, "secret": "x", "id": bea]).code == 433)
    #expect(handles[0].ask(["request": "kick", "room": 1, "secret": "s", "id": 99]).code == 428)
    handles[0].send(["request": "kick", "room": 1, "secret": "s", "id": bea])
    #expect(handles[0].events() == [["videoroom": "event", "room": 1, "kicked": bea]])
    #expect(
      handles[1].events().suffix(2) == [
        ["videoroom": "event", "room": 1, "leaving": "ok", "reason": "kicked"], "hangup",
      ])
    #expect(stage.peers.isEmpty)
    #expect(handles[1].request(["request": "configure"]).code == 426)
    #expect(handles[1].request(["request": "join", "room": 1, "ptype": "publisher"]).code == 425)
  }

  @Test func aModeratedStreamIsMutedForAll() throws {
    let stage = try Stage()
    let handles = stage.room(1, ["secret": "s"], "Ana", "Bea")
    _ = handles[1].publish()
    let bea = handles[0].feed(named: "Bea")
    let body: JSONObject = ["request": "moderate", "room": 1, "secret": "s", "id": bea, "mute": true]
    #expect(handles[0].ask(body).code == 429)
    #expect(handles[0].ask(JSONObject(body.members + [.init(name: "mid", value: "9")])).code == 428)
    for handle in handles { _ = handle.events() }
    handles[0].send(JSONObject(body.members + [.init(name: "mid", value: "1")]))
    let told: [JSONTree] = [["videoroom": "event", "room": 1, "id": bea, "mid": "1", "moderation": "muted"]]
    #expect(handles[0].events() == told && handles[1].events() == told)
    #expect(stage.mutes == [Mute(index: 2, isMuted: true)])
    // The publisher cannot take it back.
    _ = handles[1].request(["request": "configure", "streams": [["mid": "1", "send": true]]])
    #expect(stage.mutes == [Mute(index: 2, isMuted: true)])
    let late = stage.client(7).handle()
    let joined = late.request(["request": "join", "room": 1, "ptype": "publisher"])
    #expect(joined["publishers"][0]["streams"][1]["moderated"] == true)
  }

  // MARK: Ends

  @Test func emptyRoomsOfClientsEndAndThoseOfTheConfigurationStay() throws {
    var configuration = GatewayConfiguration.anyone
    configuration.rooms = [["room": 1234, "description": "Demo", "videocodec": "vp8,h264"]]
    let stage = try Stage(configuration)
    let handles = stage.room(1, [:], "Ana")
    stage.keepAlive(handles, for: .seconds(900))
    #expect(stage.gateway.summaries.map(\.id) == [.number(1), .number(1234)])
    _ = handles[0].request(["request": "leave"])
    stage.keepAlive(handles, for: .seconds(590))
    let again = stage.client(5).handle()
    #expect(again.request(["request": "join", "room": 1, "ptype": "publisher"])["videoroom"] == "joined")
    stage.run(.socketEnded(5, .closed))
    stage.keepAlive(handles, for: .seconds(590))
    #expect(stage.gateway.roomCount == 2)
    stage.keepAlive(handles, for: .seconds(20))
    #expect(stage.gateway.summaries.map(\.id) == [.number(1234)])
    #expect(stage.client(6).handle().request(["request": "join", "room": 1, "ptype": "publisher"]).code == 426)
  }

  @Test func aRoomThatNobodyEnteredEnds() throws {
    let stage = try Stage()
    _ = stage.client(1).handle().ask(["request": "create", "room": 1])
    stage.pass(.seconds(601))
    #expect(stage.gateway.roomCount == 0)
  }

  @Test func aDestroyedRoomTellsAllInItAndEndsTheirConnections() throws {
    let stage = try Stage()
    let handles = stage.room(1, [:], "Ana", "Bea")
    _ = handles[0].publish()
    let subscriber = stage.client(9).handle()
    let ana = handles[1].feed(named: "Ana")
    _ = subscriber.request(["request": "join", "room": 1, "ptype": "subscriber", "streams": [["feed": ana]]])
    for handle in handles + [subscriber] { _ = handle.events() }
    #expect(stage.peers.count == 2)
    stage.run(.endRoom(.number(1)))
    let destroyed: JSONTree = ["videoroom": "destroyed", "room": 1]
    #expect(handles[0].events() == [destroyed, "hangup"] && handles[1].events() == [destroyed])
    #expect(subscriber.events() == [destroyed, "hangup"])
    #expect(stage.peers.isEmpty && stage.gateway.peerCount == 0 && stage.gateway.roomCount == 0)
    #expect(handles[0].request(["request": "configure"]).code == 426)
  }

  @Test func aWrongRoomOfTheConfigurationIsNamed() {
    var configuration = GatewayConfiguration.anyone
    configuration.rooms = [["room": 1], ["room": 1]]
    #expect(throws: JanusError.self) { try Stage(configuration) }
    configuration.rooms = [["description": "no id"]]
    #expect(throws: JanusError.self) { try Stage(configuration) }
  }
}
