import Contract
import MediaModel

/// The result of a request: the reply, which goes first, and its consequences.
struct Outcome {
  var reply: any Encodable & Sendable
  var call: CallID?
  var outputs = Outputs()
  /// This user's devices or keys changed.
  var devicesChanged: UserID?
  /// This device was removed by its user.
  var removed: Device?
  /// A step of pairing, for this device.
  var pairing: (to: Device, message: PairingMessage)?
  /// This device speaks in the call now: its other calls are held.
  var speaker: Device?

  init(_ reply: any Encodable & Sendable) { self.reply = reply }

  init(_ reply: any Encodable & Sendable, _ call: CallID, _ outputs: Outputs) {
    self.reply = reply
    self.call = call
    self.outputs = outputs
  }
}
