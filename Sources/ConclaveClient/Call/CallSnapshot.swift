import Contract
import MediaModel

/// A call at one moment, for a user interface.
public struct CallSnapshot: Sendable, Hashable {
  /// Whether the call rings, goes on or is over.
  public enum Phase: String, Sendable { case ringing, active, ended }

  /// Whether the call was started with video.
  public enum Media: String, Sendable { case audio, video }

  /// A user of the call.
  public struct Member: Sendable, Hashable {
    /// The user's id.
    public var user: String
    /// The name to show, if the server knows one.
    public var name: String?
    /// `ringing`, `joined`, `left`, `declined`, `missed`, `cancelled` or `disconnected`.
    public var state: String
    /// The user's devices that have joined.
    public var participants: [Participant]
    /// Whether the user joined by a link.
    public var isByLink: Bool
    /// Whether this is a guest: somebody without an account, who came by a link and typed a name. Mark the name wherever it is shown. The server cannot hide
    /// this, because it is part of the id.
    public var isGuest: Bool { UserID(unchecked: user).isGuest }
  }

  /// A device that has joined.
  public struct Participant: Sendable, Hashable {
    /// Its number in this call.
    public var number: UInt32
    /// The device's id.
    public var device: String
    /// Whether its media flows.
    public var isConnected: Bool
    /// Whether it has put the call on hold.
    public var isHeld: Bool
    /// The tracks that it sends.
    public var tracks: [Track]
  }

  /// A stream that a participant sends.
  public struct Track: Sendable, Hashable {
    /// `participant.n`.
    public var id: String
    /// The source of its media.
    public var source: MediaSource
    /// Whether the sender has muted it.
    public var isMuted: Bool
  }

  /// The call's id.
  public var id: String
  /// Whether it rings, goes on or is over.
  public var phase: Phase
  /// Whether it was started with video.
  public var media: Media
  /// When somebody other than the initiator joined first, in milliseconds since 1970: a call's duration counts from then. nil
  /// before.
  public var answeredAt: Int64?
  /// The user who started it and may end it for all.
  public var initiator: String
  /// All users of the call.
  public var members: [Member]
  /// Participants who speak: the dominant speaker, then the loudest first.
  public var speakers: [UInt32]
  /// Every device that may hear this one, from the moment that its list is used until a list without it is used, and the devices in the call that cannot hear
  /// it yet. Show a tile for each.
  public var devices: [ListedDevice] = []
  /// Why this device sends nothing; empty if it does, or has no key yet.
  public var silence: [SilenceCause] = []
  /// No member's device has signed this user's invitation, so the app's service lets people in. Show it.
  public var isLetInByService = false
  /// The user who started the call, once members' signatures have shown it. Keep it with the call's id for `CallClient.rejoin`.
  public var root: String?
  /// The recording of the call: who records, who has agreed, and what this device hands out; nil if there is none. Show it.
  public var recording: CallRecordingInfo?
  /// Whether the others have proven that they share the key.
  public var confirmation = ConfirmationState.confirming

  /// Users whose name another user has, too, or looks like another user's, or mixes scripts. Show their ids, or one can pass for the other. Names come from the
  /// server: an app that remembers the name of a known person shows that one until the person accepts another.
  public var usersToTellApart: [String] {
    let named = members.filter { $0.name != nil }
    let alike = Dictionary(grouping: named) { NameSkeleton($0.name ?? "") }.values.filter { $0.count > 1 }.joined()
    let doubtful = named.filter { NameSkeleton.isDoubtful($0.name ?? "") }
    return Set((alike + doubtful).map(\.user)).sorted()
  }

  init(_ state: CallState, speakers: [ParticipantNumber]) {
    id = state.id.text
    phase = Phase(rawValue: state.state.rawValue) ?? .active
    media = Media(rawValue: state.media.rawValue) ?? .video
    answeredAt = state.answeredAt?.milliseconds
    initiator = state.initiator.text
    members = state.members.map(Member.init)
    self.speakers = speakers
  }
}

extension CallSnapshot.Member {
  init(_ member: MemberState) {
    user = member.user.text
    name = member.name
    state = member.state.rawValue
    participants = member.participants.map(CallSnapshot.Participant.init)
    isByLink = member.link == true
  }
}

extension CallSnapshot.Participant {
  init(_ participant: ParticipantState) {
    number = participant.participant
    device = participant.device.text
    isConnected = participant.connected
    isHeld = participant.held
    tracks = participant.tracks.map {
      CallSnapshot.Track(id: $0.track.description, source: MediaSource($0.source), isMuted: $0.muted)
    }
  }
}
