/// The settings of the front.
package struct JanusConfiguration: Sendable {
  /// The longest message, in bytes.
  package var messageBytes = 256 << 10
  /// A client may send so much before its first request with a right secret.
  package var bytesBeforeLogin = 16 << 10
  package var requestsPerSecond = 100
  package var requestBurst = 400
  /// Bytes that wait for a client that reads slowly. Beyond that it is cut off.
  package var outbound = 2 << 20

  package init() {}
}
