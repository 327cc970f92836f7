import CallMessages
import struct ConclaveClient.Epoch
import Contract
import Crypto
import Foundation
import MediaModel

@testable import ConclaveClient
import Octets
import Testing
@testable import SFrame

/// Rows about frames and messages.
extension Lies {
  static let frames: [Int: @Sendable (UInt64) throws -> Aftermath] = [
    56: foreignKID, 57: farCounter, 58: foreignSlot, 59: lateSlots, 60: reflected, 61: twice, 62: foreignMessage,
    63: privateToAll, 64: resealed, 65: otherEpochSameByte,
  ]

  private static func at(_ milliseconds: UInt64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

  private static func frame(_ device: SimDevice, _ scene: Scene) throws -> [UInt8] {
    try #require(device.stay?.makeFrame(scene.world.audit)).bytes
  }

  private static func track(_ device: SimDevice) throws -> TrackID {
    TrackID(participant: try #require(device.stay).participant, index: 1)
  }

  /// A frame that a member forges with the group's secret, under another member's key.
  private static func forge(_ scene: Scene, as victim: SimDevice, counter: UInt64) throws -> [UInt8] {
    let keys = try #require(victim.stay).keys
    let epoch = try #require(keys.current.flatMap { keys.epochs[$0] })
    let key = try #require(keys.own.sendingKey(epoch))
    var context = SenderContext(
      suite: Epoch.suite,
      keyID: FrameKeyID(participant: key.participant, track: 1, epoch: key.epoch).rawValue, baseKey: key.baseKey,
      startingAt: counter)
    return try context.encrypt([6, 6, 6])
  }

  private static func foreignKID(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    let carols = try #require(scene.carol.stay).cipher
    carols.assign(["0": try track(scene.alice), "1": try track(scene.bob)], now: at(0))
    // Alice plays Mallory: Bob's KID in Alice's slot, with a counter far ahead.
    let forged = try forge(scene, as: scene.bob, counter: 1 << 40)
    #expect(throws: FrameCipherError.otherTrack) { try carols.open(forged, from: .slot("0", now: at(9_000))) }
    // Bob is still heard.
    let honest = try frame(scene.bob, scene)
    #expect(throws: Never.self) { try carols.open(honest, from: .slot("1", now: at(9_000))) }
    return Aftermath(scene, warned: [])
  }

  private static func farCounter(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    let carols = try #require(scene.carol.stay).cipher
    carols.assign(["0": try track(scene.bob)], now: at(0))
    let first = try frame(scene.bob, scene)
    #expect(throws: Never.self) { try carols.open(first, from: .slot("0", now: at(1))) }
    carols.assign(["0": try track(scene.alice), "1": try track(scene.bob)], now: at(100))
    let forged = try forge(scene, as: scene.bob, counter: 1 << 47)
    #expect(throws: FrameCipherError.replayed) { try carols.open(forged, from: .slot("0", now: at(200))) }
    for _ in 0..<70 {
      let next = try frame(scene.bob, scene)
      #expect(throws: Never.self) { try carols.open(next, from: .slot("1", now: at(300))) }
    }
    return Aftermath(scene, warned: [])
  }

  private static func foreignSlot(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    let carols = try #require(scene.carol.stay).cipher
    carols.assign(["0": try track(scene.alice)], now: at(0))
    let bobs = try frame(scene.bob, scene)
    #expect(throws: FrameCipherError.otherTrack) { try carols.open(bobs, from: .slot("0", now: at(1))) }
    // The participant shown for a slot is its track's, whatever else the server says.
    let slot = Slot(SlotAssignment(mid: "0", track: try track(scene.alice), source: .microphone))
    var lie = slot
    lie.participant = 77
    #expect(ReceivedTrack(lie).participant == slot.track.participant)
    return Aftermath(scene, warned: [])
  }

  private static func lateSlots(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    let carols = try #require(scene.carol.stay).cipher
    carols.assign(["0": try track(scene.alice)], now: at(0))
    // Bob's frames come before the event about his slot and are held. Alice's come after it: her track counts for
    // another second.
    var held = WaitingFrames<[UInt8]>()
    for number in 0..<25 {
      let frame = try frame(scene.bob, scene)
      #expect(throws: FrameCipherError.otherTrack) {
        try carols.open(frame, from: .slot("0", now: at(UInt64(number) * 20)))
      }
      held.keep(frame, now: UInt64(number) * 20_000_000)
    }
    carols.assign(["0": try track(scene.bob)], now: at(500))
    let waited = held.take(now: 500_000_000)
    #expect(waited.count == 25)
    for frame in waited {
      #expect(throws: Never.self) { try carols.open(frame.frame, from: .slot("0", now: at(500))) }
    }
    for number in 0..<25 {
      let late = try frame(scene.alice, scene)
      #expect(throws: Never.self) { try carols.open(late, from: .slot("0", now: at(500 + UInt64(number) * 20))) }
    }
    return Aftermath(scene, warned: [])
  }

  private static func reflected(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    let bobs = try #require(scene.bob.stay).cipher
    let own = try frame(scene.bob, scene)
    #expect(throws: FrameCipherError.unknownKey) { try bobs.openWhereItBelongs(own) }
    let message = try bobs.seal([1], track: 0, metadata: Array("message".utf8))
    #expect(throws: FrameCipherError.unknownKey) {
      try bobs.openWhereItBelongs(message, metadata: Array("message".utf8))
    }
    return Aftermath(scene, warned: [])
  }

  private static func twice(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    let carols = try #require(scene.carol.stay).cipher
    carols.assign(["0": try track(scene.bob), "1": try track(scene.bob)], now: at(0))
    let frame = try frame(scene.bob, scene)
    #expect(throws: Never.self) { try carols.open(frame, from: .slot("0", now: at(1))) }
    for mid in ["0", "1"] {
      #expect(throws: FrameCipherError.replayed) { try carols.open(frame, from: .slot(mid, now: at(2))) }
    }
    return Aftermath(scene, warned: [])
  }

  // MARK: messages

  private static func open(_ message: CallMessage, by device: SimDevice) throws -> CallClient.OpenedMessage? {
    let stay = try #require(device.stay)
    return CallClient.open(message, stay.cipher, &stay.keys)
  }

  private static func foreignMessage(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let text = MessagePadding.padded([1])
    let sealed = try #require(scene.alice.stay).cipher.seal(text, track: 0, metadata: Array("message".utf8))
    let (alice, bob) = (try track(scene.alice).participant, try track(scene.bob).participant)
    func message(_ from: ParticipantNumber, _ bytes: [UInt8]) -> CallMessage {
      CallMessage(from: from, body: Base64Bytes(bytes))
    }
    #expect(try open(message(bob, [0] + sealed), by: scene.carol) == .dropped)
    #expect(try open(message(alice, [2] + sealed), by: scene.carol) == .dropped)
    #expect(try open(message(alice, []), by: scene.carol) == .dropped)
    // A frame of the microphone is not a message.
    #expect(try open(message(alice, [0] + frame(scene.alice, scene)), by: scene.carol) == .dropped)
    #expect(try open(message(alice, [0] + sealed), by: scene.carol) == .text([1], isPrivate: false))
    return Aftermath(scene, warned: [])
  }

  /// A private message of Alice to these users.
  private static func privately(_ scene: Scene, to recipients: [SimDevice]) throws -> (CallMessage, [UInt8]) {
    let stay = try #require(scene.alice.stay)
    let numbers = try recipients.map { try track($0).participant }
    let made = stay.keys.privateContent(Array("for you".utf8), to: numbers)
    let content = try #require(made)
    return (try wrap(content, by: scene.alice), content)
  }

  private static func wrap(_ content: [UInt8], by device: SimDevice) throws -> CallMessage {
    let stay = try #require(device.stay)
    let sealed = try stay.cipher.seal(content, track: 0, metadata: Array("private".utf8))
    return CallMessage(from: stay.participant, body: Base64Bytes([1] + sealed))
  }

  private static func privateToAll(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (message, _) = try privately(scene, to: [scene.bob])
    #expect(try open(message, by: scene.carol) == .dropped)
    #expect(try open(message, by: scene.bob) == .text(Array("for you".utf8), isPrivate: true))
    return Aftermath(scene, warned: [])
  }

  private static func resealed(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (message, content) = try privately(scene, to: [scene.bob, scene.carol])
    #expect(try open(message, by: scene.bob) == .text(Array("for you".utf8), isPrivate: true))
    // Bob knows the inner key, and puts another text under Alice's wrap for Carol; a forger of frames can send it as
    // Alice.
    var other = content
    other[other.count - 20] ^= 1
    #expect(try open(wrap(other, by: scene.alice), by: scene.carol) == .dropped)
    // Sent as his own, it does not count as Alice's either.
    #expect(try open(wrap(content, by: scene.bob), by: scene.carol) == .dropped)
    // With other recipients than those named.
    var fewer = content
    fewer[0] = 1
    #expect(try open(wrap(fewer, by: scene.alice), by: scene.carol) == .dropped)
    #expect(try open(message, by: scene.carol) == .text(Array("for you".utf8), isPrivate: true))
    return Aftermath(scene, warned: [])
  }

  private static func otherEpochSameByte(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let carols = try #require(scene.carol.stay)
    let epoch = try #require(carols.cipher.sendingEpoch)
    let old = EpochKeys(
      epoch: epoch + 256,
      derivation: SenderDerivation(
        call: scene.call, epoch: epoch + 256, listHash: [], secret: SymmetricKey(size: .bits256)),
      senders: [try track(scene.bob).participant: SenderIdentity(fingerprint: [], joinId: [])])
    let honest = try frame(scene.bob, scene)
    let copy = FrameCipher()
    for keys in carols.installed where keys.epoch == epoch { copy.install(keys) }
    copy.install(old)
    #expect(copy.epochs == [epoch + 256])
    #expect(throws: FrameCipherError.notAuthentic) { try copy.openWhereItBelongs(honest) }
    return Aftermath(scene, warned: [])
  }
}
