import Dispatch

/// One input for a parser. Inputs end in a result or an error; a trap or a read outside the bytes is a finding.
typealias FuzzTarget = (UnsafeMutableRawBufferPointer) -> Void

/// The target that this process runs.
nonisolated(unsafe) var run: FuzzTarget = { _ in }

nonisolated(unsafe) let targets: [String: FuzzTarget] = [
  "admin": readAdmin,
  "answer": readAnswer,
  "authorize": readAuthorizeAnswer,
  "base64": readBase64,
  "dependencies": readDependencies,
  "device-signature": readDeviceSignature,
  "dtls": readDTLS,
  "elements": readElements,
  "endpoint": readEndpoint,
  "envelope": openEnvelope,
  "estimators": driveEstimators,
  "event": readEvent,
  "frame": openFrame,
  "framing": readFraming,
  "guest": readGuest,
  "http": readHTTP,
  "json": readJSON,
  "keyset": readKeySet,
  "letter": readLetter,
  "list": readList,
  "pairing": readPairing,
  "reel": readReel,
  "reply": readReply,
  "request": readRequest,
  "rtcp": readRTCP,
  "rtp": readRTP,
  "sdp": readSDP,
  "segment": readSegment,
  "serve": serveHTTP,
  "session": driveSession,
  "sframe": readSFrame,
  "sfu": driveSFU,
  "srtp": readSRTP,
  "stomp": readSTOMP,
  "stun": readSTUN,
  "subscription": readSubscription,
  "tls": readTLS,
  "token": readToken,
  "transport-feedback": readTransportFeedback,
  "upload": readUpload,
  "websocket": readWebSocket,
]

extension UnsafeMutableRawBufferPointer {
  var octets: [UInt8] { Array(self) }
  var text: String { String(decoding: self, as: UTF8.self) }

  /// The input as several parts, each after its length in one byte.
  var parts: [UnsafeMutableRawBufferPointer] {
    var parts: [UnsafeMutableRawBufferPointer] = []
    var start = 0
    while start < count {
      let end = Swift.min(start + 1 + Int(self[start]) * 8, count)
      parts.append(UnsafeMutableRawBufferPointer(rebasing: self[start + 1..<end]))
      start = end
    }
    return parts
  }
}

/// Blocks until `work` is done.
func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
  let done = DispatchSemaphore(value: 0)
  nonisolated(unsafe) var value: Value?
  Task {
    value = await work()
    done.signal()
  }
  done.wait()
  return value!
}
