import MediaModel

@testable import Forwarding

/// A room around a real SFU: publishers, and subscribers whose slots are pinned.
extension SimulatedCall {
  static func room(seed: UInt64 = 1, workers: Int = 1, _ conditions: NetworkConditions = .init()) -> SimulatedCall {
    let call = SimulatedCall(seed: seed, conditions, workers: workers)
    call.filling = .pinned
    return call
  }

  func publish(_ sources: [TrackSource] = [.microphone, .camera], of name: CallID = SimulatedCall.name) -> TestPeer {
    join(sources, audioSlots: 0, videoSlots: 0, of: name)
  }

  /// - Parameter videoSlots: come after the slots for audio.
  func subscribe(audioSlots: Int = 0, videoSlots: Int = 1, of name: CallID = SimulatedCall.name) -> TestPeer {
    join([], audioSlots: audioSlots, videoSlots: videoSlots, of: name)
  }

  func pin(_ viewer: TestPeer, _ pins: SlotPin...) { command(.pin(viewer.configuration.peer, pins)) }
}

extension TestPeer {
  /// A pin of one of its slots to another peer's track.
  func slot(
    _ slot: Int, shows publisher: TestPeer, _ track: Int = 0, isPaused: Bool = false,
    ceiling: LayerCeiling = LayerCeiling()
  ) -> SlotPin {
    SlotPin(
      mid: configuration.slots[slot].mid,
      source: TrackPin(peer: publisher.configuration.peer, track: publisher.configuration.tracks[track].track),
      isPaused: isPaused, ceiling: ceiling)
  }

  /// The packets that arrived in one of its slots.
  func received(_ slot: Int) -> ReceivedStream { stream(configuration.slots[slot].mid) }
}
