import Cryptography
import MediaModel
import NIOCore

/// A message between a TURN client and its server, as far as a check needs it (RFC 8489 section 5, RFC 8656 section 18).
struct TURNMessage: Sendable {
  enum Method: UInt16, Sendable {
    case binding = 0x0001, allocate = 0x0003, refresh = 0x0004, createPermission = 0x0008
  }
  enum Kind: UInt16, Sendable { case request = 0, success = 0x0100, failure = 0x0110 }

  enum Attribute: UInt16, Sendable {
    case username = 0x0006
    case messageIntegrity = 0x0008
    case errorCode = 0x0009
    case lifetime = 0x000D
    case xorPeerAddress = 0x0012
    case realm = 0x0014
    case nonce = 0x0015
    case xorRelayedAddress = 0x0016
    case requestedTransport = 0x0019
    case xorMappedAddress = 0x0020
  }

  static let headerLength = 20
  private static let cookie: UInt32 = 0x2112_A442
  /// The length of an HMAC-SHA1 with its attribute's header.
  private static let integrityLength = 24

  let method: Method
  let kind: Kind
  /// 12 bytes.
  let transaction: [UInt8]
  private(set) var attributes: [(Attribute, [UInt8])] = []

  init(_ method: Method, _ kind: Kind = .request, transaction: [UInt8]) {
    self.method = method
    self.kind = kind
    self.transaction = transaction
  }

  mutating func add(_ attribute: Attribute, _ value: some Sequence<UInt8>) {
    attributes.append((attribute, Array(value)))
  }

  mutating func add(_ attribute: Attribute, _ address: MediaModel.SocketAddress) {
    add(attribute, address.isIPv4 ? [0, 1] : [0, 2])
    attributes[attributes.count - 1].1 += masked(
      [UInt8(address.port >> 8), UInt8(address.port & 0xFF)] + address.bytes)
  }

  subscript(attribute: Attribute) -> [UInt8]? { attributes.first { $0.0 == attribute }?.1 }

  /// An error's number; nil if there is none.
  var errorCode: Int? {
    guard let value = self[.errorCode], value.count >= 4 else { return nil }
    return Int(value[2] & 7) * 100 + Int(value[3])
  }

  func address(_ attribute: Attribute) -> MediaModel.SocketAddress? {
    guard let value = self[attribute], value.count >= 4 else { return nil }
    let bytes = masked(value.dropFirst(2))
    guard value[1] == 1 ? bytes.count == 6 : value[1] == 2 && bytes.count == 18 else { return nil }
    let port = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    func word(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
    if value[1] == 1 {
      return MediaModel.SocketAddress(ipv4: UInt32(truncatingIfNeeded: word(bytes[2..<6])), port: port)
    }
    return MediaModel.SocketAddress(high: word(bytes[2..<10]), low: word(bytes[10..<18]), port: port)
  }

  /// Port and address are XORed with the cookie and the transaction (RFC 8489 section 14.2), the port with the cookie's first half.
  private func masked(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let cookie = (0..<4).map { UInt8(truncatingIfNeeded: Self.cookie >> UInt32(24 - 8 * $0)) }
    return zip(bytes, cookie.prefix(2) + cookie + transaction).map { $0 ^ $1 }
  }

  /// - Parameter key: of the long-term credentials, which then authenticate the message.
  func encoded(key: [UInt8]? = nil) -> ByteBuffer {
    var body = ByteBuffer()
    for (attribute, value) in attributes {
      body.writeInteger(attribute.rawValue)
      body.writeInteger(UInt16(truncatingIfNeeded: value.count))
      body.writeBytes(value)
      body.writeRepeatingByte(0, count: -value.count & 3)
    }
    var message = ByteBuffer()
    message.writeInteger(method.rawValue | kind.rawValue)
    message.writeInteger(UInt16(truncatingIfNeeded: body.readableBytes + (key == nil ? 0 : Self.integrityLength)))
    message.writeInteger(Self.cookie)
    message.writeBytes(transaction)
    message.writeBuffer(&body)
    if let key {
      let code = HashAlgorithm.sha1.authenticationCode(of: message.readableBytesView, key: SecretKey(key))
      message.writeInteger(Attribute.messageIntegrity.rawValue)
      message.writeInteger(UInt16(20))
      message.writeBytes(code)
    }
    return message
  }

  /// nil unless it is a complete message of a known method. Unknown attributes are ignored.
  init?(_ datagram: ByteBuffer) {
    var bytes = datagram
    guard let type = bytes.readInteger(as: UInt16.self), let length = bytes.readInteger(as: UInt16.self),
      bytes.readInteger(as: UInt32.self) == Self.cookie, let transaction = bytes.readBytes(length: 12),
      let method = Method(rawValue: type & ~0x0110), let kind = Kind(rawValue: type & 0x0110),
      bytes.readableBytes == Int(length), length & 3 == 0
    else { return nil }
    self.init(method, kind, transaction: transaction)
    while bytes.readableBytes > 0 {
      guard let name = bytes.readInteger(as: UInt16.self), let size = bytes.readInteger(as: UInt16.self),
        let value = bytes.readBytes(length: Int(size)), bytes.readBytes(length: -Int(size) & 3) != nil
      else { return nil }
      if let attribute = Attribute(rawValue: name) { add(attribute, value) }
    }
  }

  /// The length of the message at the beginning of a stream; nil while its header is incomplete, or if no message begins
  /// there.
  static func length(in stream: ByteBuffer) -> Int? {
    guard stream.readableBytes >= headerLength, startsMessage(stream),
      let length = stream.getInteger(at: stream.readerIndex + 2, as: UInt16.self)
    else { return nil }
    return headerLength + Int(length)
  }

  /// Whether the beginning of a stream may be a message: two zero bits, and as much of the cookie as has arrived.
  static func startsMessage(_ stream: ByteBuffer) -> Bool {
    let bytes = Array(stream.readableBytesView.prefix(8))
    guard let first = bytes.first else { return true }
    let cookie = (0..<4).map { UInt8(truncatingIfNeeded: Self.cookie >> UInt32(24 - 8 * $0)) }
    return first & 0xC0 == 0 && zip(bytes.dropFirst(4), cookie).allSatisfy { $0 == $1 }
  }
}

extension MediaModel.SocketAddress {
  /// In network byte order.
  fileprivate var bytes: [UInt8] {
    if isIPv4 { return (0..<4).map { UInt8(truncatingIfNeeded: ipv4 >> UInt32(24 - 8 * $0)) } }
    return [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) } }
  }
}
