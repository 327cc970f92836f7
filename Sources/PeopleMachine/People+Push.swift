import CallMessages
import Contract
import MediaModel

/// Web Push to devices that are not connected (protocol section 5, "Web Push").
extension People {
  /// `devices/push`.
  mutating func subscribePush(_ request: SubscribePush, for device: Device) throws(RequestError) -> Response {
    if let subscription = request.subscription {
      guard configuration.pushKey != nil else {
        throw RequestError(.requestInvalid, "this server sends no Web Push", field: "subscription")
      }
      try Self.check(subscription)
    }
    guard directory[device]?.entry != nil else {
      throw RequestError(.deviceNotFound, "register the device's keys first")
    }
    setPush(request.subscription, of: device)
    return Response(.nothing)
  }

  /// The push service no longer knows the subscription.
  mutating func dropPush(_ endpoint: String, of user: UserID) {
    for device in directory.devices(of: user) where directory[device]?.push?.endpoint == endpoint {
      setPush(nil, of: device)
    }
  }

  private mutating func setPush(_ subscription: PushSubscription?, of device: Device) {
    guard directory[device]?.push != subscription else { return }
    directory[device]?.push = subscription
    journal.devices.insert(device)
  }

  private static func check(_ subscription: PushSubscription) throws(RequestError) {
    guard PushEndpoint(subscription.endpoint) != nil else {
      throw RequestError(
        .requestInvalid, "an endpoint is an https URL of at most \(PushEndpoint.maximumBytes) bytes",
        field: "subscription.endpoint")
    }
    let point = subscription.p256dh.bytes
    guard point.count == 65, point[0] == 4 else {
      throw RequestError(
        .requestInvalid, "p256dh is an uncompressed point of P-256: 65 bytes", field: "subscription.p256dh")
    }
    guard subscription.auth.bytes.count == 16 else {
      throw RequestError(.requestInvalid, "auth has 16 bytes", field: "subscription.auth")
    }
  }

  /// Sends to the user's subscriptions, each once: tabs of a browser are separate devices that share one. A browser in which the user is connected needs no push.
  mutating func sendPush(_ notice: PushNotice, to user: UserID, until: Timestamp) {
    let devices = directory.devices(of: user)
    var told = Set(devices.filter(directory.isConnected).compactMap { directory[$0]?.push?.endpoint })
    for device in devices {
      guard let subscription = directory[device]?.push, told.insert(subscription.endpoint).inserted else { continue }
      out.effects.append(.push(user, subscription, notice, until: until))
    }
  }
}
