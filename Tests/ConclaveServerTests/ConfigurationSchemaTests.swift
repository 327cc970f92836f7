import JSON
import Testing

@testable import ConclaveServer

/// The schema is derived from the declarations of the members, and agrees with the server.
struct ConfigurationSchemaTests {
  private func member(_ name: String, of value: JSONValue) -> JSONValue? {
    guard case .object(let entries) = value else { return nil }
    return entries.first { $0.name == name }?.value
  }

  /// The file that writes out each default of the schema.
  /// - Parameter absent: the paths of objects that are absent by default: their members' defaults hold once they are there.
  private func defaults(of schema: JSONValue, _ path: String = "", absent: Set<String>) -> JSONValue? {
    guard case .object(let properties)? = member("properties", of: schema) else { return member("default", of: schema) }
    let entries = properties.compactMap { property in
      let path = path + property.name
      return absent.contains(path)
        ? nil : defaults(of: property.value, path + ".", absent: absent).map { JSONValue.Entry(property.name, $0) }
    }
    return .object(entries)
  }

  @Test func itsDefaultsAreThoseOfTheServer() throws {
    let absent = Set(Configuration().facts().filter { $0.value == .null }.map(\.path))
    let file = try #require(defaults(of: .object(Configuration.schema), absent: absent))
    let read = try Configuration(json: Array(file.text.utf8))
    #expect(Configuration().changes(to: read) == ([], []))
    #expect(file.text.contains("\"ringing\": 100") && file.text.contains("\"http\": 8080"))
    // Objects that are absent by default stay so.
    #expect(read.tls == nil && read.turn == nil && read.webhooks == nil && read.recordings == nil)
  }

  @Test func eachMemberIsComparedAndHasAnEntry() {
    let entries = Set(paths(of: .object(Configuration.schema)))
    for fact in Configuration().facts() { #expect(entries.contains(fact.path), "\(fact.path)") }
  }

  private func paths(of schema: JSONValue, _ path: String = "") -> [String] {
    guard case .object(let properties)? = member("properties", of: schema) else { return [] }
    return properties.flatMap { [path + $0.name] + paths(of: $0.value, path + $0.name + ".") }
  }

  @Test func theTextIsJSONThatReadsTheSame() throws {
    struct Head: Decodable {
      var title: String
      var additionalProperties: Bool
    }
    let head = try JSONCoding.decode(Head.self, from: Array(Configuration.schemaText.utf8))
    #expect(head.title == "Configuration of Conclave" && !head.additionalProperties)
    #expect(JSONValue.string("a\"b\n").text == #""a\"b\n""#)
    #expect((["a": [1, true, .null]] as JSONValue).text == #"{"a": [1, true, null]}"#)
  }

  @Test(
    arguments: [
      ("127.0.0.1:80", ListenAddress(port: 80, address: "127.0.0.1")),
      ("[::1]:80", ListenAddress(port: 80, address: "::1")),
      ("localhost:80", ListenAddress(port: 80, address: "localhost")), ("80", nil), (":80", nil), ("::1:80", nil),
      ("[::1]", nil), ("[127.0.0.1]:80", nil), ("127.0.0.1:", nil), ("http://a:80", nil), ("[]:80", nil), ("", nil),
    ] as [(String, ListenAddress?)])
  func aListenersAddressIsReadAsItIsWritten(text: String, address: ListenAddress?) {
    #expect(ListenAddress(text) == address)
    if let address { #expect(address.json == .string(text)) }
  }
}
