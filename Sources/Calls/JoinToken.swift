import Contract
import MediaModel

/// What makes a repeated join the same join (rule 14).
struct JoinToken: Hashable {
  var device: Device
  var joinId: Base64Bytes
}
