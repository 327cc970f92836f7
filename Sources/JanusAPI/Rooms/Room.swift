import MediaModel

/// A room: its settings and the people in it.
struct Room: Sendable {
  let id: PluginID
  /// From the configuration: it never ends.
  let isPreset: Bool
  var settings: RoomSettings
  private(set) var participants: [PluginID: RoomParticipant] = [:]
  /// The handles that subscribe.
  var subscribers: Set<UInt64> = []
  /// Publishers and subscribers with a PeerConnection.
  var peers = 0
  var emptySince: Instant?
  /// A timer for its emptiness runs.
  var hasTimer = false
  /// The speakers as last told.
  var speakers: Set<ParticipantNumber> = []
  private var lastNumber: ParticipantNumber = 0

  init(id: PluginID, isPreset: Bool, settings: RoomSettings, now: Instant) {
    self.id = id
    self.isPreset = isPreset
    self.settings = settings
    emptySince = now
  }

  /// Never the id of a call, because those are UUIDs.
  var call: CallID { CallID(unchecked: Self.callPrefix + id.description) }
  static var callPrefix: String { "room~" }

  var isEmpty: Bool { participants.isEmpty && subscribers.isEmpty }

  /// In the order in which they joined.
  var ordered: [RoomParticipant] { participants.values.sorted { $0.number < $1.number } }

  subscript(id: PluginID) -> RoomParticipant? { participants[id] }

  mutating func add(_ make: (ParticipantNumber) -> RoomParticipant) {
    lastNumber += 1
    let participant = make(lastNumber)
    participants[participant.id] = participant
  }

  mutating func change(_ id: PluginID, _ body: (inout RoomParticipant) -> Void) {
    guard var participant = participants.removeValue(forKey: id) else { return }
    body(&participant)
    participants[id] = participant
  }

  mutating func remove(_ id: PluginID) { participants[id] = nil }

  /// The participants that publish, and those whose offer is being answered.
  var publisherCount: Int { participants.values.count { $0.publication != nil } }

  func participant(number: ParticipantNumber) -> RoomParticipant? {
    participants.values.first { $0.number == number }
  }

  func description(of participant: RoomParticipant) -> JSONObject {
    var object: JSONObject = ["id": participant.id.tree]
    object.add("display", participant.display.map { .text($0) })
    object.add("metadata", participant.metadata)
    return object
  }

  /// An entry of `publishers`.
  func feed(_ participant: RoomParticipant) -> JSONTree {
    var object = description(of: participant)
    let streams = participant.publication?.streams ?? []
    object.add("audio_codec", streams.first { $0.kind == .audio }.map { .text($0.codec) })
    object.add("video_codec", streams.first { $0.kind == .video }.map { .text($0.codec) })
    if settings.tellsSpeakers { object.add("talking", .boolean(speakers.contains(participant.number))) }
    object.add("streams", .list(streams.map(\.tree)))
    return .object(object)
  }

  /// Those whose media is up, without one of them.
  func feeds(without id: PluginID) -> JSONTree {
    .list(ordered.filter { $0.id != id && $0.isPublic }.map(feed))
  }

  /// An entry of `list`.
  var summary: JSONTree {
    [
      "room": id.tree, "description": .text(settings.description), "pin_required": .boolean(settings.pin != nil),
      "is_private": .boolean(settings.isPrivate), "max_publishers": JSONTree(settings.publishers),
      "bitrate": JSONTree(settings.bitrate), "bitrate_cap": .boolean(settings.capsBitrate), "fir_freq": 0,
      "require_pvtid": .boolean(settings.requiresPrivateID), "require_e2ee": .boolean(settings.requiresEncryption),
      "dummy_publisher": false, "notify_joining": .boolean(settings.tellsJoining), "audiocodec": "opus",
      "videocodec": .text(settings.videoCodecs.joined(separator: ",")), "record": false, "lock_record": false,
      "num_participants": JSONTree(participants.count), "audiolevel_ext": true,
      "audiolevel_event": .boolean(settings.tellsSpeakers), "videoorient_ext": true, "playoutdelay_ext": true,
      "transport_wide_cc_ext": true,
    ]
  }
}
