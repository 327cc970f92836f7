import CZlib
import Foundation
import NIOCore
import Listening
import Testing

@testable import ConclaveServer

/// The bytes of a gzip file (RFC 1952).
private func gunzip(_ bytes: [UInt8]) -> [UInt8]? {
  var stream = z_stream()
  guard inflateInit2_(&stream, MAX_WBITS + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
    return nil
  }
  defer { inflateEnd(&stream) }
  var input = bytes
  var output = [UInt8](repeating: 0, count: 1 << 20)
  let end = input.withUnsafeMutableBufferPointer { input in
    output.withUnsafeMutableBufferPointer { output in
      stream.next_in = input.baseAddress
      stream.avail_in = UInt32(input.count)
      stream.next_out = output.baseAddress
      stream.avail_out = UInt32(output.count)
      return inflate(&stream, Z_FINISH)
    }
  }
  return end == Z_STREAM_END ? Array(output.prefix(Int(stream.total_out))) : nil
}

private func request(_ path: String, _ headers: [(String, String)] = []) throws -> HTTPRequest {
  HTTPRequest(
    method: "GET", path: path, query: nil, headers: headers.map { (name: $0.0, value: $0.1) }, body: ByteBuffer(),
    remoteAddress: nil)
}

private let long = String(repeating: "export const words = 'again and again';\n", count: 50)
private let client = WebClient([
  "/long.js": Data(long.utf8), "/short.js": Data("1;".utf8), "/notes.txt": Data(long.utf8),
])

extension HTTPResponse {
  fileprivate subscript(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

@Test(arguments: [
  ("gzip", true), ("deflate, gzip, br", true), ("GZIP;q=0.5", true), ("x-gzip", true), ("*", true),
  ("br, *;q=0.1", true),
  ("", false), ("br", false), ("gzip;q=0", false), ("gzip; q=0.000, *", false), ("*;q=0", false), ("gzip;q=x", false),
  ("gzipped", false), ("identity", false),
])
func aFileIsCompressedForClientsThatAcceptIt(accepted: String, isCompressed: Bool) throws {
  let response = try #require(client.response(to: try request("/long.js", [("Accept-Encoding", accepted)])))
  #expect(response["content-encoding"] == (isCompressed ? "gzip" : nil))
  #expect(response["vary"] == "accept-encoding")
  let bytes = Array(response.body.bytes.readableBytesView)
  #expect((isCompressed ? gunzip(bytes) : bytes) == Array(long.utf8))
  #expect(isCompressed == (bytes.count < long.utf8.count / 5))
}

@Test func aFileThatCompressionMakesNoSmallerIsSentAsItIs() throws {
  let response = try #require(client.response(to: try request("/short.js", [("accept-encoding", "gzip")])))
  #expect(response["content-encoding"] == nil && String(buffer: response.body.bytes) == "1;")
}

@Test func filesOfUnknownTypesAreNotServed() throws {
  #expect(client.response(to: try request("/notes.txt")) == nil)
}

@Test func eachEncodingHasATagOfItsBytesAndIsNotSentTwice() throws {
  let plain = try #require(client.response(to: try request("/long.js"))?["etag"])
  let gzip = try #require(client.response(to: try request("/long.js", [("accept-encoding", "gzip")]))?["etag"])
  #expect(plain != gzip)
  let other = WebClient(["/long.js": Data((long + " ").utf8)])
  #expect(try other.response(to: request("/long.js"))?["etag"] != plain)
  let cases: [(stored: String, accepted: String, status: Int)] = [
    (plain, "", 304), (gzip, "gzip", 304), ("W/" + plain, "", 304), ("\"x\", \(plain)", "", 304), ("*", "", 304),
    (plain, "gzip", 200), (gzip, "", 200), ("\"x\"", "", 200), (String(plain.dropFirst().dropLast()), "", 200),
    ("", "", 200),
  ]
  for (stored, accepted, status) in cases {
    let asked = try request("/long.js", [("if-none-match", stored), ("accept-encoding", accepted)])
    let response = try #require(client.response(to: asked))
    #expect(response.status == status, "\(stored) \(accepted)")
    #expect((response.body.bytes.readableBytes == 0) == (status == 304))
    #expect(response["etag"] == (accepted == "gzip" ? gzip : plain))
    // A browser takes them over.
    #expect(response["content-security-policy"]?.contains("trusted-types conclave") == true)
    #expect(response["cache-control"] == "no-cache" && response["vary"] == "accept-encoding")
  }
}

private let modules = [
  "/page/app.js": """
  // import { nothing } from './comment.js';
  import { a } from './a.js';
  import {
    b,
  } from '../library/index.js';
  const words = "import './words.js';";
  // import('./comment.js')
  const later = () => import('./later.js').catch(() => {});
  """,
  "/page/later.js": "import { a } from './a.js';\nimport { d } from './d.js';\n", "/page/d.js": "",
  "/page/a.js": "import './side.js';\nimport { app } from './app.js';\nimport { gone } from './gone.js';\n",
  "/page/side.js": "export const x = 1;\n",
  "/page/words.js": "", "/page/comment.js": "", "/page/unused.js": "",
  "/library/index.js": "export { b } from './b.js';\nexport * from './c.js';\n",
  "/library/b.js": "import { c } from './c.js';\n",
  "/library/c.js": "const worker = new URL('./worker.js', import.meta.url);\n",
  "/library/worker.js": "",
]

private func links(_ modules: [String]) -> String {
  modules.map { "<link rel=\"modulepreload\" href=\"\($0).js\">\n  " }.joined()
}

@Test func thePageSaysAtOnceWhichModulesItWillLoad() {
  let graph = ModuleGraph(modules)
  let first = ["page/app", "page/a", "library/index", "page/side", "library/b", "library/c"]
  #expect(graph.loaded(by: ["/page/app.js"]) == first.map { "/\($0).js" })
  let script = "<script type=\"module\" src=\"page/app.js\"></script>\n"
  let page = "<head>\n  \(script)  <template id=\"rest\"></template>\n</head>"
  let rest = links(["page/later", "page/d"])
  #expect(
    graph.preloading(page)
      == "<head>\n  \(links(first))\(script)  <template id=\"rest\">\(rest)</template>\n</head>")
  #expect(graph.preloading("<head></head>") == "<head></head>")
}

@Test func thePageHasTheOperatorsDefaults() throws {
  func root(_ client: WebClient) throws -> (tag: String, entity: String?) {
    let response = try #require(client.response(to: request("/")))
    let page = String(buffer: response.body.bytes)
    return (String(page[try #require(page.firstRange(of: try Regex("<html[^>]*>")))]), response["etag"])
  }
  let (usual, signing) = (
    try root(WebClient()),
    try root(WebClient(page: Configuration(json: Array(#"{"page":{"videoFirst":true}}"#.utf8)).page))
  )
  #expect(usual.tag == "<html lang=\"en\">" && signing.tag == "<html data-video-first lang=\"en\">")
  #expect(usual.entity != signing.entity)
  let both = try root(
    WebClient(page: Configuration(json: Array(#"{"page":{"videoFirst":true,"guestsWait":true}}"#.utf8)).page))
  #expect(both.tag == "<html data-video-first data-guests-wait lang=\"en\">")
}

@Test func everyPreloadedModuleOfTheRealPageIsServed() throws {
  let real = try WebClient()
  let page = String(buffer: try #require(real.response(to: try request("/"))).body.bytes)
  let halves = page.components(separatedBy: "<template id=\"rest\">").map { half in
    half.components(separatedBy: "<link rel=\"modulepreload\" href=\"").dropFirst().compactMap {
      $0.split(separator: "\"").first
    }
  }
  let (first, rest) = (try #require(halves.first), try #require(halves.last))
  #expect(first.contains("page/app.js") && !first.contains("conclave/index.js"), "signing in needs no library")
  #expect(rest.contains("conclave/index.js") && rest.contains("conclave/keys/keys.js"))
  let links = first + rest
  #expect(!links.contains("conclave/sframe-worker.js"), "the worker is loaded when a call begins")
  #expect(Set(links).count == links.count)
  for link in links { #expect(try real.response(to: request("/" + link))?.status == 200, "\(link)") }
}
