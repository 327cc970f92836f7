import MediaModel

/// A timer of a call, which has each of them at most once.
enum CallTimer: Hashable, Sendable {
  /// The user's ring is over: missed (rule 4).
  case ring(UserID)
  /// Signaling and media of the participant on this device have been gone for 15 s (rule 10).
  case disconnect(Device)
  /// The disconnected user did not come back within `awaySeconds` (rule 10).
  case away(UserID)
  /// The participant on this device has no media `connectSeconds` after joining (rule 10), or 20 s after a transfer (rule 13).
  case connect(Device)
  /// The one member left has been alone for `aloneSeconds` (rule 9).
  case alone
  /// `maxHours` are over (rule 9).
  case expiry
  /// 100 ms after the first change that calls for an epoch (section 5, Epochs 2).
  case batch
  /// The leader had 3 s to answer (Epochs 4).
  case leader
  /// Devices had 2 s, or 1 s, to acknowledge (Epochs 5).
  case spread
  /// Confirmations of the newest epoch are told, those of a while together (Epochs 9).
  case confirmed
  /// `rotateMinutes` since the last switch (Epochs 2).
  case rotate
}
