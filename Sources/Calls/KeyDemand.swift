import Contract
import MediaModel

/// A device that lacks the newest epoch's key and said so (Epochs 6).
struct KeyDemand {
  /// Asked this often; three times at most.
  var count = 0
  /// It waits for an envelope.
  var isOpen = false
  /// Devices that were told to send it one; only the last is still pending.
  var asked: [Device] = []
}
