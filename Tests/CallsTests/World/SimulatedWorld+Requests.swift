@testable import PeopleMachine
@testable import Calls
@testable import CallMachine
import Contract
import MediaModel
import Seeded
import Simulation

import CallMessages

/// Requests of devices, services and the operator.
extension SimulatedWorld {
  func register(_ place: Int) {
    let version = random.chance(50) ? UInt8(random.below(3)) : 0
    let keys = [KeyUse.wrap, .sign].map {
      DeviceKey(use: $0, alg: "ES256", publicKey: Base64Bytes([UInt8(place), version, $0 == .wrap ? 0 : 1]))
    }
    ask(place, .people(.registerDevice(RegisterDevice(name: nil, keys: keys))))
  }

  func watch(_ place: Int) {
    guard let session = devices[place].session else { return }
    let calls = node.people.calls(of: devices[place].device.user)
    switch random.below(4) {
    case 0: ask(place, .people(.watchPresence(WatchPresence(users: someUsers()))))
    case 1: ask(place, .people(.setPresence(SetPresence(state: random.chance(70) ? .available : .unavailable))))
    default:
      guard let call = calls.randomElement(using: &random) else { return }
      send(
        random.chance(80) ? .subscribe(session, .call(call), .auto) : .unsubscribe(session, .call(call)), place)
    }
  }

  func mediaEvent() {
    let peers = node.control.peers.sorted { $0.key.rawValue < $1.key.rawValue }
    // Often the last one, since that is the one that waits for media.
    guard let (peer, place) = random.chance(30) ? peers.last : peers.randomElement(using: &random) else { return }
    switch random.below(10) {
    case 0..<5: handle(.media(.connected(peer)), nil)
    case 5..<7: handle(.media(.disconnected(peer, silence: .seconds(random.below(20)))), nil)
    case 7: handle(.media(.quality(peer, level: random.below(5), bitrate: 1)), nil)
    default:
      let loudest = (1...6).filter { _ in random.chance(50) }.map { ParticipantNumber($0) }
      handle(.media(.speakers(place.call, loudest)), nil)
    }
  }

  // MARK: requests

  func randomRequest(_ place: Int) {
    let user = devices[place].device.user
    let known = node.people.calls(of: user) + (random.chance(5) ? node.control.calls.keys.sorted() : [])
    guard let call = known.randomElement(using: &random), !random.chance(known.count < 3 ? 25 : 5) else {
      return start(place)
    }
    let join = self.join(place)
    switch random.below(28) {
    case 0...5: ask(place, .call(call, .accept(join)))
    case 6: ask(place, .call(call, .decline(Decline())))
    case 7, 8: ask(place, .call(call, .invite(Invite(callees: someUsers()))))
    case 9: ask(place, .call(call, .cancel(Cancel(callees: random.chance(50) ? someUsers() : nil))))
    case 10, 11: ask(place, .call(call, .join(join)))
    case 12, 13: ask(place, .call(call, .rejoin(join)))
    case 14: ask(place, .call(call, .leave))
    case 15: if random.chance(30) { ask(place, .call(call, .end)) }
    case 16: ask(place, .inCall(call, .requestKey(RequestKey())))
    case 17...19: mute(place, joined(place) ?? call)
    case 20: ask(place, .call(call, .transfer(join)))
    case 21: ask(place, .call(call, .hold(Hold(held: random.chance(40)))))
    case 22: ask(place, .call(call, .link(MakeLink(expiresIn: 60 + random.below(100), revoke: random.chance(20)))))
    case 23: joinByLink(place, join)
    case 24...26: seldomRequest(place, call)
    default: offer(place, joined(place) ?? call)
    }
  }

  /// A call of the device.
  private func joined(_ place: Int) -> CallID? {
    let device = devices[place].device
    let inside = node.people.calls(of: device.user).filter {
      (try? node.control.calls[$0]?.participant(of: device)) != nil
    }
    return inside.randomElement(using: &random)
  }

  private func joinByLink(_ place: Int, _ join: Join) {
    guard let (call, link, key) = links.randomElement(using: &random) else { return }
    var join = join
    join.link = link
    ask(place, .call(call, .join(join)), link: key)
  }

  private func seldomRequest(_ place: Int, _ call: CallID) {
    let number = ParticipantNumber(1 + random.below(6))
    let track = TrackID(participant: number, index: 1)
    switch random.below(15) {
    case 9: ask(place, .call(call, .state))
    case 10: ask(place, .listCalls)
    case 11: ask(place, .inCall(call, .listKeys(ListKeys())))
    case 12: ask(place, .people(.listDevices(ListDevices(users: someUsers()))))
    case 13: ask(place, .history(.list(ListHistory())))
    case 14: ask(place, .history(.totals(HistoryTotals(with: devices[random.below(devices.count)].device.user))))
    case 0: ask(place, .inCall(call, .stats(QualityNumbers(rtt: 1))))
    case 1: ask(place, .call(call, .report(ReportAbuse(participant: number, text: "x"))))
    case 2:
      let device = devices[random.below(devices.count)].device.device
      if random.chance(30) { ask(place, .people(.removeDevice(RemoveDevice(device: device)))) }
    case 3, 4:
      ask(place, .inCall(call, .receive(Receive(lastN: random.below(5), videos: [.init(track: track, paused: true)]))))
    default:
      ask(place, .inCall(call, .message(SendMessage(to: random.chance(50) ? [number] : nil, body: Base64Bytes([1])))))
    }
  }

  private func start(_ place: Int) {
    var policy = Policy()
    policy.ringSeconds = 5 + random.below(20)
    policy.whenBusy = random.chance(50) ? .reject : .ring
    policy.aloneSeconds = random.chance(30) ? random.below(60) : nil
    policy.awaySeconds = random.chance(30) ? random.below(60) : nil
    policy.connectSeconds = random.chance(20) ? 1 + random.below(30) : nil
    policy.rotateMinutes = random.chance(30) ? 1 : nil
    let callees = someUsers()
    let envelopes = devices.filter { callees.contains($0.device.user) && random.chance(60) }
      .filter { node.people.directory[$0.device]?.entry != nil }.map { envelope(to: $0.device, epoch: 1) }
    let join = self.join(place)
    ask(
      place,
      .start(
        StartCall(
          id: .uuid(whims.next(), whims.next()), callees: callees, media: .video, policy: policy, joinId: join.joinId,
          joinKey: join.joinKey, envelopes: devices[place].hasKeys ? envelopes : nil)))
  }

  /// The body of a new join; sometimes without a join key, so that the device is on no list.
  private func join(_ place: Int) -> Join {
    devices[place].joins += 1
    let joinId = joinId(of: UInt64(place) << 32 + devices[place].joins)
    guard !whims.chance(5) else { return Join(joinId: joinId) }
    return Join(joinId: joinId, joinKey: joinKey(joinId, generation: 0))
  }

  /// After its switch a device confirms at a random moment, perhaps twice, perhaps with a new join key.
  func confirm(_ epoch: UInt32, _ call: CallID, _ place: Int) {
    guard let session = devices[place].session, whims.chance(80) else { return }
    let keyedDevice = node.control.calls[call]?.epochs.keyedDevices[devices[place].device]
    let tag = Base64Bytes((0..<16).map { _ in UInt8(truncatingIfNeeded: whims.next()) })
    var key: JoinKey?
    if let keyedDevice, whims.chance(30) {
      let generation = (keyedDevice.refresh ?? keyedDevice.joinKey).generation
      key = joinKey(keyedDevice.joinId, generation: whims.chance(80) ? generation + 1 : generation)
    }
    for _ in 0..<(whims.chance(10) ? 2 : 1) {
      lastRequest += 1
      let request = Request.inCall(call, .confirmKey(ConfirmKey(epoch: epoch, tag: tag, joinKey: key)))
      let due = now + .milliseconds(whims.below(500))
      agenda.append((due, session, .command(.request(session, id: "\(lastRequest)", request))))
    }
  }

  /// Devices of a user make statements about each other, and send each other messages.
  func vouch(_ place: Int) {
    let own = devices.map(\.device).filter { $0.user == devices[place].device.user }
    guard let other = own.randomElement(using: &whims) else { return }
    let fingerprint = node.people.directory[other]?.entry?.fingerprint ?? Base64Bytes([UInt8](repeating: 3, count: 32))
    let statement = DeviceStatement(
      device: other.device, fingerprint: fingerprint, at: now, sigAlg: "y", signature: Base64Bytes([1]))
    switch whims.below(3) {
    case 0: ask(place, .people(.vouchForDevice(statement)))
    case 1: ask(place, .people(.revokeDevice(statement)))
    default: ask(place, .people(.pairDevice(PairDevice(to: other.device, body: Base64Bytes([1])))))
    }
  }

  func joinKey(_ joinId: Base64Bytes, generation: UInt32) -> JoinKey {
    JoinKey(
      alg: "x", publicKey: Base64Bytes(joinId.bytes + [UInt8(truncatingIfNeeded: generation)]), generation: generation,
      at: now, signature: Base64Bytes([1]))
  }

  private func someUsers() -> [UserID] {
    devices.map(\.device.user).filter { _ in random.chance(40) }
  }

  private func offer(_ place: Int, _ call: CallID) {
    guard let session = devices[place].session else { return }
    let sources: [String: TrackSource] = ["0": .microphone, "1": .camera, "2": .screen]
    let tracks = sources.keys.sorted().filter { _ in random.chance(60) }.compactMap { mid in
      sources[mid].map { MediaRequest.Track(mid: mid, source: $0, replace: random.chance(30)) }
    }
    lastRequest += 1
    send(.offer(session, id: "\(lastRequest)", call, .success(.sending(sources)), tracks), place)
  }

  private func mute(_ place: Int, _ call: CallID) {
    let members = node.control.calls[call]?.members ?? []
    let tracks = members.filter { $0.user == devices[place].device.user || random.chance(10) }
      .flatMap { $0.participants.flatMap(\.tracks.live) }
    guard let track = tracks.randomElement(using: &random) else { return offer(place, call) }
    ask(place, .inCall(call, .track(track.id, ChangeTrack(muted: !track.muted))))
  }

  func envelope(to device: Device, epoch: UInt32) -> Envelope {
    Envelope(
      epoch: epoch, to: device, from: nil, key: Base64Bytes([UInt8](repeating: 7, count: 32)), alg: "x",
      ciphertext: Base64Bytes([1]), sigAlg: nil, signature: nil)
  }

  /// - Parameter link: the key of the link by which the device joins.
  func ask(_ place: Int, _ request: Request, link: Base64Bytes? = nil) {
    guard let session = devices[place].session else { return }
    let request = withWords(request, of: devices[place].device, link: link)
    switch request {
    case .calls(.start), .calls(.call(_, .accept)), .calls(.call(_, .join)), .calls(.call(_, .rejoin)),
      .calls(.call(_, .transfer)):
      devices[place].lastJoin = request
    default: break
    }
    lastRequest += 1
    send(.request(session, id: "\(lastRequest)", request), place)
  }

  /// The request with the words that it needs, by the keys that the device has now.
  private func withWords(_ request: Request, of device: Device, link: Base64Bytes?) -> Request {
    var keys = node.people.directory[device]?.entry
    if case .calls(.call(let call, let request)) = request {
      switch request {
      case .invite, .link: keys = node.control.calls[call]?.epochs.keyedDevices[device]?.keys ?? keys
      default: break
      }
    }
    guard let keys else { return request }
    return Stage.words.completed(
      request, by: keys, link: link ?? Base64Bytes(Stage.digest(Array("link \(lastRequest)".utf8))))
  }

  // MARK: services and the operator

  func requestOfService(_ session: SessionID, _ request: Request) {
    lastRequest += 1
    handle(.request(session, id: "\(lastRequest)", request), nil)
  }

  /// The app's back end makes a random request.
  func serve() {
    guard let service else { return }
    let call = node.control.calls.keys.sorted().randomElement(using: &random)
    switch random.below(10) {
    case 0: if let call { requestOfService(service, .call(call, .end)) }
    case 1: requestOfService(service, .listCalls)
    case 2: if let call { requestOfService(service, .call(call, .accept(Join()))) }
    default:
      var policy = Policy()
      policy.ringSeconds = 5 + random.below(20)
      let user = devices[random.below(devices.count)].device.user
      let callees = someUsers().filter { $0 != user }
      requestOfService(service, .start(StartCall(callees: callees, media: .audio, policy: policy, as: user)))
    }
  }

  func actOfTheOperator() {
    switch random.below(12) {
    case 0: handle(.forget(devices[random.below(devices.count)].device.user), nil)
    case 1: handle(.drain, nil)
    default: break
    }
  }
}
