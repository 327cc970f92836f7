import Contract
import MediaModel
import Octets
import Recording
import SFrame

/// A recording whose statement is good and whose key this device has: its reels, from the pages of the manifest. A value: pages come in, what they are worth
/// comes out.
struct OpenedRecording: Sendable {
  let statement: SignedStatement
  let key: RecordingKey
  /// The device that signed the statement.
  let starter: RecordingSigner
  private let signers: KnownSigners
  private let remembered: [UInt32: ReelHead]
  private var people: [UInt32: RecordedPerson] = [:]
  private var indexes: [UInt32: ReelIndex] = [:]
  private var keys: [UInt32: ReelReader.Keys] = [:]
  private var witnesses: [UInt32: [(head: ReelHead, at: Timestamp)]] = [:]
  private var notes: [UInt32: [UInt8]] = [:]
  private var noteCount: UInt32 = 0
  /// The segments of all reels.
  private var segmentCount = 0

  /// More reels than a call has participants.
  static let maximumReels = 4_096
  /// More segments than a call of a thousand has in five hours: a server that lists without end must not fill the memory.
  static let maximumSegments = 1 << 21

  /// Opens the first page. `granters` are devices that the manifest only names, from `devices/list`.
  init(
    _ manifest: RecordingManifest, id: RecordingID, signers: KnownSigners, granters: KnownKeys = KnownKeys(),
    remembered: [SeenReel] = [], now: Timestamp
  ) throws(UnreadableRecording) {
    let stated = manifest.statement
    guard stated.id == id else { throw .anotherRecording }
    guard manifest.people.count <= Self.maximumReels else { throw .malformed }
    let named = manifest.people.first { $0.user == stated.by.user && $0.device == stated.by.device }
    guard let starter = named.flatMap(signers.signer) else { throw .notSigned }
    self.starter = starter
    statement = try SignedStatement(checking: stated, by: starter, now: now)
    key = try Self.key(manifest, of: statement, starter: starter, signers: signers, granters: granters)
    self.signers = signers
    self.remembered = Dictionary(
      remembered.compactMap { seen in
        SegmentHash(seen.head).map { (seen.reel, ReelHead(segments: seen.segments, hash: $0)) }
      }
    ) { first, _ in first }
    for person in manifest.people where people[person.participant] == nil { people[person.participant] = person }
    for sealed in manifest.reelKeys { take(sealed) }
    for handedOut in manifest.trackKeys ?? [] { take(handedOut) }
    try add(manifest)
  }

  /// The first grant that counts: the server may have added others.
  private static func key(
    _ manifest: RecordingManifest, of statement: SignedStatement, starter: RecordingSigner, signers: KnownSigners,
    granters: KnownKeys
  ) throws(UnreadableRecording) -> RecordingKey {
    for grant in manifest.grants.prefix(64) {
      let signer =
        grant.from == starter.address
        ? starter : signers.signer(grant.from) ?? granters.keys(of: grant.from).compactMap(signers.signer).first
      guard let signer else { continue }
      if let key = try? RecordingKey(opening: grant, of: statement, as: signers.identity, from: signer) { return key }
    }
    throw .noKey
  }

  /// A reel's person, if its signatures count.
  private func signer(of reel: UInt32) -> RecordingSigner? {
    guard let person = people[reel] else { return nil }
    // A reel that a device writes by itself is the starter's.
    if statement.statement.kind != .call {
      return person.user == starter.address.user && person.device == starter.address.device ? starter : nil
    }
    return signers.signer(person)
  }

  private mutating func take(_ sealed: RecordingManifest.Key) {
    guard statement.statement.kind != .call, keys[sealed.reel] == nil, let signer = signer(of: sealed.reel),
      let chain = ReelChain(opening: sealed, of: statement, with: key, from: signer)
    else { return }
    keys[sealed.reel] = .chain(chain)
  }

  private mutating func take(_ handedOut: TrackKeys) {
    let reel = handedOut.participant
    guard statement.statement.kind == .call, let person = people[reel], let joinId = person.joinId,
      let signer = signer(of: reel)
    else { return }
    let scope = TrackKeyScope(
      epoch: handedOut.epoch, listHash: handedOut.listHash.bytes, participant: reel,
      fingerprint: signer.fingerprint, joinId: joinId.bytes)
    guard let opened = handedOut.opened(scope, of: statement, with: key, from: signer) else { return }
    var secrets: [ReelReader.TrackKeyPlace: FrameSecret] = [:]
    if case .tracks(_, let known) = keys[reel] { secrets = known }
    for (n, secret) in opened {
      let place = ReelReader.TrackKeyPlace(n: n, epoch: handedOut.epoch)
      if secrets[place] == nil { secrets[place] = secret }
    }
    keys[reel] = .tracks(reel, secrets)
  }

  /// Adds the segments, witnesses and notes of a page; the first one was added by `init`.
  mutating func add(_ manifest: RecordingManifest) throws(UnreadableRecording) {
    guard manifest.statement == statement.statement else { throw .anotherRecording }
    guard manifest.reels.count <= Self.maximumReels else { throw .malformed }
    for page in manifest.reels {
      let reel = page.participant
      var index = indexes[reel] ?? ReelIndex(recording: statement.id, reel: reel)
      if page.segments.isEmpty, indexes[reel] != nil { continue }
      // A reel that grew between two pages is read to the end of the first: what is beyond is asked for the next time.
      if manifest.state == .running || manifest.state == .silent, Int(page.from) > index.entries.count { continue }
      segmentCount += page.segments.count
      guard segmentCount <= Self.maximumSegments, (try? index.append(page)) != nil else { throw .malformed }
      indexes[reel] = index
    }
    for witness in manifest.witnesses.prefix(Self.maximumReels) {
      guard let signer = signer(of: witness.reel), let head = witness.head(of: statement, from: signer) else {
        continue
      }
      witnesses[witness.reel, default: []].append((head, witness.at))
    }
    addNotes(manifest)
  }

  /// Adds the notes of a page.
  mutating func addNotes(_ manifest: RecordingManifest) {
    for note in manifest.notes.prefix(Int(RecordingNote.maximumCount)) where notes[note.number] == nil {
      noteCount = max(noteCount, min(note.number, RecordingNote.maximumCount - 1) + 1)
      notes[note.number] = note.opened(of: statement, with: key, from: starter)
    }
  }

  /// The first segment of the next page; nil if the last one was the end.
  /// - Parameter size: how many segments of a reel a full page has.
  func nextPage(after manifest: RecordingManifest, size: Int) -> Int? {
    let isFull = manifest.reels.contains { !$0.segments.isEmpty && $0.segments.count % size == 0 }
    guard isFull, let longest = indexes.values.map(\.entries.count).max(), longest < ReelIndex.capacity else {
      return nil
    }
    return longest
  }

  /// The contents of the notes by their numbers, as JSON, and the numbers that the server has left out or changed.
  var openedNotes: (notes: [Int: [UInt8]], missing: [Int]) {
    let opened = Dictionary(notes.map { (Int($0.key), $0.value) }) { first, _ in first }
    return (opened, (0..<Int(noteCount)).filter { opened[$0] == nil })
  }

  /// The manifest's word about each reel, and its reader; nil for one that has no key.
  var reels: [(info: ReelInfo, reader: ReelReader?)] {
    indexes.keys.sorted().map { number in
      let index = indexes[number]!
      let reader = keys[number].map {
        ReelReader(index, keys: $0, witnesses: witnesses[number] ?? [], remembered: remembered[number])
      }
      let person = people[number]
      var info = ReelInfo(
        number: number, user: person?.user.text ?? "", device: person?.device.text ?? "", name: person?.name,
        trust: signer(of: number)?.trust ?? .new, segments: index.entries.count, knownSegments: index.entries.count,
        missing: [], refused: [:], state: .closed, isEnded: false, start: index.entries.first?.start ?? 0,
        end: index.entries.last?.start ?? 0)
      if let reader { info.update(from: reader) }
      return (info, reader)
    }
  }
}

extension ReelInfo {
  /// Takes over what was found out about the reel.
  mutating func update(from reader: ReelReader) {
    segments = reader.count
    knownSegments = max(reader.count, reader.knownCount)
    missing = reader.missing.sorted()
    refused = reader.refused
    state = State(reader.finding)
    isEnded = reader.ending.map { $0.reason == .complete } ?? false
    start = reader.start
    end = max(reader.start, reader.end)
  }
}
