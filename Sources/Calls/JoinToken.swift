import Contract
import MediaModel

/// The identity of a join, which a repeated join shares (rule 14).
struct JoinToken: Hashable {
  var device: Device
  var joinId: Base64Bytes
}
