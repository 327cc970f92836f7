import Contract
import MediaModel

/// A device that lacks the newest epoch's key and said so (Epochs 6).
struct KeyDemand {
  /// Asked this often; three times at most.
  var count = 0
  /// It waits for an envelope.
  var isOpen = false
  /// Who was told to send it one; the last is the one that is waited for.
  var asked: [Device] = []
}
