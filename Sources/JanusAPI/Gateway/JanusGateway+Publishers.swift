import MediaModel

// Participants of a room: joining, publishing, leaving.

/// How a participant stops, and what the others are told.
enum Departure: Sendable { case leaving, kicked, replaced }

extension JanusGateway {
  // MARK: Joining

  mutating func join(_ request: PluginRequest, _ handle: UInt64) throws(JanusError) {
    let elements = request.elements
    let room = try admittingRoom(request)
    let wanted = try elements.id("id", configuration.ids)
    let display = try elements.text("display", limit: configuration.limits.displayBytes)
    let metadata = try elements.metadata(configuration.limits)
    let videoCodec = try elements.codecs("videocodec", known: RoomSettings.videoCodecs)?.first
    let wish: PublisherWish? =
      request.name == "joinandconfigure" ? try PublisherWish(elements, limits: configuration.limits) : nil
    let identity = request.grant.token?.identity
    if let wanted, let present = room[wanted] { try takeOver(present, in: room.id, identity: identity) }
    guard rooms[room.id]?.participants.count ?? 0 < configuration.limits.participantsOfRoom else {
      counters.refuse(.participants)
      throw JanusError(.roomUnknownError, "The room takes no more participants")
    }
    let id = wanted ?? freshID { room[$0] == nil }
    let privateID = UInt32.random(in: 1...(.max), using: &generator)
    rooms[room.id]?.add { number in
      RoomParticipant(
        number: number, id: id, handle: handle, privateID: privateID, identity: identity, display: display,
        metadata: metadata, videoCodec: videoCodec)
    }
    noteEmptiness(of: room.id)
    handles[handle]?.role = .participant(room: room.id, id: id)
    let joined = joinedEvent(room: room.id, id, privateID: privateID)
    if room.settings.tellsJoining, let entry = rooms[room.id].flatMap({ room in room[id].map(room.description) }) {
      tell(room: room.id, except: id, ["videoroom": "event", "room": room.id.tree, "joining": .object(entry)])
    }
    guard let wish else { return succeed(request.name, request.transaction, joined, handle) }
    do throws(JanusError) {
      try configure(request, wish, handle, room: room.id, id, joined: joined)
    } catch {
      // It is one request: it joins and publishes, or does neither.
      leave(room.id, id, .leaving)
      handles[handle]?.role = .fresh
      throw error
    }
  }

  /// The room of a `join`, once the request may enter it.
  mutating func admittingRoom(_ request: PluginRequest) throws(JanusError) -> Room {
    let elements = request.elements
    let id = try elements.required("room", elements.id("room", configuration.ids))
    guard let room = rooms[id] else { throw JanusError(.roomUnknown, "No such room (\(id.description))") }
    if let pin = room.settings.pin {
      let given = try elements.required("pin", elements.text("pin"))
      guard isSameSecret(given, pin) else { throw unauthorized("wrong pin") }
    }
    let token = try elements.text("token", limit: 4_096)
    if room.settings.requiresSignedTokens {
      guard request.grant.bodyToken?.covers(id) ?? false else { throw unauthorized("the room needs a signed token") }
    } else if let allowed = room.settings.allowed {
      guard let token, allowed.contains(token) else { throw unauthorized("not in the allowed list") }
    }
    guard request.grant.covers(id) else { throw unauthorized("the token is for other rooms") }
    return room
  }

  private func joinedEvent(room id: PluginID, _ participant: PluginID, privateID: UInt32) -> JSONObject {
    guard let room = rooms[id] else { return [:] }
    var event: JSONObject = [
      "videoroom": "joined", "room": id.tree, "description": .text(room.settings.description), "id": participant.tree,
      "private_id": JSONTree(UInt64(privateID)), "publishers": room.feeds(without: participant),
    ]
    if room.settings.tellsJoining {
      let others = room.ordered.filter { $0.id != participant && !$0.isPublic }
      event.add("attendees", .list(others.map { .object(room.description(of: $0)) }))
    }
    return event
  }

  /// Makes room for a participant that comes again under its id. A participant that is well is never put out, because everybody in the room knows its id.
  private mutating func takeOver(
    _ present: RoomParticipant, in room: PluginID, identity: String?
  ) throws(JanusError) {
    let session = handles[present.handle].flatMap { sessions[$0.session] }
    let isGone = session?.reclaimBy != nil || present.isSilent
    guard isGone, present.identity == identity else {
      throw JanusError(.roomIDExists, "User ID \(present.id.description) already exists")
    }
    counters.takenOver += 1
    tell(present.handle, ["videoroom": "event", "room": room.tree, "leaving": "ok", "reason": "replaced"])
    expel(present, from: room, .replaced)
  }

  // MARK: Requests of a participant

  mutating func performPublisher(
    _ request: PluginRequest, _ handle: UInt64, room: PluginID, participant id: PluginID
  ) throws(JanusError) {
    switch request.name {
    case "join", "joinandconfigure":
      throw JanusError(.roomAlreadyJoined, "Already in as a publisher on this handle")
    case "configure", "publish":
      let wish = try PublisherWish(request.elements, limits: configuration.limits)
      if request.name == "publish", rooms[room]?[id]?.publication != nil {
        throw JanusError(.roomAlreadyPublished, "Can't publish, already published")
      }
      try configure(request, wish, handle, room: room, id, joined: nil)
    case "unpublish":
      guard rooms[room]?[id]?.publication != nil else {
        throw JanusError(.roomNotPublished, "Can't unpublish, not published")
      }
      succeed(
        request.name, request.transaction, ["videoroom": "event", "room": room.tree, "unpublished": "ok"], handle)
      unpublish(room, id, reason: "Close PC")
    case "leave":
      let hadPeer = rooms[room]?[id]?.publication != nil
      succeed(request.name, request.transaction, ["videoroom": "event", "room": room.tree, "leaving": "ok"], handle)
      leave(room, id, .leaving)
      handles[handle]?.role = .left
      if hadPeer { tell(handle, core: "hangup", reason: "Close PC") }
    default:
      throw JanusError(.roomInvalidRequest, "Unknown request '\(request.name)' of a publisher")
    }
  }

  /// - Parameter joined: the event of a `joinandconfigure`.
  private mutating func configure(
    _ request: PluginRequest, _ wish: PublisherWish, _ handle: UInt64, room: PluginID, _ id: PluginID,
    joined: JSONObject?
  ) throws(JanusError) {
    guard let settings = rooms[room]?.settings else { return }
    if let codec = wish.videoCodec, !settings.videoCodecs.contains(codec) {
      throw JanusError(
        .roomInvalidElement,
        "Invalid element (videocodec): the room has \(settings.videoCodecs.joined(separator: ", "))")
    }
    guard let description = request.description else {
      apply(wish, to: id, in: room)
      let event = joined ?? ["videoroom": "event", "room": room.tree, "configured": "ok"]
      return succeed(request.name, request.transaction, event, handle)
    }
    guard description.isOffer else {
      throw JanusError(.roomInvalidDescriptionType, "A publisher sends an offer, not an answer")
    }
    guard request.grant.mayPublish else { throw unauthorized("the token does not allow to publish") }
    if settings.requiresEncryption, !description.isEncrypted {
      throw unauthorized("the room requires end-to-end encryption: say e2ee in jsep")
    }
    try checkPlace(forPublisher: id, in: room)
    let number = nextNumber()
    wait(
      handle,
      PendingRequest(
        number: number, name: request.name, transaction: request.transaction,
        step: .reading(request, wish, joined: joined)))
    media(.read(number: number, sdp: description.sdp))
  }

  /// Whether one more publisher and PeerConnection fit, if the participant does not have them already.
  private mutating func checkPlace(forPublisher id: PluginID, in room: PluginID) throws(JanusError) {
    guard let room = rooms[room], room[id]?.publication == nil else { return }
    guard room.publisherCount < room.settings.publishers else {
      counters.refuse(.publishers)
      throw JanusError(
        .roomPublishersFull, "Maximum number of publishers (\(room.settings.publishers)) already reached")
    }
    try checkPeers(in: room)
  }

  mutating func checkPeers(in room: Room) throws(JanusError) {
    guard peers.count < configuration.limits.peers, room.peers < configuration.limits.peersOfRoom else {
      counters.refuse(.peers)
      throw JanusError(.roomUnknownError, "There are too many PeerConnections; use one handle for several streams")
    }
  }

  /// Applies all of a `configure` but the description.
  private mutating func apply(_ wish: PublisherWish, to id: PluginID, in room: PluginID) {
    guard let settings = rooms[room]?.settings else { return }
    let isRenamed = wish.display != nil && wish.display != rooms[room]?[id]?.display
    rooms[room]?.change(id) { participant in
      if let display = wish.display { participant.display = display }
      if let metadata = wish.metadata { participant.metadata = metadata }
      if let bitrate = wish.bitrate { participant.bitrate = bitrate }
      if let codec = wish.videoCodec { participant.videoCodec = codec }
    }
    if isRenamed, let display = wish.display {
      tell(room: room, except: id, ["videoroom": "event", "room": room.tree, "id": id.tree, "display": .text(display)])
    }
    guard let publication = rooms[room]?[id]?.publication else { return }
    if let bitrate = wish.bitrate {
      media(.limit(publication.peer, bitrate: settings.bitrate(wanted: bitrate)))
    }
    changeStreams(of: id, in: room) { wish.apply(to: &$0) }
    for stream in publication.streams where wish.wantsKeyFrame(of: stream) {
      media(.requestKeyFrame(publication.peer, stream.track))
    }
  }

  // MARK: Negotiating

  /// A publisher's offer has been read.
  mutating func publish(
    _ offer: MediaOffer, _ request: PluginRequest, _ wish: PublisherWish, joined: JSONObject?, _ handle: UInt64
  ) throws(JanusError) {
    guard case .participant(let room, let id) = handles[handle]?.role, let settings = rooms[room]?.settings,
      let participant = rooms[room]?[id]
    else { return }
    let sending = offer.sections.enumerated().compactMap {
      line, section -> (line: Int, kind: MediaKind, mid: String)? in
      guard case .media(let kind) = section.kind, !section.isRejected,
        section.direction == .sendonly || section.direction == .sendrecv
      else { return nil }
      return (line, kind, section.mid)
    }
    guard sending.count <= configuration.limits.streamsOfPublisher else {
      counters.refuse(.streams)
      throw JanusError(
        .roomInvalidDescription, "The offer sends more than \(configuration.limits.streamsOfPublisher) streams")
    }
    // Another certificate is another PeerConnection.
    if let publication = participant.publication, publication.fingerprint != offer.fingerprint {
      unpublish(room, id, reason: nil)
    }
    try checkPlace(forPublisher: id, in: room)
    var publication =
      rooms[room]?[id]?.publication
      ?? Publication(peer: nextPeer(), fingerprint: offer.fingerprint, isEncrypted: false)
    publication.isEncrypted = request.description?.isEncrypted ?? false
    let mids = Set(sending.map(\.mid))
    publication.indexes = publication.indexes.filter { mids.contains($0.key) }
    var tracks: [NamedTrack] = []
    for (_, kind, mid) in sending {
      guard let index = publication.index(of: mid) else { continue }
      let muted = publication.stream(mid: mid)?.isMuted ?? false
      tracks.append(
        NamedTrack(
          mid: mid, track: TrackID(participant: participant.number, index: index),
          source: kind == .audio ? .microphone : .camera, muted: muted))
    }
    if peers.updateValue(handle, forKey: publication.peer) == nil { rooms[room]?.peers += 1 }
    rooms[room]?.change(id) { participant in
      participant.publication = publication
      participant.isSilent = false
    }
    let codecs = [wish.videoCodec ?? participant.videoCodec].compactMap { codec in
      codec.flatMap { settings.videoCodecs.contains($0) ? $0 : nil }
    }
    let number = nextNumber()
    wait(
      handle,
      PendingRequest(
        number: number, name: request.name, transaction: request.transaction,
        step: .negotiating(request, wish, joined: joined, offer: offer)))
    media(
      .negotiate(
        PublisherNegotiation(
          number: number, peer: publication.peer, call: CallID(unchecked: Room.callPrefix + room.description),
          participant: participant.number, offer: offer, tracks: tracks,
          codecs: codecs.isEmpty ? settings.videoCodecs : codecs,
          bitrate: settings.bitrate(wanted: wish.bitrate ?? participant.bitrate))))
  }

  /// The media plane has a publisher's answer.
  mutating func published(
    _ answer: PublisherAnswer, _ request: PluginRequest, _ wish: PublisherWish, joined: JSONObject?,
    offer: MediaOffer, _ handle: UInt64
  ) {
    guard case .participant(let room, let id) = handles[handle]?.role,
      let before = rooms[room]?[id]?.publication
    else { return }
    var streams: [PublishedStream] = []
    for (line, section) in offer.sections.enumerated() {
      guard let track = answer.tracks.first(where: { $0.mid == section.mid }), let format = track.formats.first,
        case .media(let kind) = section.kind
      else { continue }
      var stream = PublishedStream(
        track: track.track, kind: kind, mid: track.mid, line: line, format: format, hasLayers: track.rids.count > 1)
      if let known = before.stream(mid: track.mid) {
        stream.text = known.text
        stream.isDisabled = known.isDisabled
        stream.isModerated = known.isModerated
      }
      streams.append(stream)
    }
    rooms[room]?.change(id) { $0.publication?.streams = streams }
    apply(wish, to: id, in: room)
    let after = rooms[room]?[id]?.publication?.streams ?? []
    var event: JSONObject
    if let joined {
      event = joined
    } else {
      event = ["videoroom": "event", "room": room.tree, "configured": "ok"]
    }
    event.add("audio_codec", after.first { $0.kind == .audio }.map { .text($0.codec) })
    event.add("video_codec", after.first { $0.kind == .video }.map { .text($0.codec) })
    event.add("streams", .list(after.map(\.tree)))
    succeed(
      request.name, request.transaction, event, handle, description: ("answer", answer.sdp, before.isEncrypted))
    guard before.isUp else { return }
    announce(id, in: room)
    hideStreams(of: id, in: room) { line in
      !after.contains {
        $0.mid == line.source?.stream.mid && $0.track == line.source?.stream.track && $0.format.carries(line.format)
      }
    }
  }

  mutating func announce(_ id: PluginID, in room: PluginID) {
    guard let entry = rooms[room].flatMap({ room in room[id].map(room.feed) }) else { return }
    tell(room: room, except: id, ["videoroom": "event", "room": room.tree, "publishers": [entry]])
  }

  // MARK: Leaving

  /// Takes a participant out of its room. Its handle is the caller's matter.
  mutating func leave(_ room: PluginID, _ id: PluginID, _ departure: Departure) {
    guard let participant = rooms[room]?[id] else { return }
    endPublication(of: id, in: room)
    rooms[room]?.remove(id)
    var event: JSONObject = ["videoroom": "event", "room": room.tree]
    switch departure {
    case .leaving:
      event.add("leaving", id.tree)
      event.add("display", participant.display.map { .text($0) })
    case .kicked: event.add("kicked", id.tree)
    // The newcomer has the same id, so the others are told about the stream only.
    case .replaced: event.add("unpublished", id.tree)
    }
    tell(room: room, except: nil, event)
    noteEmptiness(of: room)
  }

  /// Ends a participant's PeerConnection; the participant stays.
  /// - Parameter reason: for its own `hangup`; nil for none.
  mutating func unpublish(_ room: PluginID, _ id: PluginID, reason: String?) {
    guard let participant = rooms[room]?[id], participant.publication != nil else { return }
    endPublication(of: id, in: room)
    if let reason { tell(participant.handle, core: "hangup", reason: reason) }
    tell(room: room, except: id, ["videoroom": "event", "room": room.tree, "unpublished": id.tree])
  }

  private mutating func endPublication(of id: PluginID, in room: PluginID) {
    guard let publication = rooms[room]?[id]?.publication else { return }
    rooms[room]?.change(id) { $0.publication = nil }
    drop(publication.peer, of: room)
    hideStreams(of: id, in: room) { _ in true }
  }

  /// Forgets a peer, and ends it.
  mutating func drop(_ peer: PeerID, of room: PluginID) {
    guard peers.removeValue(forKey: peer) != nil else { return }
    rooms[room]?.peers -= 1
    media(.hangUp(peer))
  }
}
