package import NIOCore

/// Frames sent by a client.
extension Frame {
  /// `passcode` is the token.
  package static func connect(
    host: String, passcode: String, login: String? = nil, device: String? = nil,
    versions: [Version] = Version.allCases, heartBeat: HeartBeat = HeartBeat(sends: 0, wants: 0)
  ) -> Frame {
    var headers: Headers = [
      "accept-version": versions.map(\.rawValue).joined(separator: ","), "host": host, "heart-beat": heartBeat.header,
    ]
    headers.append("login", login)
    headers.append("passcode", passcode)
    headers.append("device", device)
    return Frame(.connect, headers)
  }

  package static func send(to destination: String, headers: Headers = [:], body: ByteBuffer) -> Frame {
    var all: Headers = ["destination": destination]
    for field in headers.fields { all.append(field.name, field.value) }
    return Frame(.send, all, body: body)
  }

  package static func subscribe(
    id: String, to destination: String, ack: AckMode = .auto, receipt: String? = nil
  ) -> Frame {
    var headers: Headers = ["id": id, "destination": destination, "ack": ack.rawValue]
    headers.append("receipt", receipt)
    return Frame(.subscribe, headers)
  }

  package static func unsubscribe(id: String) -> Frame { Frame(.unsubscribe, ["id": id]) }

  /// Answers a MESSAGE as its version requires: ACK if `accepted`, else NACK.
  package static func acknowledge(_ message: Frame, accepted: Bool = true, version: Version) -> Frame {
    var headers: Headers = [:]
    headers.append(version.acknowledgedBy, message.headers[version >= .v12 ? "ack" : "message-id"])
    if version.acknowledgesBySubscription { headers.append("subscription", message.headers["subscription"]) }
    return Frame(accepted ? .ack : .nack, headers)
  }

  package static func disconnect(receipt: String? = nil) -> Frame {
    var headers: Headers = [:]
    headers.append("receipt", receipt)
    return Frame(.disconnect, headers)
  }
}
