import Cryptography
import Foundation
import NIOCore
import Listening
import Web

/// The web client's files: read, compressed and hashed once at the start.
struct WebClient: Sendable {
  /// One encoding of a file; its entity tag is the SHA-256 of its bytes.
  private struct Representation {
    var body: ByteBuffer
    var tag: String
    var encoding: String?

    init(_ bytes: [UInt8], encoding: String? = nil) {
      body = ByteBuffer(bytes: bytes)
      tag = "\"" + HashAlgorithm.sha256.digest(of: bytes).map { String(format: "%02x", $0) }.joined() + "\""
      self.encoding = encoding
    }
  }

  private struct File {
    var contentType: String
    var plain: Representation
    /// nil if compression makes the file no smaller.
    var gzip: Representation?
  }

  private var files: [String: File] = [:]

  /// The files beside the program.
  /// - Parameter page: the defaults of the page's settings.
  init(page: Configuration.Page = .init()) throws(ConfigurationError) {
    guard let folder = WebFiles.folder,
      let names = try? FileManager.default.subpathsOfDirectory(atPath: folder)
    else { throw ConfigurationError("the web client's files are missing beside the program; install both together") }
    var contents: [String: Data] = [:]
    for name in names {
      if let data = FileManager.default.contents(atPath: folder + "/" + name) { contents["/" + name] = data }
    }
    self.init(contents, page: page)
  }

  /// - Parameters:
  ///   - contents: the files by their paths, which begin with a slash; files of unknown types are ignored.
  ///   - page: the defaults of the page's settings, which its root element has as attributes.
  init(_ contents: [String: Data], page: Configuration.Page = .init()) {
    let graph = ModuleGraph(
      contents.filter { $0.key.hasSuffix(".js") }.mapValues { String(decoding: $0, as: UTF8.self) })
    for (path, data) in contents {
      guard let contentType = Self.contentTypes[(path as NSString).pathExtension] else { continue }
      let isPage = path == "/index.html"
      let bytes =
        isPage ? Array(page.marked(graph.preloading(String(decoding: data, as: UTF8.self))).utf8) : Array(data)
      files[path] = File(
        contentType: contentType, plain: Representation(bytes),
        gzip: Gzip.compress(bytes).map { Representation($0, encoding: "gzip") })
    }
  }

  /// nil if there is no such file.
  func response(to request: HTTPRequest) -> HTTPResponse? {
    guard let file = files[request.path == "/" ? "/index.html" : request.path] else { return nil }
    let chosen = request.acceptsGzip ? file.gzip ?? file.plain : file.plain
    // A browser updates what it has stored with the headers of a 304 (RFC 9111 section 3.2), so the policy is included,
    // too.
    var headers =
      Self.securityHeaders + [("cache-control", "no-cache"), ("vary", "accept-encoding"), ("etag", chosen.tag)]
    if request.hasStored(chosen.tag) { return HTTPResponse(status: 304, headers: headers) }
    headers.append(("content-type", file.contentType))
    if let encoding = chosen.encoding { headers.append(("content-encoding", encoding)) }
    return HTTPResponse(headers: headers, body: chosen.body)
  }

  private static let contentTypes = [
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml", "webmanifest": "application/manifest+json",
  ]

  private static let securityHeaders = [
    (
      "content-security-policy",
      "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "manifest-src 'self'; media-src 'self' blob: mediastream:; frame-ancestors 'none'; base-uri 'none'; "
        + "form-action 'none'; require-trusted-types-for 'script'; trusted-types conclave conclave-page"
    ),
    ("permissions-policy", "camera=(self), microphone=(self), display-capture=(self)"),
    ("cross-origin-opener-policy", "same-origin"),
  ]
}

extension Configuration.Page {
  /// The page with its defaults: an attribute needs no request of its own before the first view is shown.
  fileprivate func marked(_ html: String) -> String {
    let attributes = [videoFirst ? " data-video-first" : "", guestsWait ? " data-guests-wait" : ""].joined()
    guard !attributes.isEmpty, let tag = html.range(of: "<html") else { return html }
    return html.replacingCharacters(in: tag, with: "<html" + attributes)
  }
}

extension HTTPRequest {
  /// The elements of a list header, over all its lines (RFC 9110 section 5.6.1).
  private func elements(of name: String) -> [Substring] {
    headers.filter { $0.name.lowercased() == name }.flatMap { $0.value.split(separator: ",") }
      .map { $0.drop { $0 == " " || $0 == "\t" } }
  }

  /// Whether a gzip body is acceptable (RFC 9110 section 12.5.3): gzip has a weight above 0, or `*` has and gzip is not named.
  fileprivate var acceptsGzip: Bool {
    var weights: [String: Double] = [:]
    for element in elements(of: "accept-encoding") {
      let parts = element.lowercased().split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
      guard let coding = parts.first else { continue }
      let weight = parts.dropFirst().first { $0.hasPrefix("q=") }
      weights[coding] = weight.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
    }
    return (weights["gzip"] ?? weights["x-gzip"] ?? weights["*"] ?? 0) > 0
  }

  /// Whether the client has stored this representation (RFC 9110 section 13.1.2, with the weak comparison of 8.8.3.2).
  fileprivate func hasStored(_ tag: String) -> Bool {
    elements(of: "if-none-match").contains { element in
      let element = element.trimmingCharacters(in: .whitespaces)
      return element == "*" || (element.hasPrefix("W/") ? String(element.dropFirst(2)) : element) == tag
    }
  }
}
