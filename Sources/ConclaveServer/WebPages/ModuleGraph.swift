import Foundation

/// The imports between the page's JavaScript modules. Without hints a browser finds each module only when it has read the one that imports it: a round trip for
/// each step of the longest chain.
struct ModuleGraph {
  private let imports: [String: [String]]

  /// - Parameter modules: the text of each module by its path, which begins with a slash.
  init(_ modules: [String: String]) {
    imports = Dictionary(
      uniqueKeysWithValues: modules.map { path, text in
        (path, Self.imports(in: text, at: path).filter { modules[$0] != nil })
      })
  }

  /// The modules that `path` loads before it runs, itself first, each once and nearer ones first.
  func loaded(by path: String) -> [String] {
    guard imports[path] != nil else { return [] }
    var found = [path]
    var known: Set = [path]
    var next = 0
    while next < found.count {
      for module in imports[found[next]] ?? [] where known.insert(module).inserted { found.append(module) }
      next += 1
    }
    return found
  }

  /// The page, which lies at the top, with a link that preloads each module of its script.
  func preloading(_ page: String) -> String {
    let begin = #"<script type="module" src=""#
    guard let script = page.range(of: begin), let end = page[script.upperBound...].firstIndex(of: "\"") else {
      return page
    }
    let links = loaded(by: "/" + page[script.upperBound..<end]).map { path in
      #"<link rel="modulepreload" href="\#(path.dropFirst())">"# + "\n  "
    }
    return page.replacingCharacters(in: script.lowerBound..<script.lowerBound, with: links.joined())
  }

  /// The paths that the module at `path` imports or exports from, as the project writes it: the last line of such a statement names the file in single quotes.
  private static func imports(in text: String, at path: String) -> [String] {
    text.split(separator: "\n").compactMap { line in
      guard line.hasPrefix("import ") || line.hasPrefix("export ") || line.hasPrefix("} from "), line.hasSuffix("';"),
        let quote = line.dropLast(2).lastIndex(of: "'")
      else { return nil }
      let name = line.dropLast(2)[line.index(after: quote)...]
      guard name.hasPrefix("./") || name.hasPrefix("../") else { return nil }
      return URL(string: String(name), relativeTo: URL(string: "http://localhost" + path))?.path
    }
  }
}
