import CallMessages
import Contract
import MediaModel
import Recording

/// Requests about recordings go to the shell, with the keys by which it checks what the device signed (protocol section 13), and its news go to devices.
extension People {
  mutating func answer(_ request: RecordingsRequest, _ asker: Asker) throws(RequestError) {
    let device = asker.identity.device
    try check(request, of: device)
    if case .start(let body) = request, body.alert == true { try directory.takeAlert(device.user, now: now) }
    let asked = request.recipients(besides: device.user).filter { !$0.isGuest }
    guard configuration.asksBackEnd, !asked.isEmpty else { return pass(request, asker, .everybody) }
    try ask(.authorize(.message, from: device.user, to: asked), [], .recordings(request), asker.session, asker.id)
  }

  private func check(_ request: RecordingsRequest, of device: Device) throws(RequestError) {
    switch request {
    case .start, .finish, .share, .note:
      guard directory[device]?.entry?.keys.isEmpty == false else {
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
    case .get, .seen, .erase: break
    }
  }

  /// - Parameter reach: the users that the request may reach; everybody: those whom the store finds acquainted.
  mutating func pass(_ request: RecordingsRequest, _ asker: Asker, _ reach: Reach) {
    let device = asker.identity.device
    let name = asker.identity.name ?? directory.name(of: device.user)
    var query = RecordingQuery(device: device, name: name, entry: directory[device]?.entry, request: request)
    query.keyless = Set(request.recipients(besides: device.user).filter { !directory.hasKeys($0) })
    if case .only(let users) = reach { query.allowed = users }
    out.effects.append(.recordings(asker.session, id: asker.id, query))
  }

  // MARK: news of the store

  mutating func take(_ news: RecordingNews) {
    switch news {
    case .shared(let grants, let newcomers): share(grants, newcomers)
    case .alert(let alert): raise(alert)
    case .seen(let mention, let owner): tell(.recordingSeen(mention), owner)
    case .removed(let removed, let users):
      for user in users.sorted() {
        alerts.drop(removed.recording, of: user)
        tell(.recordingRemoved(removed), user, but: removed.by)
      }
    case .changed(let change, let devices, _):
      let message = makeMessage(.recordingChanged(change), of: nil)
      for device in devices { deliver(message, to: device) }
    }
  }

  @discardableResult private mutating func tell(_ body: EventBody, _ user: UserID, but actor: Device? = nil) -> Message
  {
    let message = makeMessage(body, of: nil)
    for device in directory.devices(of: user) where device != actor { deliver(message, to: device) }
    return message
  }

  /// Tells the holder of each grant, except the device that made it; a message also wakes who could not open it before.
  private mutating func share(_ grants: [RecordingShared], _ newcomers: Set<UserID>) {
    for shared in grants {
      guard let grant = shared.grant else { continue }
      let message = makeMessage(.recordingShared(shared), of: nil)
      for device in directory.devices(of: grant.to.user)
      where grant.opens(on: device) && device != grant.from { deliver(message, to: device) }
    }
    guard let first = grants.first, first.kind == .message, let from = first.grant?.from.user else { return }
    for user in newcomers.sorted() {
      let asleep = sleepingDevices(of: user)
      if !asleep.isEmpty {
        let push = PushRecording(user: user, devices: asleep, from: from, recording: first.recording)
        tellService(.servicePush, makeMessage(.pushMessage(push), of: nil))
      }
      sendPush(notice(.message, first.recording, from: from), to: user, until: now + Self.messagePushLifetime)
    }
  }

  private static let messagePushLifetime = Duration.seconds(86_400)
  private static let alertPushLifetime = Duration.seconds(3_600)

  private func notice(_ type: PushNotice.Kind, _ recording: RecordingID, from: UserID) -> PushNotice {
    PushNotice(type: type, recording: recording, from: from.text, name: pushName(of: from))
  }

  // MARK: alerts

  private mutating func raise(_ alert: RecordingAlert) {
    for (user, grants) in alert.users.sorted(by: { $0.key < $1.key }) {
      let one = Alerts.Alert(alert, grants: grants)
      guard !isLeaving(user), alerts.add(one, to: user, isRestored: alert.isRestored, now: now) else { continue }
      guard !alert.isRestored else {
        // Its devices are told when they connect. These were faster than the disk.
        for device in directory.devices(of: user) where directory[device]?.connection?.events != nil {
          tellOfAlerts(device)
        }
        continue
      }
      for device in directory.devices(of: user) { deliver(makeMessage(one.body(for: device), of: nil), to: device) }
      let push = PushRecording(
        user: user, devices: sleepingDevices(of: user), from: alert.by.user, recording: alert.recording)
      tellService(.servicePush, makeMessage(.pushAlert(push), of: nil))
    }
    pushAlerts()
  }

  mutating func pushAlerts() {
    for (user, alert) in alerts.takeDue(now: now) {
      let notice = notice(.alert, alert.recording, from: alert.by.user)
      sendPush(notice, to: user, until: now + Self.alertPushLifetime)
    }
  }

  /// The device subscribed to its events: it is told of the alerts that are not among those that it was given.
  mutating func tellOfAlerts(_ device: Device) {
    let waiting = alerts.of(device.user)
    guard !waiting.isEmpty else { return }
    let known = Set((directory[device]?.mailbox.kept ?? []).compactMap(\.body.alertedRecording))
    for alert in waiting where !known.contains(alert.recording) {
      deliver(makeMessage(alert.body(for: device), of: nil), to: device)
    }
  }

  /// A device of the user has the alert.
  mutating func reach(_ recording: RecordingID, by device: Device) {
    guard let alert = alerts.reach(recording, device.user) else { return }
    journal.recordings.append(.reader(recording, device.user, .reached(now)))
    let message = tell(.recordingReached(RecordingMention(recording: recording, by: device)), alert.by.user)
    tellService(.servicePush, message)
  }
}

extension Alerts.Alert {
  /// The event for the device. Without a grant it cannot open the recording, but its person is needed as much.
  fileprivate func body(for device: Device) -> EventBody {
    let grant = grants.first { $0.to.device == device.device } ?? grants.first { $0.to.device == nil }
    return .recordingShared(RecordingShared(recording: recording, kind: kind, by: by, grant: grant, alert: true))
  }
}

extension EventBody {
  /// The recording of which the event alerts its device.
  var alertedRecording: RecordingID? {
    if case .recordingShared(let shared) = self, shared.alert == true { shared.recording } else { nil }
  }
}

extension RecordingGrant {
  /// Whether the device holds it, or has the reading key of its user.
  fileprivate func opens(on device: Device) -> Bool {
    to.user == device.user && (to.device == nil || to.device == device.device)
  }
}
