import MediaModel

// Subscribers: which streams their lines show.

extension JanusGateway {
  /// `join` of a subscriber.
  mutating func subscribe(_ request: PluginRequest, _ handle: UInt64) throws(JanusError) {
    let elements = request.elements
    guard request.description == nil else {
      throw JanusError(.roomInvalidRequest, "The server makes the offer; send none")
    }
    let room = try admittingRoom(request)
    let usesIDs = try elements.boolean("use_msid") ?? false
    let follows = try elements.boolean("autoupdate") ?? true
    let privateID = try elements.number("private_id")
    if room.settings.requiresPrivateID {
      let isKnown = room.ordered.contains { UInt64($0.privateID) == privateID }
      guard isKnown else { throw unauthorized("this room requires the private_id of a participant") }
    }
    let isLegacy = elements["streams"] == nil
    let wishes = isLegacy ? [try legacyWish(elements)] : try feedWishes(elements, "streams")
    guard !wishes.isEmpty else { throw elements.missing("feed") }
    try checkPeers(in: room)
    var subscription = RoomSubscription(room: room.id, usesMediaStreamIDs: usesIDs, followsPublishers: follows)
    try show(wishes, in: &subscription)
    guard !subscription.lines.isEmpty else {
      throw JanusError(.roomInvalidDescription, "Can't offer an SDP with no stream to subscribe to")
    }
    var event: JSONObject = ["videoroom": "attached", "room": room.id.tree]
    if isLegacy {
      event.add("id", wishes[0].feed.tree)
      event.add("display", room[wishes[0].feed]?.display.map { .text($0) })
      event.add("warning", "deprecated_api")
    }
    event.add("streams", subscription.tree)
    handles[handle]?.role = .subscriber(subscription)
    rooms[room.id]?.subscribers.insert(handle)
    noteEmptiness(of: room.id)
    makeOffer(
      handle, name: request.name, transaction: request.transaction, event, isFirst: true)
  }

  private func legacyWish(_ elements: Elements) throws(JanusError) -> FeedWish {
    var wish = try FeedWish(elements, configuration.ids)
    wish.mid = nil
    wish.takesAudio = try elements.first(of: ["offer_audio", "audio"], Elements.boolean) ?? true
    wish.takesVideo = try elements.first(of: ["offer_video", "video"], Elements.boolean) ?? true
    return wish
  }

  private func feedWishes(_ elements: Elements, _ name: String) throws(JanusError) -> [FeedWish] {
    var wishes: [FeedWish] = []
    for entry in try elements.objects(name) ?? [] { wishes.append(try FeedWish(entry, configuration.ids)) }
    return wishes
  }

  /// The streams of a wish, with the feed that has them.
  private func sources(
    _ wish: FeedWish, in room: PluginID
  ) throws(JanusError) -> (feed: RoomParticipant, sources: [SubscribedLine.Source]) {
    guard let feed = rooms[room]?[wish.feed], feed.isPublic, let publication = feed.publication else {
      throw JanusError(.roomNoSuchFeed, "No such feed (\(wish.feed.description))")
    }
    let streams = publication.streams.filter { stream in
      if let mid = wish.mid { return stream.mid == mid }
      return stream.kind == .audio ? wish.takesAudio : wish.takesVideo
    }
    if let mid = wish.mid, streams.isEmpty {
      throw JanusError(.roomNoSuchFeed, "No such mid '\(mid)' in feed (\(wish.feed.description))")
    }
    let sources = streams.map {
      SubscribedLine.Source(feed: feed.id, peer: publication.peer, display: feed.display, stream: $0)
    }
    return (feed, sources)
  }

  /// Shows streams that are not shown yet.
  private mutating func show(_ wishes: [FeedWish], in subscription: inout RoomSubscription) throws(JanusError) {
    for wish in wishes {
      let (feed, sources) = try sources(wish, in: subscription.room)
      for source in sources where !subscription.shows(feed: feed.id, mid: source.stream.mid) {
        try checkEncryption(of: feed, for: &subscription)
        subscription.show(source, wish: wish.wish, reference: wish.reference)
      }
    }
    guard subscription.lines.count <= configuration.limits.linesOfHandle else {
      counters.refuse(.lines)
      throw JanusError(
        .roomInvalidDescription,
        "A handle has at most \(configuration.limits.linesOfHandle) streams; attach another one for the others")
    }
  }

  private func checkEncryption(
    of feed: RoomParticipant, for subscription: inout RoomSubscription
  ) throws(JanusError) {
    let isEncrypted = feed.publication?.isEncrypted ?? false
    guard subscription.isEncrypted ?? isEncrypted == isEncrypted else {
      throw JanusError(.roomInvalidFeed, "Can't mix feeds with and without end-to-end encryption in one handle")
    }
    subscription.isEncrypted = isEncrypted
  }

  // MARK: Requests of a subscriber

  mutating func performSubscriber(
    _ request: PluginRequest, _ handle: UInt64, _ subscription: RoomSubscription
  ) throws(JanusError) {
    let elements = request.elements
    if let description = request.description {
      guard !description.isOffer else {
        throw JanusError(.roomInvalidDescriptionType, "A subscriber sends an answer, not an offer")
      }
      guard request.name == "start" else {
        throw JanusError(.roomInvalidRequest, "An answer comes with start")
      }
    }
    switch request.name {
    case "join", "joinandconfigure":
      throw JanusError(.roomAlreadyJoined, "Already in as a subscriber on this handle")
    case "start": try start(request, handle, subscription)
    case "pause":
      changeSubscription(handle) { $0.isPaused = true }
      pin(handle)
      succeed("pause", request.transaction, event(subscription.room, "paused", "ok"), handle)
    case "subscribe":
      guard elements["streams"] != nil else { throw elements.missing("streams") }
      try change(handle, request, unsubscribe: [], subscribe: feedWishes(elements, "streams"))
    case "unsubscribe":
      guard elements["streams"] != nil else { throw elements.missing("streams") }
      try change(handle, request, unsubscribe: choices(elements, "streams"), subscribe: [])
    case "update":
      guard elements["subscribe"] != nil || elements["unsubscribe"] != nil else {
        throw elements.missing("subscribe|unsubscribe")
      }
      try change(
        handle, request, unsubscribe: choices(elements, "unsubscribe"),
        subscribe: feedWishes(elements, "subscribe"))
    case "configure": try configureLines(request, handle, subscription)
    case "switch": try switchLines(request, handle, subscription)
    case "leave":
      succeed("leave", request.transaction, event(subscription.room, "left", "ok"), handle)
      if let peer = subscription.peer {
        drop(peer, of: subscription.room)
        tell(handle, core: "hangup", reason: "Close PC")
      }
      handles[handle]?.role = .left
      rooms[subscription.room]?.subscribers.remove(handle)
      noteEmptiness(of: subscription.room)
    default: throw JanusError(.roomInvalidRequest, "Unknown request '\(request.name)' of a subscriber")
    }
  }

  func event(_ room: PluginID, _ name: String, _ value: JSONTree) -> JSONObject {
    var event: JSONObject = ["videoroom": "event", "room": room.tree]
    event.add(name, value)
    return event
  }

  private func choices(_ elements: Elements, _ name: String) throws(JanusError) -> [LineChoice] {
    var choices: [LineChoice] = []
    for entry in try elements.objects(name) ?? [] { choices.append(try LineChoice(entry, configuration.ids)) }
    return choices
  }

  private mutating func start(
    _ request: PluginRequest, _ handle: UInt64, _ subscription: RoomSubscription
  ) throws(JanusError) {
    guard let description = request.description else {
      changeSubscription(handle) { $0.isPaused = false }
      pin(handle)
      return succeed("start", request.transaction, event(subscription.room, "started", "ok"), handle)
    }
    guard let peer = subscription.peer, subscription.phase == .offered else {
      throw JanusError(.unexpectedAnswer, "There is no offer to answer")
    }
    let number = nextNumber()
    changeSubscription(handle) { $0.phase = .answering }
    wait(handle, PendingRequest(number: number, name: "start", transaction: request.transaction, step: .answering))
    media(.answer(number: number, peer, sdp: description.sdp))
  }

  /// Changes which streams the lines show: all that the request names, or nothing.
  private mutating func change(
    _ handle: UInt64, _ request: PluginRequest, unsubscribe: [LineChoice], subscribe: [FeedWish]
  ) throws(JanusError) {
    guard var subscription = handles[handle]?.subscription else { return }
    let wasOutdated = subscription.isOutdated
    subscription.isOutdated = false
    if !unsubscribe.isEmpty {
      _ = subscription.hide { line in unsubscribe.contains { $0.contains(line) } }
    }
    try show(subscribe, in: &subscription)
    let isChanged = subscription.isOutdated
    subscription.isOutdated = isChanged || wasOutdated
    try update(handle, request, subscription, isChanged: isChanged)
  }

  /// Keeps changed lines, and offers them now or after the answer that is missing.
  private mutating func update(
    _ handle: UInt64, _ request: PluginRequest, _ subscription: RoomSubscription, isChanged: Bool
  ) throws(JanusError) {
    if subscription.peer == nil, isChanged, let room = rooms[subscription.room] { try checkPeers(in: room) }
    let former = handles[handle]?.subscription
    handles[handle]?.role = .subscriber(subscription)
    guard isChanged else {
      return succeed(
        request.name, request.transaction, ["videoroom": "updated", "room": subscription.room.tree], handle)
    }
    guard !subscription.isNegotiating else {
      let event: JSONObject = [
        "videoroom": "updating", "room": subscription.room.tree, "streams": subscription.tree,
      ]
      return succeed(request.name, request.transaction, event, handle)
    }
    // A subscription that has lost all its lines with its PeerConnection has nothing to offer.
    guard subscription.peer != nil || subscription.lines.contains(where: { $0.source != nil }) else {
      if let former { handles[handle]?.role = .subscriber(former) }
      throw JanusError(.roomInvalidDescription, "Can't offer an SDP with no stream to subscribe to")
    }
    let event: JSONObject = ["videoroom": "updated", "room": subscription.room.tree, "streams": subscription.tree]
    makeOffer(handle, name: request.name, transaction: request.transaction, event, isFirst: false)
  }

  private mutating func configureLines(
    _ request: PluginRequest, _ handle: UInt64, _ subscription: RoomSubscription
  ) throws(JanusError) {
    let elements = request.elements
    var changed = subscription
    let restarts = try elements.boolean("restart") ?? false
    if let entries = try elements.objects("streams") {
      for entry in entries {
        let mid = try entry.required("mid", entry.text("mid"))
        guard let index = changed.lines.firstIndex(where: { $0.mid == mid }) else {
          throw JanusError(.roomNoSuchFeed, "No such mid '\(mid)' in this subscription")
        }
        try changed.lines[index].wish.change(entry)
      }
    } else {
      let audio = try elements.boolean("audio")
      let video = try elements.boolean("video")
      for index in changed.lines.indices {
        if let isSent = changed.lines[index].kind == .audio ? audio : video {
          changed.lines[index].wish.isSent = isSent
        }
        try changed.lines[index].wish.change(elements)
      }
    }
    if restarts, !changed.isNegotiating, changed.peer != nil {
      changed.restartsICE = true
      handles[handle]?.role = .subscriber(changed)
      pin(handle)
      let event: JSONObject = ["videoroom": "updated", "room": changed.room.tree, "streams": changed.tree]
      return makeOffer(
        handle, name: request.name, transaction: request.transaction, event, isFirst: false)
    }
    handles[handle]?.role = .subscriber(changed)
    pin(handle)
    succeed("configure", request.transaction, event(changed.room, "configured", "ok"), handle)
  }

  private mutating func switchLines(
    _ request: PluginRequest, _ handle: UInt64, _ subscription: RoomSubscription
  ) throws(JanusError) {
    let elements = request.elements
    var changed = subscription
    var changes = 0
    func put(_ source: SubscribedLine.Source, at index: Int) throws(JanusError) {
      let line = changed.lines[index]
      guard line.kind == source.stream.kind, !line.isRefused, source.stream.format.carries(line.format) else {
        throw JanusError(.roomInvalidElement, "Invalid element (sub_mid): the line takes no such stream")
      }
      if line.source == nil { changed.isOutdated = true }
      changed.lines[index].source = source
      changes += 1
    }
    if elements["streams"] != nil {
      for wish in try feedWishes(elements, "streams") {
        guard wish.mid != nil else { throw elements.missing("mid") }
        guard let line = wish.line else { throw elements.missing("sub_mid") }
        let (feed, sources) = try sources(wish, in: subscription.room)
        guard let index = changed.lines.firstIndex(where: { $0.mid == line }), let source = sources.first else {
          throw JanusError(.roomNoSuchFeed, "No such mid '\(line)' in this subscription")
        }
        try checkEncryption(of: feed, for: &changed)
        try put(source, at: index)
      }
    } else {
      var (feed, sources) = try sources(legacyWish(elements), in: subscription.room)
      try checkEncryption(of: feed, for: &changed)
      for index in changed.lines.indices {
        let place = sources.firstIndex { source in
          source.stream.kind == changed.lines[index].kind && source.stream.format.carries(changed.lines[index].format)
        }
        if let place { try put(sources.remove(at: place), at: index) }
      }
    }
    if changed.isOutdated, !subscription.isOutdated { return try update(handle, request, changed, isChanged: true) }
    handles[handle]?.role = .subscriber(changed)
    pin(handle)
    var event = event(changed.room, "switched", "ok")
    event.add("changes", JSONTree(changes))
    event.add("streams", changed.tree)
    succeed("switch", request.transaction, event, handle)
  }

  // MARK: Lines

  mutating func changeSubscription(_ id: UInt64, _ body: (inout RoomSubscription) -> Void) {
    guard case .subscriber(var subscription) = handles[id]?.role else { return }
    body(&subscription)
    handles[id]?.role = .subscriber(subscription)
  }

  mutating func pin(_ id: UInt64) {
    guard let subscription = handles[id]?.subscription, let peer = subscription.peer else { return }
    media(.pin(peer, subscription.pins))
  }

  /// Streams of a feed ended: the lines that show them become idle, which the subscribers are offered.
  mutating func hideStreams(of feed: PluginID, in room: PluginID, where isGone: (SubscribedLine) -> Bool) {
    for handle in rooms[room]?.subscribers.sorted() ?? [] {
      var isChanged = false
      changeSubscription(handle) { subscription in
        isChanged = subscription.hide { $0.source?.feed == feed && isGone($0) }
      }
      guard isChanged else { continue }
      pin(handle)
      offerByItself(handle)
    }
  }
}
