import Foundation
import Testing

/// The imports of our targets that each target may have, from bottom to top: an import that is not listed here, or that
/// points up, fails.
private let arrows: [(target: String, imports: Set<String>)] = [
  ("Octets", []),
  ("MediaModel", []),
  ("Contract", ["MediaModel"]),
  ("Recording", ["Octets", "MediaModel", "Contract"]),
  ("RTP", ["Octets"]),
  ("Reels", ["Octets", "MediaModel", "Recording", "RTP"]),
  ("CongestionControl", []),
  ("SDP", ["MediaModel"]),
  ("Transport", ["Octets", "MediaModel", "COpenSSL", "CSTUN"]),
  ("Cryptography", ["COpenSSL"]),
  ("SFrame", ["Octets"]),
  ("Forwarding", ["Octets", "MediaModel", "RTP", "CongestionControl", "Transport"]),
  ("Calls", ["Octets", "MediaModel", "Contract", "Recording"]),
  ("JanusAPI", ["Octets", "MediaModel"]),
  ("STOMP", []),
  ("JSON", ["CJansson"]),
  ("LinuxIO", ["MediaModel", "CLinux"]),
  ("MediaPlane", ["MediaModel", "RTP", "Reels", "Forwarding", "Transport", "LinuxIO"]),
  ("OutboundHTTP", ["MediaModel", "LinuxIO", "CCurl"]),
  // It knows neither calls nor the protocol of any front.
  ("Listening", ["Octets", "MediaModel"]),
  // It knows no front.
  ("Connections", ["Octets", "MediaModel", "Contract", "Calls", "JSON", "Listening"]),
  (
    "STOMPFront", ["Octets", "MediaModel", "Contract", "Calls", "STOMP", "JSON", "Listening", "Connections"]
  ),
  // It knows nothing about calls.
  ("JanusFront", ["Octets", "JanusAPI", "JSON", "Listening"]),
  ("ReelStore", ["MediaModel", "Contract", "Recording", "Reels", "Calls", "Cryptography", "LinuxIO"]),
  // It knows nothing about calls.
  ("PostgreSQL", ["MediaModel", "LinuxIO", "CPostgreSQL"]),
  ("Persistence", ["MediaModel", "Contract", "Recording", "Calls", "JSON", "LinuxIO", "PostgreSQL"]),
  ("Web", []),
  (
    "ConclaveServer",
    [
      "Octets", "MediaModel", "Contract", "SDP", "Calls", "Listening", "Connections", "STOMPFront", "JanusAPI",
      "JanusFront", "Persistence", "PostgreSQL", "Recording", "Reels", "ReelStore", "MediaPlane", "Forwarding",
      "LinuxIO", "OutboundHTTP",
      "JSON", "Transport", "Cryptography", "CZlib", "Web",
    ]
  ),
  ("conclave", ["ConclaveServer", "MediaModel", "CCommit"]),
  ("ConclaveClient", ["Octets", "MediaModel", "Contract", "STOMP", "SFrame"]),
  (
    "loadtest",
    [
      "ConclaveClient", "Octets", "Contract", "MediaModel", "SDP", "SFrame", "Transport", "RTP", "LinuxIO",
      "OutboundHTTP", "JSON",
    ]
  ),
]

/// The pure cores, and the external modules that each may use.
private let pure: [String: Set<String>] = [
  "Octets": [], "MediaModel": [], "Contract": [], "Recording": [], "RTP": [], "Reels": [],
  "CongestionControl": [], "SDP": [], "Transport": [],
  "Forwarding": [], "Calls": [], "JanusAPI": [], "STOMP": ["NIOCore"], "JSON": [], "Cryptography": [],
  "SFrame": ["Crypto"],
]

/// Packages that the server must not depend on, and their modules.
private let foreign: [String: Set<String>] = [
  "swift-crypto": ["Crypto", "CryptoExtras", "_CryptoExtras"], "async-http-client": ["AsyncHTTPClient"],
]

/// The only C module with two importers: `Transport` keeps OpenSSL objects for connections and the packet path,
/// `Cryptography` makes the server's one-shot calls.
private let sharedModules: [String: Set<String>] = ["COpenSSL": ["Transport", "Cryptography"]]

private let cModules = ["CCommit", "CLinux", "COpenSSL", "CSTUN", "CJansson", "CZlib", "CCurl", "CPostgreSQL"]

@Test func everyImportFollowsAnArrow() throws {
  let ours = Set(arrows.map(\.target) + cModules)
  for (target, allowed) in arrows {
    for (file, module) in try imports(of: target) where ours.contains(module) && module != target {
      #expect(allowed.contains(module), "\(file) imports \(module): \(target) may not; turn the arrow round")
    }
  }
}

@Test func arrowsPointDownward() {
  var below: Set<String> = Set(cModules)
  for (target, allowed) in arrows {
    #expect(allowed.isSubset(of: below), "\(target) imports what stands above it: \(allowed.subtracting(below))")
    below.insert(target)
  }
}

@Test func pureCoresKnowNoSocketNoClockAndNoFoundation() throws {
  let ours = Set(arrows.map(\.target) + cModules)
  for (target, others) in pure {
    for (file, module) in try imports(of: target) where !ours.contains(module) {
      #expect(others.contains(module), "\(file) imports \(module); a pure core takes time and bytes as arguments")
    }
    for (file, text) in try sources(of: target) {
      for clock in ["ContinuousClock", "SuspendingClock", "clock_gettime", "SystemRandomNumberGenerator"] {
        #expect(!text.contains(clock), "\(file) uses \(clock); a pure core takes time and randomness as arguments")
      }
    }
  }
}

@Test func everyCModuleHasOneSwiftImporter() throws {
  for module in cModules where sharedModules[module] == nil {
    let importers = try arrows.map(\.target).filter { target in
      try imports(of: target).contains { $0.module == module }
    }
    #expect(importers.count == 1, "\(module) is imported by \(importers)")
  }
}

@Test func aSharedCModuleHasItsImportersAlone() throws {
  for (module, expected) in sharedModules {
    let importers = try arrows.map(\.target).filter { target in
      try imports(of: target).contains { $0.module == module }
    }
    #expect(Set(importers) == expected, "\(module) is imported by \(importers)")
  }
}

/// The server's cryptography is Debian's OpenSSL, which `apt` repairs without a new release. swift-crypto is for the clients' platforms.
@Test func theServerIsBuiltWithoutSwiftCrypto() throws {
  let manifest = try String(contentsOfFile: root + "/Package.swift", encoding: .utf8)
  // Each `.target(` or similar is followed by the target's name, then the names of its dependencies.
  let declared = manifest.components(separatedBy: "arget(").dropFirst().map { declaration in
    declaration.components(separatedBy: "\"").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
  }
  let targets = Dictionary(declared.compactMap { words in words.first.map { ($0, words) } }) { first, _ in first }
  var server: Set<String> = []
  var pending = ["conclave"]
  while let target = pending.popLast() {
    guard let words = targets[target], server.insert(target).inserted else { continue }
    for (package, modules) in foreign {
      #expect(!words.contains(package), "\(target) depends on \(package), and the server on \(target)")
      guard arrows.contains(where: { $0.target == target }) else { continue }
      for (file, module) in try imports(of: target) {
        #expect(!modules.contains(module), "\(file) imports \(module): Cryptography has what the server needs")
      }
    }
    pending += words
  }
  #expect(server.isSuperset(of: ["ConclaveServer", "STOMPFront", "Forwarding", "Cryptography", "Octets"]))
  #expect(targets["ConclaveClient"]?.contains("swift-crypto") == true, "the words of a declaration are found")
}

@Test func everyTargetIsInTheTable() throws {
  let folders = try FileManager.default.contentsOfDirectory(atPath: root + "/Sources")
  #expect(Set(folders).subtracting(cModules) == Set(arrows.map(\.target)).subtracting(["loadtest"]))
}

@Test func publicIsForTheClientLibraryAlone() throws {
  for (target, _) in arrows where target != "ConclaveClient" {
    for (file, text) in try sources(of: target) {
      let lines = text.split(separator: "\n").map { $0.drop { $0 == " " } }
      #expect(!lines.contains { $0.hasPrefix("public ") || $0.hasPrefix("open ") }, "\(file) says public; say package")
    }
  }
}

/// The folders of `Calls` are layers: the two state machines are side by side, above what they exchange and store, and
/// `Node` is above both and named by neither. A machine names no type in the other's folders, so it cannot reach its
/// state.
@Test func peopleAndCallsMeetInMessagesAlone() throws {
  let all = try sources(of: "Calls").map { (file: $0.file, text: withoutComments($0.text)) }
  func part(_ folders: [String]) -> [(file: String, text: String)] {
    all.filter { source in folders.contains { source.file.hasPrefix("Calls/\($0)/") } }
  }
  let exchanged = part(["Messages", "Stored"])
  let people = part(["People"])
  let calls = part(["Call", "Keys"])
  #expect(types(declaredIn: exchanged).isSuperset(of: ["ToCalls", "ToPeople", "StoreChange"]))
  #expect(types(declaredIn: people).contains("People") && types(declaredIn: calls).contains("CallControl"))
  #expect(all.count == exchanged.count + people.count + calls.count + 2, "beside the folders there is only `Node`")
  for (layer, others) in [(people, calls), (calls, people), (exchanged, people + calls)] {
    // A nested type may share its name with a type elsewhere.
    let own = Set(declarations(in: layer + exchanged).map(\.name))
    let hidden = types(declaredIn: others).subtracting(own).union(["Node"])
    for (file, text) in layer {
      let named = words(text).intersection(hidden)
      #expect(named.isEmpty, "\(file) names \(named.sorted()): put what it needs into a message")
    }
  }
}

@Test func aNameOfATypeAtTheTopLevelIsOfOneTargetAlone() throws {
  var owners: [String: String] = [:]
  for (target, _) in arrows {
    for name in types(declaredIn: try sources(of: target)) {
      let other = owners.updateValue(target, forKey: name)
      #expect(other == nil, "\(target) and \(other ?? "") both define \(name): give one of them a more exact name")
    }
  }
  #expect(owners["Call"] == "Calls" && owners["JoinedCall"] == "ConclaveClient" && owners["Outbox"] == "Forwarding")
}

@Test func noTypeIsNamedLikeATarget() throws {
  let targets = Set(arrows.map(\.target) + cModules)
  for (target, _) in arrows {
    for (file, name, _) in declarations(in: try sources(of: target)) {
      #expect(!targets.contains(name), "\(file) defines \(name): a module of that name hides it, or is hidden by it")
    }
  }
}

/// A reason that is missing in the list is counted but never shown.
@Test func eachReasonToDropOrToEndIsInAListOfTheMetrics() throws {
  var found: Set<String> = []
  for target in ["Listening", "Connections", "STOMPFront", "JanusFront"] {
    for (file, text) in try sources(of: target) {
      for part in text.components(separatedBy: "\nextension SignalingStatistics.").dropFirst() {
        let members = (part.components(separatedBy: "\n}").first ?? "").components(separatedBy: "static let ")
          .dropFirst()
        let listed = members.filter { $0.contains(": [Self] = [") }.reduce(into: Set<String>()) { names, member in
          names.formUnion(words(member.components(separatedBy: " = [").last ?? ""))
        }
        for member in members where member.contains(" = Self(rawValue: ") {
          let name = String(member.prefix { $0.isLetter })
          #expect(member.hasPrefix("\(name) = Self(rawValue: \"\(name)\")"), "\(file): \(name) has another name")
          #expect(listed.contains(name), "\(file): \(name) is missing in the list, and so in the metrics")
          found.insert(name)
        }
      }
    }
  }
  #expect(found.isSuperset(of: ["connectionsFull", "sessionGone", "backlogFull", "queueFull", "tokenExpired"]))
}

/// The table in docs/e2ee.md says where each client implements each rule of the key agreement: the files exist, and no
/// part of the agreement is missing.
@Test func theTableOfRulesNamesTheFilesOfBothClients() throws {
  let text = try String(contentsOfFile: root + "/docs/e2ee.md", encoding: .utf8)
  let section = try #require(text.split(separator: "\n## ").first { $0.hasPrefix("Where each rule is") })
  let rows = section.split(separator: "\n").filter { $0.hasPrefix("| 5.") || $0.hasPrefix("| all") }
  #expect(rows.count > 20)
  var named: Set<String> = []
  for row in rows {
    let cells = row.split(separator: "|").map { $0.split(separator: "`").map(String.init) }
    try #require(cells.count == 4, "\(row)")
    for (cell, folder) in [(cells[2], "Web/conclave"), (cells[3], "ConclaveClient")] {
      for file in cell where file.hasSuffix(".js") || file.hasSuffix(".swift") {
        #expect(FileManager.default.fileExists(atPath: "\(root)/Sources/\(folder)/\(file)"), "there is no \(file)")
        named.insert("\(folder)/\(file)")
      }
    }
  }
  // A stay's own values and random times contain no rules.
  let parts = try sources(of: "ConclaveClient").map(\.file).filter {
    $0.contains("/Keys/Agreement/") && !$0.hasSuffix("/OwnStay.swift") && !$0.hasSuffix("/Spread.swift")
  }
  #expect(!parts.isEmpty && Set(parts).subtracting(named) == [])
}

/// A type with more stored properties than that has several subjects: divide it.
@Test func noPartOfTheKeyAgreementHasManyStoredProperties() throws {
  let parts = try sources(of: "ConclaveClient").filter { $0.file.contains("/Keys/Agreement/") }
  for (file, text) in parts {
    let stored = storedProperties(in: text)
    #expect(stored <= 25, "\(file) has \(stored) stored properties")
    if file.hasSuffix("/RosterWatch.swift") { #expect(stored > 10) }
  }
  #expect(parts.count > 10)
}

/// Rows: a part of the SFU, its maximum of stored properties, and its maximum of functions, in all of its files. A part
/// that grows beyond that should be split.
@Test(arguments: [
  ("SFU", 18, 60), ("PeerPaths", 8, 23), ("SlotFiller", 5, 18), ("Feedback", 3, 13), ("RelaySender", 2, 8),
  ("SFUOutput", 5, 12),
])
func noPartOfTheSFUGrows(part: String, properties: Int, functions: Int) throws {
  let files = try sources(of: "Forwarding").filter { source in
    let name = source.file.split(separator: "/").last ?? ""
    return name == "\(part).swift" || name.hasPrefix("\(part)+")
  }
  let texts = files.map { withoutComments($0.text) }
  let found = texts.reduce(0) { $0 + members($1) { $0.contains("func ") }.count }
  let stored = files.reduce(0) { $0 + storedProperties(in: $1.text) }
  #expect(stored <= properties, "\(part) stores \(stored) properties: give one of its subjects a type")
  #expect(found <= functions, "\(part) has \(found) functions: give one of its subjects a type")
  #expect(stored > properties / 2 && found > functions / 2, "the limit is far from \(part): lower it")
}

/// The parts of an SFU do not refer to it: it passes them what they need.
@Test func noPartOfTheSFUNamesTheSFU() throws {
  let parts = ["/PeerPaths", "/SlotFiller", "/Feedback", "/RelaySender", "/SFUOutput"]
  let files = try sources(of: "Forwarding").filter { source in parts.contains { source.file.contains($0) } }
  #expect(files.count >= parts.count)
  for (file, text) in files { #expect(!words(withoutComments(text)).contains("SFU"), "\(file) names SFU") }
}

/// The lines of members of types at the top level, without their comments.
private func members(_ text: String, where isOne: (Substring) -> Bool) -> [Substring] {
  text.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") && isOne($0) }
}

private func storedProperties(in text: String) -> Int {
  members(withoutComments(text)) { line in
    let words = line.split(separator: " ").filter { $0 != "package" && $0 != "public" && !$0.hasPrefix("private") }
    return ["let", "var"].contains(words.first ?? "") && !line.hasSuffix("{") && !line.hasSuffix("}")
  }.count
}

private func withoutComments(_ text: String) -> String {
  text.split(separator: "\n").map { line in
    line.firstRange(of: "//").map { String(line[..<$0.lowerBound]) } ?? String(line)
  }.joined(separator: "\n")
}

private func words(_ text: String) -> Set<String> {
  Set(text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init))
}

/// The types that these sources declare.
private func declarations(in sources: [(file: String, text: String)]) -> [(file: String, name: String, isNested: Bool)]
{
  let modifiers: Set = ["public", "package", "internal", "private", "fileprivate", "final", "indirect", "nonisolated"]
  let kinds: Set = ["struct", "enum", "class", "actor", "protocol", "typealias"]
  return sources.flatMap { file, text in
    withoutComments(text).split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ").drop { modifiers.contains(String($0)) || $0.hasPrefix("@") }
      guard let kind = words.first, kinds.contains(String(kind)), let named = words.dropFirst().first else {
        return nil
      }
      let name = String(named.prefix { $0.isLetter || $0.isNumber })
      // `class func` does not declare a type.
      return ["func", "var", "let"].contains(name) ? nil : (file, name, line.first == " ")
    }
  }
}

/// The names of the types at the top level of these sources.
private func types(declaredIn sources: [(file: String, text: String)]) -> Set<String> {
  Set(declarations(in: sources).filter { !$0.isNested }.map(\.name))
}

/// The repository's root, from this file's place.
private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().path

private func sources(of target: String) throws -> [(file: String, text: String)] {
  let folder = target == "loadtest" ? root + "/loadtest" : root + "/Sources/" + target
  let names = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }
  #expect(!names.isEmpty, "\(target) has no source")
  return try names.map { ("\(target)/\($0)", try String(contentsOfFile: folder + "/" + $0, encoding: .utf8)) }
}

private func imports(of target: String) throws -> [(file: String, module: String)] {
  try sources(of: target).flatMap { file, text in
    text.split(separator: "\n").compactMap { line in
      var words = line.split(separator: " ")
      if words.first == "@testable" || words.first == "@preconcurrency" { words.removeFirst() }
      if let first = words.first, ["package", "public", "internal", "private", "fileprivate"].contains(first) {
        words.removeFirst()
      }
      guard words.first == "import",
        let module = words.dropFirst().first(where: { !["struct", "class", "func", "enum", "protocol"].contains($0) })
      else { return nil }
      return (file, String(module.split(separator: ".")[0]))
    }
  }
}
