import MediaModel

// The requests about rooms, and how rooms end.

extension JanusGateway {
  private func room(_ elements: Elements) throws(JanusError) -> Room {
    let id = try elements.required("room", elements.id("room", configuration.ids))
    guard let room = rooms[id] else { throw JanusError(.roomUnknown, "No such room (\(id.description))") }
    return room
  }

  /// The room of a request that the room's secret protects. Without a secret it is for those who have the API secret.
  private mutating func governedRoom(_ elements: Elements, _ grant: Grant) throws(JanusError) -> Room {
    let room = try room(elements)
    let given = try elements.text("secret")
    guard grant.covers(room.id) else { throw unauthorized("the token is for other rooms") }
    if grant.isAdministrator { return room }
    guard let secret = room.settings.secret else {
      guard grant.hasSecret || configuration.isOpen else {
        throw unauthorized("the room has no secret, so the API secret or an administrator's token is needed")
      }
      return room
    }
    guard let given else { throw elements.missing("secret") }
    guard isSameSecret(given, secret) else { throw unauthorized("wrong secret") }
    return room
  }

  mutating func unauthorized(_ reason: String) -> JanusError {
    counters.refuse(.unauthorized)
    return JanusError(.roomUnauthorized, "Unauthorized (\(reason))")
  }

  private func hasAdminKey(_ elements: Elements, _ grant: Grant) throws(JanusError) -> Bool {
    let given = try elements.text("admin_key")
    if grant.isAdministrator { return true }
    guard let given, let key = configuration.adminKey else { return false }
    return isSameSecret(given, key)
  }

  mutating func createRoom(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let mayCreate = try hasAdminKey(elements, grant) || configuration.anyoneCreates || grant.token?.mayCreate ?? false
    guard mayCreate else {
      if configuration.adminKey != nil, elements["admin_key"] == nil { throw elements.missing("admin_key") }
      throw unauthorized("rooms are created with the administrator's key")
    }
    let wanted = try elements.id("room", configuration.ids)
    if let wanted {
      guard rooms[wanted] == nil else { throw JanusError(.roomExists, "Room \(wanted.description) already exists") }
      guard grant.covers(wanted) else { throw unauthorized("the token is for other rooms") }
    }
    let id = wanted ?? freshID { [rooms] in rooms[$0] == nil }
    let settings = try RoomSettings(elements, id: id, limits: configuration.limits)
    guard rooms.count < configuration.limits.rooms, !isDraining else {
      counters.refuse(.rooms)
      throw JanusError(.roomUnknownError, "The server takes no more rooms; destroy one first")
    }
    rooms[id] = Room(id: id, isPreset: false, settings: settings, now: now)
    watch(room: id)
    return ["videoroom": "created", "room": id.tree, "permanent": false]
  }

  mutating func destroyRoom(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let room = try governedRoom(elements, grant)
    _ = try elements.boolean("permanent")
    endRoom(room.id)
    return ["videoroom": "destroyed", "room": room.id.tree, "permanent": false]
  }

  mutating func editRoom(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let room = try governedRoom(elements, grant)
    var settings = room.settings
    try settings.edit(elements, limits: configuration.limits)
    rooms[room.id]?.settings = settings
    if settings.bitrate != room.settings.bitrate {
      for participant in room.ordered {
        guard let peer = participant.publication?.peer else { continue }
        media(.limit(peer, bitrate: settings.bitrate(wanted: participant.bitrate)))
      }
    }
    return ["videoroom": "edited", "room": room.id.tree, "permanent": false]
  }

  func roomExists(_ elements: Elements) throws(JanusError) -> JSONObject {
    let id = try elements.required("room", elements.id("room", configuration.ids))
    return ["videoroom": "success", "room": id.tree, "exists": .boolean(rooms[id] != nil)]
  }

  func listRooms(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let listsPrivate = try hasAdminKey(elements, grant)
    let listed = rooms.values.filter { (listsPrivate || !$0.settings.isPrivate) && grant.covers($0.id) }
    return ["videoroom": "success", "list": .list(listed.sorted { $0.id < $1.id }.map(\.summary))]
  }

  mutating func listParticipants(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let room = try room(elements)
    guard grant.covers(room.id) else { throw unauthorized("the token is for other rooms") }
    let entries = room.ordered.map { participant -> JSONTree in
      var entry = room.description(of: participant)
      entry.add("publisher", .boolean(participant.isPublic))
      if room.settings.tellsSpeakers {
        entry.add("talking", .boolean(room.speakers.contains(participant.number)))
      }
      return .object(entry)
    }
    return ["videoroom": "participants", "room": room.id.tree, "participants": .list(entries)]
  }

  mutating func changeAllowed(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let room = try governedRoom(elements, grant)
    let action = try elements.required("action", elements.text("action"))
    let tokens = try elements.texts("allowed") ?? []
    var allowed = room.settings.allowed
    switch action {
    case "enable": allowed = allowed ?? []
    case "disable": allowed = nil
    case "add": allowed = (allowed ?? []).union(tokens)
    case "remove": allowed?.subtract(tokens)
    default: throw JanusError(.roomInvalidElement, "Unsupported action '\(action)' (allowed)")
    }
    guard allowed?.count ?? 0 <= configuration.limits.allowedTokens else {
      counters.refuse(.tooLong)
      throw JanusError(.roomInvalidElement, "Invalid element (allowed): at most \(configuration.limits.allowedTokens)")
    }
    rooms[room.id]?.settings.allowed = allowed
    var answer: JSONObject = ["videoroom": "success", "room": room.id.tree]
    answer.add("allowed", allowed.map { .list($0.sorted().map { .text($0) }) })
    return answer
  }

  private func participant(_ elements: Elements, of room: Room) throws(JanusError) -> RoomParticipant {
    let id = try elements.required("id", elements.id("id", configuration.ids))
    guard let participant = room[id] else {
      throw JanusError(.roomNoSuchFeed, "No such user \(id.description) in room \(room.id.description)")
    }
    return participant
  }

  mutating func kick(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let room = try governedRoom(elements, grant)
    let participant = try participant(elements, of: room)
    tell(participant.handle, ["videoroom": "event", "room": room.id.tree, "leaving": "ok", "reason": "kicked"])
    expel(participant, from: room.id, .kicked)
    return ["videoroom": "success"]
  }

  mutating func moderate(_ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject {
    let room = try governedRoom(elements, grant)
    _ = try elements.required("id", elements.id("id", configuration.ids))
    let mid = try elements.required("mid", elements.text("mid"))
    let isMuted = try elements.required("mute", elements.boolean("mute"))
    let participant = try participant(elements, of: room)
    guard participant.publication?.stream(mid: mid) != nil else {
      throw JanusError(.roomNoSuchFeed, "No such mid '\(mid)', user \(participant.id.description)")
    }
    changeStreams(of: participant.id, in: room.id) { if $0.mid == mid { $0.isModerated = isMuted } }
    tell(
      room: room.id, except: nil,
      [
        "videoroom": "event", "room": room.id.tree, "id": participant.id.tree, "mid": .text(mid),
        "moderation": isMuted ? "muted" : "unmuted",
      ])
    return ["videoroom": "success"]
  }

  /// Changes streams, tells the media plane which are muted, and shows the change in subscribers' lists.
  mutating func changeStreams(
    of participant: PluginID, in room: PluginID, _ change: (inout PublishedStream) -> Void
  ) {
    guard let before = rooms[room]?[participant]?.publication else { return }
    var after = before
    for index in after.streams.indices { change(&after.streams[index]) }
    rooms[room]?.change(participant) { $0.publication = after }
    for (old, new) in zip(before.streams, after.streams) where old.isMuted != new.isMuted {
      media(.mute(after.peer, new.track, new.isMuted))
    }
    for handle in rooms[room]?.subscribers ?? [] {
      changeSubscription(handle) { subscription in
        for index in subscription.lines.indices {
          guard subscription.lines[index].source?.feed == participant,
            let mid = subscription.lines[index].source?.stream.mid, let stream = after.stream(mid: mid)
          else { continue }
          subscription.lines[index].source?.stream = stream
        }
      }
    }
  }

  // MARK: Ends

  /// Puts a participant out whose handle stays.
  mutating func expel(_ participant: RoomParticipant, from room: PluginID, _ departure: Departure) {
    cancelPending(participant.handle, because: "The handle is no longer in the room")
    let hadPeer = rooms[room]?[participant.id]?.publication != nil
    leave(room, participant.id, departure)
    handles[participant.handle]?.role = .left
    if hadPeer { tell(participant.handle, core: "hangup", reason: "Close PC") }
    proceed(participant.handle)
  }

  mutating func endRoom(_ id: PluginID) {
    guard let room = rooms[id] else { return }
    let inside = room.ordered.map(\.handle) + room.subscribers.sorted()
    for handle in inside { tell(handle, ["videoroom": "destroyed", "room": id.tree]) }
    for handle in inside { cancelPending(handle, because: "The room has ended") }
    // The room goes first, so nobody hears of anyone's leaving.
    rooms[id] = nil
    for handle in inside {
      var peer: PeerID?
      switch handles[handle]?.role {
      case .participant(_, let participant): peer = room[participant]?.publication?.peer
      case .subscriber(let subscription): peer = subscription.peer
      default: break
      }
      handles[handle]?.role = .left
      if let peer {
        drop(peer, of: id)
        tell(handle, core: "hangup", reason: "Close PC")
      }
      proceed(handle)
    }
  }
}
