import JSON
import LinuxIO
import Seeded
import Testing

private struct Sample: Codable, Equatable {
  var name: String
  var size: Int64
  var flag: Bool?
  var list: [UInt8]
  var nested: [String: Double]
}

@Test func aValueSurvivesThereAndBack() throws {
  let sample = Sample(
    name: "a\"\\\u{1}é😀", size: 9_007_199_254_740_993, flag: true, list: [0, 255], nested: ["x": 0.5])
  #expect(try JSONCoding.decode(Sample.self, from: JSONCoding.encode(sample)) == sample)
}

@Test func absentOptionalsAreNotWritten() throws {
  let text = String(
    decoding: try JSONCoding.encode(Sample(name: "", size: 0, flag: nil, list: [], nested: [:])), as: UTF8.self)
  #expect(text == #"{"name":"","size":0,"list":[],"nested":{}}"#)
}

@Test(arguments: [
  (#"{"name":"a","name":"b"}"#, nil as String?), ("", nil), ("{", nil), ("[1]", nil), (#"{"size":1}"#, "name"),
  (#"{"name":1}"#, "name"), (#"{"name":"","size":1.0}"#, "size"), (#"{"name":"","size":9223372036854775808}"#, nil),
  (#"{"name":"","size":1,"list":[1,256]}"#, "list.1"),
  (#"{"name":"","size":1,"list":[],"nested":{"x":"y"}}"#, "nested.x"),
  ("{\"name\":\"\\u0000\",\"size\":1}", nil),
])
func badInputNamesTheMember(text: String, field: String?) {
  let error = #expect(throws: JSONError.self) { try JSONCoding.decode(Sample.self, from: Array(text.utf8)) }
  #expect(error?.field == field)
}

@Test(arguments: [
  (#"{"name":"a","name":"b"}"#, "stands twice"), (#"{"size":9223372036854775808}"#, "64 bits"),
  (#"{"size":1e999}"#, "64 bits"), (#"{"name":"\u0000"}"#, "U+0000"), (#"{"name":}"#, "not JSON"),
])
func eachRefusalSaysWhy(text: String, words: String) {
  let error = #expect(throws: JSONError.self) { try JSONCoding.decode(Sample.self, from: Array(text.utf8)) }
  #expect(error?.reason.contains(words) == true)
}

@Test func anErrorNeverRepeatsTheInput() {
  let error = #expect(throws: JSONError.self) {
    try JSONCoding.decode(Sample.self, from: Array(#"{"name":{"secret-token":1}}"#.utf8))
  }
  #expect(error.map { !"\($0)".contains("secret-token") } == true)
}

@Test func anUnknownValueOfAnEnumIsNotRepeated() {
  enum Colour: String, Decodable { case red }
  struct Paint: Decodable { var colour: Colour }
  let error = #expect(throws: JSONError.self) {
    try JSONCoding.decode(Paint.self, from: Array(#"{"colour":"secret"}"#.utf8))
  }
  #expect(error?.field == "colour")
  #expect(error?.reason.contains("secret") == false)
}

@Test func depthIsLimitedBeforeTheParserRecurses() throws {
  let deep = { (n: Int) in Array((String(repeating: "[", count: n) + String(repeating: "]", count: n)).utf8) }
  #expect(throws: JSONError.self) { try JSONCoding.decode(Sample.self, from: deep(100_000)) }
  let inAString = Array(
    (#"{"name":""# + String(repeating: "[", count: 100) + #"","size":1,"list":[],"nested":{}}"#).utf8)
  #expect(try JSONCoding.decode(Sample.self, from: inAString).size == 1)
}

@Test func numbersThatAreNotFiniteAreRefused() {
  let error = #expect(throws: JSONError.self) {
    try JSONCoding.encode(Sample(name: "", size: 0, flag: nil, list: [], nested: ["x": .infinity]))
  }
  #expect(error?.field == "nested.x")
}

@Test func stringsAndNumbersAreWrittenAsRFC8259Says() throws {
  struct Numbers: Encodable {
    var numbers: [Double] = [0.1, -0.0, 1e300, .leastNonzeroMagnitude]
    var integers: [Int64] = [.min, -1, 0, 10, .max]
    var nothing: [Int?] = [nil]
    var text = "\u{0}\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}é😀"
    var empty = ["": Empty()]
  }
  struct Empty: Encodable {}
  #expect(
    String(decoding: try JSONCoding.encode(Numbers()), as: UTF8.self)
      == #"{"numbers":[0.1,-0.0,1e+300,5e-324],"integers":[-9223372036854775808,-1,0,10,9223372036854775807],"#
      + ##""nothing":[null],"text":"\u0000\b\t\n\f\r\u001F\"\\/"## + "\u{7f}é😀\",\"empty\":{\"\":{}}}")
}

@Test func anIntegerOver64BitsNamesItsMember() {
  struct Large: Encodable { var list = [1, UInt64.max] }
  let error = #expect(throws: JSONError.self) { try JSONCoding.encode(Large()) }
  #expect(error?.field == "list.1")
}

/// A second container of the same value, and nested ones, as in handwritten types.
@Test func containersGoOnWhereTheyEndedAndNestedOnesEndWithTheNextWrite() throws {
  struct Handmade: Encodable {
    enum Key: String, CodingKey { case a, b, c, d, e }
    func encode(to encoder: any Encoder) throws {
      var first = encoder.container(keyedBy: Key.self)
      try first.encode(1, forKey: .a)
      var nested = first.nestedContainer(keyedBy: Key.self, forKey: .b)
      try nested.encode(2, forKey: .a)
      var list = nested.nestedUnkeyedContainer(forKey: .b)
      try list.encode("x")
      _ = list.nestedContainer(keyedBy: Key.self)
      var second = encoder.container(keyedBy: Key.self)
      try second.encode(3, forKey: .c)
      #expect(throws: EncodingError.self) { try nested.encode(4, forKey: .d) }
      #expect(throws: EncodingError.self) { try list.encode(5) }
      try first.encodeNil(forKey: .e)
    }
  }
  #expect(
    String(decoding: try JSONCoding.encode([Handmade()]), as: UTF8.self)
      == #"[{"a":1,"b":{"a":2,"b":["x",{}]},"c":3,"e":null}]"#)
}

private struct Member: Codable, Equatable {
  var name: String
  var number: Int
}

private struct Room: Codable, Equatable {
  var title = "r"
  var members: [Member]
}

@Test func onlyMembersThatChangedAreEncodedAgain() throws {
  var room = Room(members: (0..<1000).map { Member(name: "member \($0)", number: $0) })
  let fragments = Fragments { (member: Member) in member.name }
  func expectEncodings(_ count: Int) throws {
    let before = fragments.encodings
    #expect(try JSONCoding.encode(room, reusing: fragments) == JSONCoding.encode(room))
    #expect(fragments.encodings - before == count)
  }
  try expectEncodings(1000)
  try expectEncodings(0)
  room.members[17].number = -1
  room.members.append(Member(name: "new", number: 7))
  try expectEncodings(2)
  room.members.removeLast(300)
  try expectEncodings(0)
  room.members.remove(at: 2)
  room.members.swapAt(10, 20)
  try expectEncodings(0)
  room.members[0] = room.members[1]
  try expectEncodings(0)
}

@Test func fragmentsAreForgottenBeyondTheirNumber() throws {
  let fragments = Fragments(maximumCount: 10) { (member: Member) in member.name }
  for start in 0..<50 {
    let room = Room(members: (start..<start + 5).map { Member(name: "member \($0)", number: $0) })
    #expect(try JSONCoding.encode(room, reusing: fragments) == JSONCoding.encode(room))
    #expect(fragments.size <= 10 * (try JSONCoding.encode(room.members[0])).count + 10)
  }
  #expect((54...120).contains(fragments.encodings), "\(fragments.encodings)")
}

/// Ten times the members take about ten times the CPU time of this thread. It takes the best of several measurements,
/// with a margin for shared caches.
@Test func encodingIsLinear() throws {
  func nanoseconds(_ count: Int) throws -> UInt64 {
    let room = Room(members: (0..<count).map { Member(name: "member \($0)", number: $0) })
    return try (0..<10).map { _ in
      let start = ThreadClock.now()
      for _ in 0..<10 { _ = try JSONCoding.encode(room) }
      return (ThreadClock.now() - start) / 10
    }.min()!
  }
  let (small, large) = (try nanoseconds(100), try nanoseconds(1000))
  print("JSON: 100 members \(small) ns, 1,000 members \(large) ns")
  #expect(large < small * 30)
}

/// Some mutations leave valid JSON of the type, most do not: both cases occur, and neither traps.
@Test func mutatedInputIsReadOrRefused() throws {
  let valid = Array(#"{"name":"a","size":-12,"flag":false,"list":[1,2,3],"nested":{"x":1e3}}"#.utf8)
  var generator = SeededGenerator(seed: 7)
  var read = 0
  var refused = 0
  for _ in 0..<20_000 {
    var bytes = valid
    for _ in 0...Int.random(in: 0..<4, using: &generator) {
      bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: .min ... .max, using: &generator)
    }
    bytes.removeLast(Int.random(in: 0..<4, using: &generator))
    do {
      _ = try JSONCoding.decode(Sample.self, from: bytes)
      read += 1
    } catch {
      refused += 1
    }
  }
  #expect(read > 0 && refused > 0, "seed 7: \(read) read, \(refused) refused")
}

/// Any JSON.
private indirect enum Value: Codable, Equatable {
  case null, flag(Bool), integer(Int64), number(Double), text(String), list([Value]), object([String: Value])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([Value].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: Value].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .flag(let flag): try container.encode(flag)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    case .list(let list): try container.encode(list)
    case .object(let object): try container.encode(object)
    }
  }

  static func random(_ depth: Int, _ generator: inout SeededGenerator) -> Value {
    func text() -> String {
      let characters: [Character] = ["a", "\"", "\\", "\n", "\u{1}", "ä", "\u{FFFF}", "😀", "/", "{", "]", "\u{2028}"]
      return String(
        (0..<Int.random(in: 0...8, using: &generator)).compactMap { _ in characters.randomElement(using: &generator) })
    }
    switch Int.random(in: depth > 0 ? 0...6 : 0...4, using: &generator) {
    case 0: return .null
    case 1: return .flag(Bool.random(using: &generator))
    case 2: return .integer(Int64.random(in: .min ... .max, using: &generator))
    case 3: return .number(Double(Int.random(in: -1_000...1_000, using: &generator)) + 0.5)
    case 4: return .text(text())
    case 5: return .list((0..<Int.random(in: 0...4, using: &generator)).map { _ in random(depth - 1, &generator) })
    default:
      return .object(
        Dictionary(
          (0..<Int.random(in: 0...4, using: &generator)).map { _ in (text(), random(depth - 1, &generator)) },
          uniquingKeysWith: { first, _ in first }))
    }
  }
}

/// A written text is read as the same value. A mutated text is refused, or read as a value that can be written and read
/// again.
@Test(arguments: 1...4 as ClosedRange<UInt64>) func hostileTextsAreReadOrRefused(seed: UInt64) throws {
  var generator = SeededGenerator(seed: seed)
  let pieces = [
    "{", "}", "[", "]", ":", ",", "\"", "\\u0000", "\\ud800", "1e999", "-", "99999999999999999999", "\u{0}", "null",
    "\"a\":1,",
  ]
  for round in 0..<3_000 {
    let value = Value.list([Value.random(6, &generator)])
    var bytes = try JSONCoding.encode(value)
    #expect(try JSONCoding.decode(Value.self, from: bytes) == value, "seed \(seed), round \(round)")
    for _ in 0...Int.random(in: 0...3, using: &generator) {
      let place = Int.random(in: 0..<bytes.count, using: &generator)
      if Bool.random(using: &generator) {
        bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
      } else {
        bytes.insert(contentsOf: (pieces.randomElement(using: &generator) ?? "").utf8, at: place)
      }
    }
    guard let read = try? JSONCoding.decode(Value.self, from: bytes) else { continue }
    #expect(try JSONCoding.decode(Value.self, from: JSONCoding.encode(read)) == read, "seed \(seed), round \(round)")
  }
}
