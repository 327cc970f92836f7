import MediaModel
import SDP
import Seeded
import Testing

/// Any text is either refused with a line number, or answered with a well-formed description.
struct SDPFuzzTests {
  @Test(arguments: [31, 32] as [UInt64])
  func mutatedOffersAreRefusedOrAnswered(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let corpus = [Vectors.small] + (try ["firefox153-audiovideo", "gst122-offer", "aiortc116-offer"].map(Vectors.text))
    var taken = 0
    for _ in 0..<400 {
      let text = mutated(corpus.randomElement(using: &generator)!, by: &generator)
      do throws(SDPError) {
        let offer = try MediaOffer(parsing: text)
        var peer = Negotiated()
        peer.apply(offer, codecs: ["VP8", "H264"])
        let answer = try SessionDescription(parsing: peer.answer())
        #expect(answer.sections.count == offer.sections.count)
        taken += 1
      } catch {
        #expect(error.line >= 1 && error.line <= text.utf8.count { $0 == 10 } + 1)
      }
    }
    #expect(taken > 20)
  }

  /// An answer is refused with a reason, or gives slots that were offered; a refused one changes nothing.
  @Test(arguments: [33, 34] as [UInt64])
  func mutatedAnswersAreRefusedOrFit(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let corpus = try ["chrome156", "firefox153", "aiortc116"].map { try Vectors.text("\($0)-subscriber-answer") }
    var fresh = try Subscription.three()
    let offer = try SessionDescription(parsing: fresh.offer())
    var (taken, unfit) = (0, 0)
    for _ in 0..<600 {
      let text = mutated(corpus.randomElement(using: &generator)!, by: &generator)
      var subscription = fresh
      do {
        let configuration = try subscription.apply(text)
        taken += 1
        #expect(configuration.slots.count <= 3 && configuration.filling == .pinned && configuration.tracks == [])
        for slot in configuration.slots {
          let section = try #require(offer.sections.first { $0.attributes.first("mid")?.value == Substring(slot.mid) })
          #expect(section.attributes.first("ssrc")?.value == "\(slot.ssrc) cname:conclave")
          #expect(!slot.formats.isEmpty)
          for type in slot.formats.flatMap({ [$0.payloadType] + ($0.rtxPayloadType.map { [$0] } ?? []) }) {
            #expect(section.formats.contains("\(type)"))
          }
        }
        let next = try SessionDescription(parsing: subscription.offer())
        #expect(next.sections.count == 3)
      } catch let error as SDPError {
        #expect(error.line >= 1 && error.line <= text.utf8.count { $0 == 10 } + 1)
      } catch let error as AnswerError {
        unfit += 1
        #expect(!error.description.isEmpty)
        #expect(subscription.offering.isPending && subscription.offering.lines.allSatisfy { !$0.isRejected })
      }
    }
    #expect(taken > 50 && unfit > 5, "\(taken) \(unfit)")
  }

  /// Swaps, repeats, removes and damages lines.
  private func mutated(_ text: String, by generator: inout SeededGenerator) -> String {
    var lines = text.utf8.split(separator: 10).map { Array($0) }
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let i = Int.random(in: 0..<lines.count, using: &generator)
      switch Int.random(in: 0..<6, using: &generator) {
      case 0: lines.swapAt(i, .random(in: 0..<lines.count, using: &generator))
      case 1: lines.insert(lines.randomElement(using: &generator)!, at: i)
      case 2 where lines.count > 1: lines.remove(at: i)
      case 3: lines[i].removeLast(min(lines[i].count, .random(in: 0...6, using: &generator)))
      default:
        guard let j = lines[i].indices.randomElement(using: &generator) else { continue }
        lines[i][j] = .random(in: .min ... .max, using: &generator)
      }
    }
    return String(decoding: Array(lines.joined(separator: [10])), as: UTF8.self) + "\n"
  }
}
