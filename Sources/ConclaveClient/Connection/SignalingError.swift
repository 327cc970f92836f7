/// Why a request failed.
public enum SignalingError: Error, Sendable, Hashable {
  /// There is no connection, or it broke before the reply arrived. The client reconnects automatically; whether the request took effect is
  /// unknown.
  case disconnected
  /// No reply arrived in time.
  case timedOut
  /// The server refused: the code of protocol section 9, and its text.
  case refused(code: String, message: String)
  /// The callees are already in this call, which was not joined: this device is in it, or others are there, too.
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
