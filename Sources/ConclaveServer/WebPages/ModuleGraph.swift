import Foundation

/// The imports between the page's JavaScript modules. Without hints a browser finds each module only after it has read the importing one: a round trip for each
/// step of the longest chain.
struct ModuleGraph {
  /// The modules that each one imports before it runs.
  private let imports: [String: [String]]
  /// The modules that each one imports later, by `import('./module.js')`.
  private let laterImports: [String: [String]]

  /// - Parameter modules: the text of each module by its path, which begins with a slash.
  init(_ modules: [String: String]) {
    func found(_ names: (String) -> [Substring]) -> [String: [String]] {
      Dictionary(
        uniqueKeysWithValues: modules.map { path, text in
          (path, names(text).compactMap { Self.path(of: $0, from: path) }.filter { modules[$0] != nil })
        })
    }
    imports = found(Self.names(in:))
    laterImports = found(Self.laterNames(in:))
  }

  /// The modules that those at `paths` load before they run, including themselves, each once and nearer ones first.
  func loaded(by paths: [String]) -> [String] {
    var found = paths.filter { imports[$0] != nil }
    var known = Set(found)
    var next = 0
    while next < found.count {
      for module in imports[found[next]] ?? [] where known.insert(module).inserted { found.append(module) }
      next += 1
    }
    return found
  }

  /// The page, which is at the top level, with a link that preloads each module of its script. Links for the modules that the script loads later
  /// are in `<template id="rest">`, where a browser does nothing with them until the script moves them out.
  func preloading(_ page: String) -> String {
    let begin = #"<script type="module" src=""#
    guard let script = page.range(of: begin), let end = page[script.upperBound...].firstIndex(of: "\"") else {
      return page
    }
    let first = loaded(by: ["/" + page[script.upperBound..<end]])
    let isFirst = Set(first)
    let rest = loaded(by: first.flatMap { laterImports[$0] ?? [] }).filter { !isFirst.contains($0) }
    func links(_ paths: [String]) -> String {
      paths.map { #"<link rel="modulepreload" href="\#($0.dropFirst())">"# + "\n  " }.joined()
    }
    return page.replacingCharacters(in: script.lowerBound..<script.lowerBound, with: links(first))
      .replacingOccurrences(
        of: #"<template id="rest"></template>"#, with: #"<template id="rest">"# + links(rest) + "</template>")
  }

  /// The modules that a text imports or exports from, as the project writes it: the last line of such a statement names the file in single quotes.
  private static func names(in text: String) -> [Substring] {
    text.split(separator: "\n").compactMap { line in
      guard line.hasPrefix("import ") || line.hasPrefix("export ") || line.hasPrefix("} from "), line.hasSuffix("';"),
        let quote = line.dropLast(2).lastIndex(of: "'")
      else { return nil }
      return line.dropLast(2)[line.index(after: quote)...]
    }
  }

  /// The modules that a text imports by `import('./module.js')`.
  private static func laterNames(in text: String) -> [Substring] {
    text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.compactMap { line in
      guard let begin = line.range(of: "import('")?.upperBound, let end = line[begin...].firstIndex(of: "'") else {
        return nil
      }
      return line[begin..<end]
    }
  }

  /// The path of the module that the one at `path` calls `name`; nil for a module elsewhere.
  private static func path(of name: Substring, from path: String) -> String? {
    guard name.hasPrefix("./") || name.hasPrefix("../") else { return nil }
    return URL(string: String(name), relativeTo: URL(string: "http://localhost" + path))?.path
  }
}
