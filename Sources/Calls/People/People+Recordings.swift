import Contract
import MediaModel

/// Requests about recordings go to the shell, with the keys by which it checks what the device signed (protocol section 13).
extension People {
  mutating func answer(_ request: RecordingsRequest, _ asker: Asker) throws(RequestError) {
    let device = asker.identity.device
    let entry = directory[device]?.entry
    switch request {
    case .start, .finish, .share, .note:
      guard entry?.keys.isEmpty == false else {
        throw RequestError(.keysNotAllowed, "only a device with keys records and shares: register them first")
      }
    case .list(let body):
      guard (1...200).contains(body.limit ?? 50) else {
        throw RequestError(.requestInvalid, "limit is 1 to 200", field: "limit")
      }
    case .delete(let body):
      guard body.ids.count <= 100 else {
        throw RequestError(.requestTooLarge, "at most 100 recordings at once", field: "ids")
      }
    case .get: break
    }
    let name = asker.identity.name ?? directory.name(of: device.user)
    let query = RecordingQuery(device: device, name: name, entry: entry, request: request)
    out.effects.append(.recordings(asker.session, id: asker.id, query))
  }

  /// Tells the holder of a grant, except the device that made it.
  mutating func announce(_ shared: RecordingShared) {
    let to = shared.grant.to
    let devices = directory.devices(of: to.user).filter { to.device == nil || $0.device == to.device }
    let message = makeMessage(.recordingShared(shared), of: nil)
    for device in devices where device != shared.grant.from { deliver(message, to: device) }
  }
}
