/// Why a request was not answered as wished.
public enum SignalingError: Error, Sendable, Hashable {
  /// There is no connection, or it broke before the reply came. The client connects again by itself; whether the request took effect is not known.
  case disconnected
  /// No reply came in time.
  case timedOut
  /// The server said no: the code of protocol section 9, and its words.
  case refused(code: String, message: String)
  /// The people who were to be called are in this call already, and it was not come into: this device is in it, or others are there too.
  case crossed(call: String)
  /// The server's answer violates the protocol.
  case notUnderstood
  /// An argument is not an id of the protocol.
  case invalidIdentifier
  /// There is no media key yet, or this device must not send under it.
  case noKey
  /// The call is over, or this device is not in it.
  case notInCall
}
