import CallMessages
import Contract
import MediaModel

/// `receive`: the videos that a participant wishes, and the participants whose sound it does not wish (protocol section
/// 6).
extension Call {
  private static let maximumVideos = 64
  private static let maximumWishes = 1_000
  private static let maximumMuted = 64

  /// Updates the wishes. An omitted field keeps its value, also in each track.
  mutating func receive(_ request: Receive, device: Device, out: inout Outputs) throws(RequestError) {
    let participant = try participant(of: device)
    try check(request)
    var wishes = participant.wishes ?? Wishes(lastN: limits.lastN)
    if let lastN = request.lastN { wishes.lastN = lastN }
    if let muted = request.muted { wishes.muted = Set(muted) }
    for video in request.videos ?? [] {
      var wish = wishes.videos[video.track] ?? Wishes.Video()
      if let height = video.maxHeight { wish.maxHeight = height }
      if let priority = video.priority { wish.priority = priority }
      if let isPaused = video.paused { wish.isPaused = isPaused }
      wishes.videos[video.track] = wish
    }
    if wishes.videos.count > Self.maximumVideos {
      wishes.videos = wishes.videos.filter { self.participant($0.key.participant) != nil }
    }
    guard wishes.videos.count <= Self.maximumWishes else {
      throw RequestError(
        .requestTooLarge, "wishes for at most \(Self.maximumWishes) videos are kept", field: "videos")
    }
    guard wishes != participant.wishes else { return }
    _ = withParticipant(of: device) { $0.wishes = wishes }
    // Before the first offer the media plane does not know the participant; it learns this with the offer.
    if participant.isNegotiated { out.add(.media(.receive(participant.peer, wishes))) }
  }

  /// A track may have just ended; a track of a participant that never existed is a mistake.
  private func check(_ request: Receive) throws(RequestError) {
    if let lastN = request.lastN, !(0...limits.lastN).contains(lastN) {
      throw RequestError(.requestInvalid, "lastN is 0 to \(limits.lastN)", field: "lastN")
    }
    try check(muted: request.muted ?? [])
    let videos = request.videos ?? []
    guard videos.count <= Self.maximumVideos else {
      throw RequestError(.requestInvalid, "at most \(Self.maximumVideos) videos at once", field: "videos")
    }
    for (place, video) in videos.enumerated() {
      guard (1...numbers.last).contains(video.track.participant) else {
        throw RequestError(.trackNotFound, "there was no such track", field: "videos.\(place).track")
      }
      guard video.maxHeight.map({ (1...65_535).contains($0) }) ?? true else {
        throw RequestError(.requestInvalid, "maxHeight is 1 to 65,535", field: "videos.\(place).maxHeight")
      }
      guard video.priority.map({ (-1_000...1_000).contains($0) }) ?? true else {
        throw RequestError(.requestInvalid, "priority is -1,000 to 1,000", field: "videos.\(place).priority")
      }
    }
  }

  private func check(muted: [ParticipantNumber]) throws(RequestError) {
    guard muted.count <= Self.maximumMuted else {
      throw RequestError(.requestInvalid, "at most \(Self.maximumMuted) participants are muted", field: "muted")
    }
    for (place, number) in muted.enumerated() where !(1...numbers.last).contains(number) {
      throw RequestError(.userNotFound, "there was no such participant", field: "muted.\(place)")
    }
  }
}
