import CallMessages
import Contract
import MediaModel

/// The words by which people joined a call, and the devices that signed them (protocol section 5.13). A word outlives its signer, and the member it is for.
struct Admissions {
  /// The user or the link that a word lets in.
  typealias Subject = StoredWord.Subject

  /// Links that are kept: those that are valid, and those by which somebody joined.
  static let maximumLinks = 64

  private var words: [Subject: StoredWord] = [:]
  private var signers: [Base64Bytes: Signer] = [:]
  /// Not stored yet.
  private var changed: Set<Subject> = []
  private var changedSigners: Set<Base64Bytes> = []
  private var dropped: Set<Subject> = []
  private var droppedSigners: Set<Base64Bytes> = []

  init() {}

  init(restoring words: [StoredWord], _ signers: [Signer]) {
    for word in words { self.words[word.subject] = word }
    for signer in signers { self.signers[signer.fingerprint] = signer }
  }

  // MARK: letting in

  /// A user joined by this word; it replaces an earlier one.
  mutating func admit(_ word: Admission, by signer: Signer?) {
    guard word.user != nil else { return }
    keep(StoredWord(admission: word), signer)
  }

  /// - Throws: `request.invalid` for a link that already exists, `call.full` if there are too many.
  mutating func makeLink(_ word: Admission, until: Timestamp, by signer: Signer, now: Timestamp) throws(RequestError) {
    let stored = StoredWord(admission: word, validUntil: until)
    guard words[stored.subject] == nil else {
      throw RequestError(.requestInvalid, "each link has a new key", field: "admission.link")
    }
    dropLinks { $0.validUntil ?? now <= now }
    guard linkCount < Self.maximumLinks else {
      throw RequestError(.callFull, "a call has at most \(Self.maximumLinks) links: revoke them first")
    }
    keep(stored, signer)
  }

  /// Closes all current links. The words of the people who joined by them stay.
  mutating func revokeLinks() {
    dropLinks { _ in true }
    for (subject, word) in words where word.admission.user == nil && word.validUntil != nil {
      words[subject]?.validUntil = nil
      changed.insert(subject)
    }
  }

  /// Whether there is a link of this key by which people may join.
  func isOpen(_ link: Base64Bytes, now: Timestamp) -> Bool {
    guard let validUntil = words[.link(link)]?.validUntil else { return false }
    return now < validUntil
  }

  /// Whether guests who come by the link wait until a member admits them.
  func waits(_ link: Base64Bytes?) -> Bool { link.flatMap { words[.link($0)]?.admission.waits } == true }

  func word(for user: UserID) -> Admission? { words[.user(user)]?.admission }

  private mutating func keep(_ word: StoredWord, _ signer: Signer?) {
    let old = words.updateValue(word, forKey: word.subject)
    changed.insert(word.subject)
    dropped.remove(word.subject)
    if let signer, signers.updateValue(signer, forKey: signer.fingerprint) != signer {
      changedSigners.insert(signer.fingerprint)
      droppedSigners.remove(signer.fingerprint)
    }
    if let old { dropSigner(of: old) }
  }

  private var linkCount: Int { words.keys.count { if case .link = $0 { true } else { false } } }

  /// Drops the links that `isOver` selects and by which nobody joined.
  private mutating func dropLinks(where isOver: (StoredWord) -> Bool) {
    let used = Set(words.values.compactMap { $0.admission.user == nil ? nil : $0.admission.link })
    for (subject, word) in words {
      guard case .link(let link) = subject, !used.contains(link), isOver(word) else { continue }
      words[subject] = nil
      changed.remove(subject)
      dropped.insert(subject)
      dropSigner(of: word)
    }
  }

  /// Otherwise a member could fill the memory with keys of devices that it makes.
  private mutating func dropSigner(of word: StoredWord) {
    guard let fingerprint = word.admission.signer, signers[fingerprint] != nil,
      !words.values.contains(where: { $0.admission.signer == fingerprint })
    else { return }
    signers[fingerprint] = nil
    changedSigners.remove(fingerprint)
    droppedSigners.insert(fingerprint)
  }

  // MARK: what lists need

  /// The words for the users, for the users and links that these are signed by, and so on.
  func needed(by users: some Sequence<UserID>) -> [Subject: Admission] { needed(by: users.map(Subject.user)) }

  /// The words for a link, as those for users.
  func needed(by link: Base64Bytes) -> [Subject: Admission] { needed(by: [.link(link)]) }

  private func needed(by subjects: [Subject]) -> [Subject: Admission] {
    var needed: [Subject: Admission] = [:]
    var open = subjects
    while let subject = open.popLast() {
      guard needed[subject] == nil, let word = words[subject]?.admission else { continue }
      needed[subject] = word
      if word.user != nil, let link = word.link { open.append(.link(link)) }
      if let signer = word.signer.flatMap({ signers[$0] }) { open.append(.user(signer.user)) }
    }
    return needed
  }

  /// The words as they are sent, with the devices that signed them.
  /// - Parameter listed: fingerprints whose devices the receiver gets as well.
  func shown(_ words: [Subject: Admission], besides listed: Set<Base64Bytes> = []) -> (
    admissions: [Admission]?, signers: [Signer]?
  ) {
    guard !words.isEmpty else { return (nil, nil) }
    let sorted = words.sorted { $0.key < $1.key }.map(\.value)
    let signing = Set(sorted.compactMap(\.signer)).subtracting(listed)
    let absent = signing.compactMap { signers[$0] }.sorted {
      Device(user: $0.user, device: $0.device) < Device(user: $1.user, device: $1.device)
    }
    return (sorted, absent.isEmpty ? nil : absent)
  }

  // MARK: storing

  mutating func takeUnstored(of call: CallID, into changes: inout [StoreChange]) {
    guard !(changed.isEmpty && changedSigners.isEmpty && dropped.isEmpty && droppedSigners.isEmpty) else { return }
    changes += changedSigners.sorted(by: <).compactMap { signers[$0] }.map { .signer(call, $0) }
    changes += changed.sorted().compactMap { words[$0] }.map { .word(call, $0) }
    changes += dropped.sorted().map { .wordGone(call, $0) }
    changes += droppedSigners.sorted(by: <).map { .signerGone(call, $0) }
    changed = []
    changedSigners = []
    dropped = []
    droppedSigners = []
  }

  mutating func countAsUnstored() {
    changed = Set(words.keys)
    changedSigners = Set(signers.keys)
    dropped = []
    droppedSigners = []
  }
}

extension Base64Bytes {
  fileprivate static func < (one: Base64Bytes, other: Base64Bytes) -> Bool {
    one.bytes.lexicographicallyPrecedes(other.bytes)
  }
}
