import MediaModel
import Octets

// The requests of the core: sessions and handles.

extension JanusGateway {
  mutating func receive(_ request: JanusRequest) {
    var context = RequestContext(from: request.from, grant: request.grant)
    var name = "unknown"
    do throws(JanusError) {
      guard case .object(let object) = request.value else {
        throw JanusError(.notAnObject, "The message is not a JSON object")
      }
      let elements = Elements(object, of: .core)
      let limit = configuration.limits.transactionBytes
      context.transaction = try elements.required("transaction", elements.text("transaction", limit: limit))
      guard !request.value.isWider(than: configuration.limits.width) else {
        counters.refuse(.tooLong)
        throw JanusError(.invalidJSON, "An object or array has more than \(configuration.limits.width) members")
      }
      name = try elements.required("janus", elements.text("janus")).lowercased()
      let (session, handle) = try place(of: request, elements)
      context.session = session
      let replied = try perform(name, elements, session: session, handle: handle, &context)
      if let replied { reply(replied, to: context.from) }
      counters.count(name, code: 0)
    } catch {
      refuse(error, context, name: name)
    }
  }

  mutating func refuse(_ error: JanusError, _ context: RequestContext, name: String) {
    counters.count(name, code: error.code)
    var message = context.message("error")
    message.add("error", error.core)
    reply(message, to: context.from)
  }

  private func place(
    of request: JanusRequest, _ elements: Elements
  ) throws(JanusError) -> (session: UInt64?, handle: UInt64?) {
    switch request.path {
    case .root: (nil, nil)
    case .session(let session): (session, nil)
    case .handle(let session, let handle): (session, handle)
    case nil: (try elements.number("session_id"), try elements.number("handle_id"))
    }
  }

  /// - Returns: the reply; nil if it has been given already.
  private mutating func perform(
    _ name: String, _ elements: Elements, session: UInt64?, handle: UInt64?, _ context: inout RequestContext
  ) throws(JanusError) -> JSONObject? {
    guard let session else {
      guard handle == nil else { throw JanusError(.noSuchSession, "Session not found") }
      switch name {
      case "ping": return context.message("pong")
      case "info": return info(context)
      case "create":
        try authorize(context.grant)
        return try create(elements, context)
      default: throw JanusError(.invalidPath, "Unhandled request '\(name)' at this path")
      }
    }
    try authorize(context.grant)
    try enter(session, context.grant)
    guard let handle else { return try performInSession(name, elements, session, context) }
    guard handles[handle]?.session == session else {
      throw JanusError(.noSuchHandle, "No such handle \(handle) in session \(session)")
    }
    switch name {
    case "keepalive": return context.message("ack")
    case "claim": return claim(session, context)
    case "detach":
      // The reply comes first, as the event says that the handle is gone.
      reply(context.message("success"), to: context.from)
      endHandle(handle)
      deliver(["janus": "detached", "session_id": JSONTree(session), "sender": JSONTree(handle)], to: session)
      return nil
    case "hangup":
      reply(context.message("success"), to: context.from)
      hangUp(handle, reason: "Janus API")
      return nil
    case "message": return try message(elements, handle, context)
    case "trickle":
      try checkTrickle(elements)
      return context.message("ack")
    case "attach", "destroy": throw JanusError(.invalidPath, "Unhandled request '\(name)' at this path")
    default: throw JanusError(.unknownRequest, "Unknown request '\(name)'")
    }
  }

  private mutating func performInSession(
    _ name: String, _ elements: Elements, _ session: UInt64, _ context: RequestContext
  ) throws(JanusError) -> JSONObject? {
    switch name {
    case "keepalive": return context.message("ack")
    case "claim": return claim(session, context)
    case "attach": return try attach(elements, to: session, context)
    case "destroy":
      reply(context.message("success"), to: context.from)
      endSession(session)
      return nil
    case "detach", "hangup", "message", "trickle":
      throw JanusError(.invalidPath, "Unhandled request '\(name)' at this path")
    default: throw JanusError(.unknownRequest, "Unknown request '\(name)'")
    }
  }

  mutating func authorize(_ grant: Grant) throws(JanusError) {
    guard configuration.isOpen || grant.hasSecret || grant.token != nil else {
      counters.refuse(.unauthorized)
      throw JanusError(.unauthorized, "Unauthorized request (wrong or missing secret/token)")
    }
  }

  /// Finds the session of a request, which keeps it alive. A session of one person is not there for another one's token.
  mutating func enter(_ id: UInt64, _ grant: Grant) throws(JanusError) {
    guard let session = sessions[id],
      session.identity == nil || grant.hasSecret || session.identity == grant.token?.identity
    else { throw JanusError(.noSuchSession, "No such session \(id)") }
    sessions[id]?.lastActive = now
  }

  // MARK: Sessions

  private mutating func create(_ elements: Elements, _ context: RequestContext) throws(JanusError) -> JSONObject {
    guard !isDraining else { throw JanusError(.notAcceptingSessions, "Not accepting new sessions") }
    let wanted = try elements.number("id")
    if let wanted, sessions[wanted] != nil { throw JanusError(.sessionExists, "Session ID already in use") }
    guard sessions.count < configuration.limits.sessions else {
      counters.refuse(.sessions)
      throw JanusError(.notAcceptingSessions, "Not accepting new sessions: the server has its maximum")
    }
    var socket: UInt64?
    if case .socket(let number) = context.from { socket = number }
    if let socket, sockets[socket, default: []].count >= configuration.limits.sessionsOfConnection {
      counters.refuse(.sessions)
      throw JanusError(.tooManySessions, "This connection has its maximum of sessions; open another one")
    }
    let id = wanted ?? fresh { [sessions] in sessions[$0] == nil }
    sessions[id] = GatewaySession(id: id, identity: context.grant.token?.identity, socket: socket, now: now)
    if let socket { sockets[socket, default: []].insert(id) }
    watch(session: id)
    var reply = context.message("success")
    reply.add("data", ["id": JSONTree(id)])
    return reply
  }

  /// The session's events go where the request came from: those that waited come first.
  private mutating func claim(_ id: UInt64, _ context: RequestContext) -> JSONObject? {
    if let former = sessions[id]?.socket { release(id, from: former) }
    sessions[id]?.reclaimBy = nil
    reply(context.message("success"), to: context.from)
    guard case .socket(let socket) = context.from else {
      sessions[id]?.socket = nil
      return nil
    }
    endPoll(of: id, with: ["janus": "keepalive"])
    sockets[socket, default: []].insert(id)
    sessions[id]?.socket = socket
    let waiting = sessions[id]?.take(.max) ?? []
    for case .object(let event) in waiting { deliver(event, to: id) }
    return nil
  }

  private mutating func release(_ id: UInt64, from socket: UInt64) {
    sockets[socket]?.remove(id)
    if sockets[socket]?.isEmpty == true { sockets[socket] = nil }
  }

  mutating func socketEnded(_ socket: UInt64, _ ending: SocketEnding) {
    for id in (sockets.removeValue(forKey: socket) ?? []).sorted() {
      sessions[id]?.socket = nil
      guard ending == .broken, configuration.reclaimTimeout > .zero else {
        endSession(id)
        continue
      }
      let deadline = now.advanced(by: configuration.reclaimTimeout)
      sessions[id]?.reclaimBy = deadline
      watch(session: id)
    }
  }

  mutating func endSession(_ id: UInt64) {
    for handle in sessions[id]?.handles ?? [] { endHandle(handle) }
    var gone = RequestContext(from: .exchange(0), session: id).message("error")
    gone.add("error", JanusError(.noSuchSession, "No such session \(id)").core)
    endPoll(of: id, with: gone)
    guard let session = sessions.removeValue(forKey: id) else { return }
    if let socket = session.socket { release(id, from: socket) }
  }

  // MARK: Polls

  mutating func poll(_ exchange: UInt64, session id: UInt64, maximum: Int?, _ grant: Grant) {
    var context = RequestContext(from: .exchange(exchange), session: id, grant: grant)
    do throws(JanusError) {
      try authorize(grant)
      try enter(id, grant)
      guard sessions[id]?.socket == nil else {
        throw JanusError(.invalidPath, "The session has a WebSocket; claim it over HTTP first")
      }
      endPoll(of: id, with: ["janus": "keepalive"])
      sessions[id]?.reclaimBy = nil
      context.session = nil
      let due = now.advanced(by: configuration.pollTimeout)
      let most = maximum.flatMap { $0 > 1 ? $0 : nil }
      sessions[id]?.poll = GatewaySession.Poll(exchange: exchange, maximum: most, due: due)
      pollers[exchange] = id
      timers.add(.poll(session: id, exchange: exchange), key: due)
      answerPoll(of: id)
      counters.count("poll", code: 0)
    } catch {
      refuse(error, context, name: "poll")
    }
  }

  mutating func exchangeEnded(_ exchange: UInt64) {
    if let session = pollers[exchange] { forgetPoll(of: session) }
  }

  // MARK: Handles

  private mutating func attach(
    _ elements: Elements, to session: UInt64, _ context: RequestContext
  ) throws(JanusError) -> JSONObject {
    let plugin = try elements.required("plugin", elements.text("plugin"))
    _ = try elements.text("opaque_id")
    guard plugin == Self.pluginName else { throw JanusError(.noSuchPlugin, "No such plugin '\(plugin)'") }
    guard context.grant.hasSecret || context.grant.token?.coversVideoRoom ?? true else {
      counters.refuse(.unauthorized)
      throw JanusError(.unauthorizedPlugin, "The token does not cover this plugin")
    }
    guard sessions[session]?.handles.count ?? 0 < configuration.limits.handlesOfSession else {
      counters.refuse(.handles)
      throw JanusError(.attachFailed, "The session has its maximum of handles; detach one first")
    }
    let id = fresh { [handles] in handles[$0] == nil }
    handles[id] = PluginHandle(id: id, session: session)
    sessions[session]?.handles.append(id)
    var reply = context.message("success")
    reply.add("data", ["id": JSONTree(id)])
    return reply
  }

  /// Ends a handle without a word to its session.
  mutating func endHandle(_ id: UInt64) {
    guard let handle = handles.removeValue(forKey: id) else { return }
    sessions[handle.session]?.handles.removeAll { $0 == id }
    switch handle.role {
    case .fresh, .left: break
    case .participant(let room, let participant): leave(room, participant, .leaving)
    case .subscriber(let subscription):
      if let peer = subscription.peer { drop(peer, of: subscription.room) }
      rooms[subscription.room]?.subscribers.remove(id)
      noteEmptiness(of: subscription.room)
    }
  }

  /// The server's ICE is lite, and its peer's candidates come by its checks: their contents are not needed.
  private func checkTrickle(_ elements: Elements) throws(JanusError) {
    switch (elements["candidate"], elements["candidates"]) {
    case (nil, nil): throw elements.missing("candidate|candidates")
    case (.some, .some): throw JanusError(.invalidJSON, "Can't have both candidate and candidates")
    case (.object, nil), (nil, .list): break
    case (.some, nil): throw elements.invalid("candidate", "an object")
    case (nil, .some): throw elements.invalid("candidates", "an array")
    }
  }

  static var pluginName: String { "janus.plugin.videoroom" }

  // MARK: Info

  private func info(_ context: RequestContext) -> JSONObject {
    var info = context.message("server_info")
    info.add("name", "Conclave")
    // Clients take 1000 and more for a server whose handles have several streams.
    info.add("version", 1000)
    info.add("version_string", .text(configuration.version))
    info.add("author", "Conclave")
    info.add("data_channels", false)
    info.add("accepting-new-sessions", .boolean(!isDraining))
    info.add("session-timeout", JSONTree(Int(configuration.sessionTimeout.components.seconds)))
    info.add("reclaim-session-timeout", JSONTree(Int(configuration.reclaimTimeout.components.seconds)))
    info.add("candidates-timeout", 0)
    info.add("server-name", "Conclave")
    info.add("ipv6", true)
    info.add("ice-lite", true)
    info.add("ice-tcp", .boolean(configuration.hasTCP))
    info.add("full-trickle", false)
    info.add("api_secret", .boolean(!configuration.isOpen))
    info.add("auth_token", .boolean(!configuration.isOpen))
    info.add("event_handlers", false)
    info.add("dependencies", [:])
    info.add("transports", [:])
    info.add(
      "plugins",
      [
        Self.pluginName: [
          "name": "Conclave rooms", "author": "Conclave", "version": 1000,
          "version_string": .text(configuration.version),
          "description": "Rooms that speak the API of Janus's VideoRoom",
        ]
      ])
    return info
  }

  // MARK: Draining

  mutating func drain() {
    isDraining = true
    for id in rooms.values.filter(\.isEmpty).map(\.id).sorted() { endRoom(id) }
  }
}
