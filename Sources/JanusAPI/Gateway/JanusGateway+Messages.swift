import MediaModel

// Messages to the videoroom: those answered at once, and the queue of a handle for those answered by events.

extension JanusGateway {
  mutating func message(
    _ elements: Elements, _ handle: UInt64, _ context: RequestContext
  ) throws(JanusError) -> JSONObject? {
    guard let value = elements["body"] else { throw elements.missing("body") }
    guard case .object(let body) = value else { throw elements.invalid("body", "an object") }
    let description = try description(in: elements)
    let room = Elements(body, of: .room)
    var name = "unknown"
    do throws(JanusError) {
      name = try room.required("request", room.text("request")).lowercased()
      if let data = try answer(name, room, context.grant) {
        counters.count("room " + name, code: 0)
        return pluginReply(.object(data), handle, context)
      }
    } catch {
      counters.count("room " + name, code: error.code)
      return pluginReply(.object(error.room), handle, context)
    }
    let request = PluginRequest(
      name: name, transaction: context.transaction ?? "", body: body, description: description, grant: context.grant)
    try enqueue(request, handle, context)
    return nil
  }

  private func pluginReply(_ data: JSONTree, _ handle: UInt64, _ context: RequestContext) -> JSONObject {
    var reply = context.message("success")
    reply.add("sender", JSONTree(handle))
    reply.add("plugindata", ["plugin": .text(Self.pluginName), "data": data])
    return reply
  }

  private func description(in elements: Elements) throws(JanusError) -> ClientDescription? {
    guard let value = elements["jsep"] else { return nil }
    guard case .object(let object) = value else { throw JanusError(.notAnObject, "Invalid jsep object") }
    let members = Elements(object, of: .core)
    let type = try members.required("type", members.text("type")).lowercased()
    guard ["offer", "answer"].contains(type) else {
      throw JanusError(.unknownDescriptionType, "Unknown type of description; send an offer or an answer")
    }
    guard let sdp = members["sdp"] else { throw members.missing("sdp") }
    guard case .text(let text) = sdp else { throw members.invalid("sdp", "a string") }
    guard text.utf8.count <= configuration.limits.descriptionTextBytes else {
      throw JanusError(
        .invalidDescription, "The description has more than \(configuration.limits.descriptionTextBytes) bytes")
    }
    return ClientDescription(isOffer: type == "offer", sdp: text, isEncrypted: try members.boolean("e2ee") ?? false)
  }

  /// The requests that are answered at once.
  /// - Returns: nil for those that are answered by an event.
  private mutating func answer(_ name: String, _ elements: Elements, _ grant: Grant) throws(JanusError) -> JSONObject? {
    switch name {
    case "create": try createRoom(elements, grant)
    case "destroy": try destroyRoom(elements, grant)
    case "edit": try editRoom(elements, grant)
    case "exists": try roomExists(elements)
    case "list": try listRooms(elements, grant)
    case "listparticipants": try listParticipants(elements, grant)
    case "allowed": try changeAllowed(elements, grant)
    case "kick": try kick(elements, grant)
    case "moderate": try moderate(elements, grant)
    case "join", "joinandconfigure", "configure", "publish", "unpublish", "start", "pause", "switch", "subscribe",
      "unsubscribe", "update", "leave":
      nil
    case "enable_recording", "rtp_forward", "stop_rtp_forward", "listforwarders", "listrtpforwarders",
      "add_remote_publisher", "update_remote_publisher", "remove_remote_publisher", "publish_remotely",
      "unpublish_remotely", "list_remotes":
      throw JanusError(.roomInvalidRequest, "This server does not record or forward rooms")
    default: throw JanusError(.roomInvalidRequest, "Unknown request '\(name)'")
    }
  }

  private mutating func enqueue(_ request: PluginRequest, _ id: UInt64, _ context: RequestContext) throws(JanusError) {
    guard let handle = handles[id] else { return }
    if let description = request.description, !description.isOffer {
      // The queue needs no look: a client cannot answer an offer that it does not have.
      let isPublisher = if case .participant = handle.role { true } else { false }
      guard isPublisher || handle.subscription?.phase == .offered else {
        throw JanusError(.unexpectedAnswer, "There is no offer to answer")
      }
    }
    guard handle.waiting.count < configuration.limits.requestsOfHandle else {
      counters.refuse(.requests)
      throw JanusError(.messageFailed, "Too many requests of this handle wait; await their events")
    }
    reply(context.message("ack"), to: context.from)
    handles[id]?.waiting.append(request)
    proceed(id)
  }

  /// Carries out the requests that wait, until one needs the media plane.
  mutating func proceed(_ id: UInt64) {
    while let handle = handles[id], handle.pending == nil, !handle.waiting.isEmpty {
      let request = handles[id]?.waiting.removeFirst()
      if let request { perform(request, id) }
    }
  }

  private mutating func perform(_ request: PluginRequest, _ id: UInt64) {
    do throws(JanusError) {
      guard let handle = handles[id] else { return }
      switch handle.role {
      case .fresh: try performFresh(request, id)
      case .participant(let room, let participant):
        try performPublisher(request, id, room: room, participant: participant)
      case .subscriber(let subscription): try performSubscriber(request, id, subscription)
      case .left:
        guard ["join", "joinandconfigure"].contains(request.name) else {
          throw JanusError(.roomUnknown, "No such room: the handle has left it")
        }
        throw JanusError(.roomAlreadyJoined, "Not in a room (create a new handle)")
      }
    } catch {
      fail(request.name, request.transaction, error, id)
    }
  }

  private mutating func performFresh(_ request: PluginRequest, _ id: UInt64) throws(JanusError) {
    let elements = request.elements
    switch request.name {
    case "join", "joinandconfigure":
      let kind = try elements.required("ptype", elements.text("ptype"))
      switch kind {
      case "publisher": try join(request, id)
      case "subscriber", "listener":
        guard request.name == "join" else {
          throw JanusError(.roomInvalidRequest, "A subscriber has nothing to configure; use join")
        }
        try subscribe(request, id)
      default: throw JanusError(.roomInvalidElement, "Invalid element (ptype)")
      }
    // Clients that lose a race between their own handles send it without a join.
    case "subscribe" where elements["room"] != nil: try subscribe(request, id)
    default: throw JanusError(.roomJoinFirst, "Invalid request on unconfigured participant")
    }
  }

  // MARK: Events

  /// An event of the videoroom for a handle's session.
  mutating func tell(
    _ id: UInt64, _ data: JSONObject, transaction: String? = nil,
    description: (type: String, sdp: String, e2ee: Bool)? = nil
  ) {
    guard let session = handles[id]?.session else { return }
    var event: JSONObject = ["janus": "event", "session_id": JSONTree(session)]
    event.add("transaction", transaction.map { .text($0) })
    event.add("sender", JSONTree(id))
    event.add("plugindata", ["plugin": .text(Self.pluginName), "data": .object(data)])
    if let (type, sdp, isEncrypted) = description {
      var jsep: JSONObject = ["type": .text(type), "sdp": .text(sdp)]
      jsep.add("e2ee", isEncrypted ? true : nil)
      event.add("jsep", .object(jsep))
    }
    deliver(event, to: session)
  }

  /// An event of the core about a handle.
  mutating func tell(_ id: UInt64, core kind: String, reason: String? = nil) {
    guard let session = handles[id]?.session else { return }
    var event: JSONObject = ["janus": .text(kind), "session_id": JSONTree(session), "sender": JSONTree(id)]
    event.add("reason", reason.map { .text($0) })
    deliver(event, to: session)
  }

  mutating func succeed(
    _ name: String, _ transaction: String, _ data: JSONObject, _ id: UInt64,
    description: (type: String, sdp: String, e2ee: Bool)? = nil
  ) {
    counters.count("room " + name, code: 0)
    tell(id, data, transaction: transaction, description: description)
  }

  mutating func fail(_ name: String, _ transaction: String, _ error: JanusError, _ id: UInt64) {
    counters.count("room " + name, code: error.code)
    tell(id, error.room, transaction: transaction)
  }

  /// Gives up the request that waits for the media plane: its peer is going.
  mutating func cancelPending(_ id: UInt64, because reason: String) {
    guard let pending = handles[id]?.pending else { return }
    handles[id]?.pending = nil
    waiters[pending.number] = nil
    if let transaction = pending.transaction {
      fail(pending.name, transaction, JanusError(.roomUnknownError, reason), id)
    }
    undo(pending, id)
  }

  /// Tells all who joined the room as publishers.
  mutating func tell(room: PluginID, except participant: PluginID?, _ data: JSONObject) {
    for other in rooms[room]?.ordered ?? [] where other.id != participant { tell(other.handle, data) }
  }
}
