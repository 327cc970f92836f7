import CallMessages
import MediaModel

/// One node's end of what it and another node write to each other: mail arrives in order, once, or both ends learn that some is lost.
struct Link<Machines: ClusterMachines> {
  typealias Mail = ClusterMail<Machines>

  enum Output {
    case send(stream: UInt64, Parcel<Machines>.Content)
    case mail(Mail)
    /// Mail may be lost, in one direction or the other.
    case reset
  }

  private struct Kept {
    var letter: Letter<Mail>
    var since: Instant
  }

  private struct Gap {
    var asked: Int
    var next: Instant
  }

  private var stream: UInt64 = 1
  private var outgoing = OutgoingLink()
  private var kept: [Kept] = []
  private var probe: Instant?
  /// The newest stream of the other node; 0 before the first.
  private var theirs: UInt64 = 0
  private var incoming = IncomingLink<Mail>()
  private var gap: Gap?

  mutating func send(_ mail: Mail, now: Instant, _ times: Times) -> [Output] {
    var outputs: [Output] = []
    if kept.count >= IncomingLink<Mail>.capacity { outputs = restart(now: now, times) }
    let letter = outgoing.letter(mail)
    kept.append(Kept(letter: letter, since: now))
    probe = now.advanced(by: times.probe)
    return outputs + [.send(stream: stream, .mail(letter))]
  }

  mutating func take(_ parcel: Parcel<Machines>, now: Instant, _ times: Times) -> [Output] {
    switch parcel.content {
    case .mail(let letter):
      guard parcel.stream >= theirs else { return [] }
      let outputs = follow(parcel.stream)
      switch incoming.take(letter) {
      case .repeated: return outputs
      case .next(let mail):
        gap = nil
        return outputs + mail.map(Output.mail)
      case .gap: return outputs + notice(now: now, times)
      }
    case .probe(let last):
      guard parcel.stream >= theirs else { return [] }
      let outputs = follow(parcel.stream)
      if incoming.next <= last { return outputs + notice(now: now, times) }
      return outputs + [.send(stream: theirs, .have(incoming.next - 1))]
    case .have(let number):
      guard parcel.stream == stream else { return [] }
      kept.removeAll { $0.letter.number <= number }
      if number >= outgoing.last { probe = nil }
      return []
    case .again(let number):
      guard parcel.stream == stream else { return [] }
      let missing = kept.filter { $0.letter.number >= number }
      guard number > 0, missing.first?.letter.number == number else { return restart(now: now, times) }
      return missing.map { .send(stream: stream, .mail($0.letter)) }
    }
  }

  mutating func tick(now: Instant, _ times: Times) -> [Output] {
    var outputs: [Output] = []
    kept.removeAll { $0.since.advanced(by: times.kept) < now }
    if let probe, probe <= now {
      outputs.append(.send(stream: stream, .probe(last: outgoing.last)))
      self.probe = now.advanced(by: times.laterProbe)
    }
    if let gap, gap.next <= now { outputs += ask(gap.asked, now: now, times) }
    return outputs
  }

  private mutating func restart(now: Instant, _ times: Times) -> [Output] {
    stream += 1
    outgoing = OutgoingLink()
    kept = []
    probe = now.advanced(by: times.laterProbe)
    // The other end learns of it even if nothing else is written.
    return [.reset, .send(stream: stream, .probe(last: 0))]
  }

  /// A stream that is not the other node's first one follows one of which something may be missing.
  private mutating func follow(_ stream: UInt64) -> [Output] {
    guard stream > theirs else { return [] }
    theirs = stream
    incoming = IncomingLink()
    gap = nil
    return stream == 1 ? [] : [.reset]
  }

  private mutating func notice(now: Instant, _ times: Times) -> [Output] {
    gap == nil ? ask(0, now: now, times) : []
  }

  private mutating func ask(_ asked: Int, now: Instant, _ times: Times) -> [Output] {
    gap = Gap(asked: asked + 1, next: now.advanced(by: times.again))
    return [.send(stream: theirs, .again(from: asked < times.agains ? incoming.next : 0))]
  }
}
