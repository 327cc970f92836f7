import JSON

@testable import CallMessages

/// A letter between people and calls. If it can be read, it can be written and read again.
func readLetter(_ input: UnsafeMutableRawBufferPointer) {
  pass(ToCalls.self, input)
  pass(ToPeople.self, input)
}

private func pass<Message: Codable & Sendable>(_ type: Message.Type, _ input: UnsafeMutableRawBufferPointer) {
  guard let letter = try? JSONCoding.decode(Letter<Message>.self, from: UnsafeRawBufferPointer(input)) else { return }
  guard let text = try? JSONCoding.encode(letter) else { fatalError("a letter that was read cannot be written") }
  guard let again = try? JSONCoding.decode(Letter<Message>.self, from: text) else {
    fatalError("a written letter cannot be read")
  }
  precondition(again.number == letter.number)
}
