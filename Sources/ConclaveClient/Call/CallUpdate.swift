/// An update from a call to its app. An app that reads late gets the latest of each kind of state, each warning once, and of everything else the newest 1,024
/// updates or 4 MiB. No flood displaces a warning, a silence or the end.
public enum CallUpdate: Sendable, Hashable {
  /// Members, tracks, speakers or tiles changed: `JoinedCall.snapshot` has the current state.
  case changed
  /// The content of all slots now.
  case slots([ReceivedTrack])
  /// The server would fill this many slots. The next offer may add the missing ones.
  case need(audio: Int, video: Int)
  /// The digits to compare by voice, on all screens the same.
  case code(String)
  /// Frames are now encrypted under a new key: video begins with a key frame.
  case keyChanged(epoch: UInt32)
  /// The server did something that an honest one would not, and this device did not follow. `brokenHistory` must be shown until the call
  /// is over or rejoined.
  case warning(KeyRefusal)
  /// Nothing is sent any longer for these reasons; empty: sending again. Show them.
  case silence([SilenceCause])
  /// Whether the others have proven that they share the key and the history of lists. Show it; nothing depends on it.
  case confirmation(ConfirmationState)
  /// Whether no member's device has signed this user's invitation. Then the app's service lets people in, and this device considers nobody uninvited. Show it
  /// for as long as it lasts.
  case letInByService(Bool)
  /// The guests who wait until a member admits or refuses them: all of them, whenever they change. Each has proven that it has a link of this call.
  case guestsWaiting([WaitingGuest])
  /// This participant has a key from this device but does not open it, because its user has to trust this device first.
  case keyWaiting(participant: UInt32)
  /// Something about a device's keys: show it, and let the person decide (`JoinedCall.trust`).
  case keyWarning(KeyWarning)
  /// The path of the media is lost: make an offer with an ICE restart on the current PeerConnection.
  case restartMedia
  /// The server has lost this participant, which is returning. The PeerConnection is of no use any longer.
  case rejoining
  /// It is back under another number: open a new PeerConnection with `JoinedCall.iceServers` and offer. `cipher` has been updated
  /// already.
  case rejoined(participant: UInt32)
  /// A message of another participant, according to its key and to the server. A private one is proven to come from that device, and only its recipients can
  /// read it.
  case message(from: UInt32, body: [UInt8], isPrivate: Bool)
  /// The simulcast layers of an own track, `participant.n`, that receivers want, lowest first: stop encoding those that are not active, and begin
  /// again immediately with those that are. A new PeerConnection begins with all of them.
  case wanted(track: String, layers: [SimulcastLayer])
  /// The recording of the call, whenever something about it changes; nil when it is over. Show it, and ask the person if there is no answer yet.
  case recording(CallRecordingInfo?)
  /// A request to record that is not shown to the person, because the server or a member lies about it: say so.
  case recordingRefused(RecordingProblem)
  /// How well this device is served: 0 (bad) to 4, and the rate in bit/s.
  case quality(level: Int, bitrate: Int)
  /// The call is over for this device: for all, for a reason of protocol section 4 (`ended-by-initiator`, `ended-by-service`, `ended-by-operator`, `all-left`,
  /// `declined`, `no-answer`, `cancelled`, `expired`), or only for this device: `transferred`, `left`, `failed`, or the code with which `rejoin` was refused.
  case ended(reason: String)
}

/// A simulcast layer of an own track.
public struct SimulcastLayer: Sendable, Hashable {
  /// The layer's id in the offer (a=rid).
  public var rid: String
  /// At least one receiver gets it, or waits for it.
  public var isActive: Bool
}

/// A track that the server sends in one of the offered slots.
public struct ReceivedTrack: Sendable, Hashable {
  /// The slot: the m-line's mid.
  public var mid: String
  /// The track: `participant.n`.
  public var track: String
  /// The sending participant: frames of any other do not open in this slot.
  public var participant: UInt32
  /// The source of its media.
  public var source: MediaSource
  /// For a video: whether less arrives than `JoinedCall.receive` requests. Show it, so that nobody takes it for a
  /// fault.
  public var picture: ReceivedPicture
}

/// How much of a video arrives.
public enum ReceivedPicture: Sendable, Hashable {
  /// Everything that is wished.
  case whole
  /// A lower resolution or frame rate, for lack of bandwidth.
  case lower
  /// Nothing for now, for lack of bandwidth.
  case paused
}

/// An m-line of an offer that sends.
public struct OfferedTrack: Sendable, Hashable {
  /// The m-line's mid.
  public var mid: String
  /// The source of its media.
  public var source: MediaSource
  /// For a screen: whether it ends the screen of another participant.
  public var replacesScreen: Bool

  /// An m-line and its source.
  public init(mid: String, source: MediaSource, replacesScreen: Bool = false) {
    self.mid = mid
    self.source = source
    self.replacesScreen = replacesScreen
  }
}

/// The server's answer to an offer.
public struct AnsweredOffer: Sendable, Hashable {
  /// The SDP answer.
  public var sdp: String
  /// The track, `participant.n`, that each sending m-line became.
  public var tracks: [String: String]
  /// The content of all slots.
  public var receive: [ReceivedTrack]
}
