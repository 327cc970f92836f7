package import NIOCore

/// The answer to an `HTTPRequest`; `content-length` and `connection` are added on the way.
package struct HTTPResponse: Sendable {
  package var status: Int
  package var headers: [(name: String, value: String)]
  package var body: ByteBuffer

  package init(status: Int = 200, headers: [(name: String, value: String)] = [], body: ByteBuffer = ByteBuffer()) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  package init(status: Int = 200, text: String) {
    self.init(
      status: status, headers: [("content-type", "text/plain; charset=utf-8")], body: ByteBuffer(string: text))
  }
}
