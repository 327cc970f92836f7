import JSON
package import JanusAPI
import NIOCore

// The texts of the API's messages.

extension JSONTree: AnyJSON {
  package static func object(members: [(name: String, value: JSONTree)]) -> JSONTree {
    .object(JSONObject(members.map { JSONObject.Member(name: $0.name, value: $0.value) }))
  }
}

extension JSONTree {
  init(reading bytes: ByteBuffer) throws(JSONError) {
    do {
      self = try bytes.withUnsafeReadableBytes { try JSONCoding.value(JSONTree.self, from: $0) }
    } catch {
      throw error as? JSONError ?? JSONError(reason: "not JSON")
    }
  }

  /// Texts that arrive as UTF-8 can always be written.
  var written: ByteBuffer { ByteBuffer(bytes: (try? JSONCoding.encode(self)) ?? Array("{}".utf8)) }

  /// The secrets of a request.
  var secrets: JanusSecrets {
    guard case .object(let object) = self else { return JanusSecrets(apiSecret: nil, token: nil, bodyToken: nil) }
    var bodyToken: String?
    if case .object(let body) = object["body"] { bodyToken = body["token"]?.string }
    return JanusSecrets(
      apiSecret: object["apisecret"]?.string, token: object["token"]?.string, bodyToken: bodyToken)
  }

  var string: String? {
    guard case .text(let text) = self else { return nil }
    return text
  }

  /// Whether a reply or event says that the request's secrets were right.
  var isRefusalOfSecrets: Bool {
    guard case .object(let object) = self, case .object(let error) = object["error"] else { return false }
    return error["code"] == 403
  }
}
