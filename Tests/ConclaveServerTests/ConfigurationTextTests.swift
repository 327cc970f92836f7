import Foundation
import Testing

@testable import ConclaveServer

/// The position of a mistake in its file.
struct ConfigurationTextTests {
  /// The error for a file with this text, without the folder's name.
  private func told(_ text: String) throws -> [String] {
    let folder = NSTemporaryDirectory() + "configuration-\(UInt64.random(in: .min ... .max))/"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try text.write(toFile: folder + "c.json", atomically: false, encoding: .utf8)
    do throws(ConfigurationError) {
      try Configuration(unvalidated: folder + "c.json").validate()
      return []
    } catch {
      return error.description.replacing(folder, with: "").split(separator: "\n").map(String.init)
    }
  }

  @Test func eachMemberIsFoundByLineAndColumn() throws {
    let text = """
      {"drain": -1,
       "roles": {"a\\"b": {"neverStarts": true}, "é": {}}, "history": {"days": 0},
       "listen": {
         "origins": ["https://a.example", "b"],
         "http": 70000
       }}
      """
    let places = try told(text).map { $0.prefix { $0 != " " } }
    #expect(places == ["c.json:2:65:", "c.json:1:2:", "c.json:5:4:", "c.json:4:4:"])
  }

  @Test func anUnknownMemberAndAValueOfAnotherTypeAreFoundToo() throws {
    #expect(
      try told("{\n \"media\": {\"prot\": 1}}").first?.hasPrefix("c.json:2:12: media.prot: is not an option; ") == true)
    let told = try told("{\"media\": {\n  \"port\": \"30000\"}}")
    #expect(told == ["c.json:2:3: media.port: take a number from 0 to 65535, without quotes"])
  }

  @Test func aMemberThatIsAbsentIsFoundByItsObject() throws {
    #expect(try told("{\n\"tls\": {\"certificate\": \"c\"}}") == ["c.json:2:1: tls.key: is missing"])
    // The conflict is with the default of media.port, which is not in the file.
    #expect(
      try told("{\"listen\": {\"http\": 30000}}") == [
        "media.port: 30000 is the port of listen.http already; take another"
      ])
  }

  @Test(arguments: [
    ("{\n  // ports\n  \"drain\": 1}", "c.json:2:3: not JSON; JSON has no comments"),
    ("{\"drain\": 1,\n}", "c.json:2:1: not JSON; leave out the comma before it"),
    ("{\"listen\": [1, 2, ]}", "c.json:1:19: not JSON; leave out the comma before it"),
    ("{\n 'drain': 1}", "c.json:2:2: not JSON; take double quotes"),
    ("{\"drain\": 1", "c.json:1:11: not JSON; it ends too early"), ("", "c.json:1:1: not JSON; it ends too early"),
    ("{\"drain\": 1,\n \"drain\": 2}", "c.json:2:8: a member stands twice"),
  ])
  func textThatIsNoJSONIsFoundAndExplained(text: String, words: String) throws { #expect(try told(text) == [words]) }

  @Test func aPlaceIsFoundInAnyText() throws {
    // Only texts that were read as JSON are searched, but these must not trap either.
    for text in ["", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":[", "[[[", "{\"a\\", "}", "{]", "{,,,", "\"\\\""]
    {
      let located = ConfigurationText(Array(text.utf8), file: "f").located(ConfigurationError("a.b: is wrong"))
      #expect(located.description.hasSuffix("a.b: is wrong"))
    }
  }

  @Test func theInstalledFileCountsIfItIsThere() throws {
    #expect(Configuration.installed == "/etc/conclave/config.json")
    let file = NSTemporaryDirectory() + "config-\(UInt64.random(in: .min ... .max)).json"
    #expect(Configuration.installedFile(file) == nil)
    try "{}".write(toFile: file, atomically: false, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: file) }
    #expect(Configuration.installedFile(file) == file)
  }
}
