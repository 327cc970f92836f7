@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Web Push: which browsers are notified of a ring (protocol section 5, "Web Push").
struct PushRules {
  let stage = Stage { $0.pushKey = Base64Bytes([4, 2]) }

  struct Sent: Equatable {
    var endpoint: String
    var notice: PushNotice
  }

  private var sent: [Sent] {
    stage.takeOthers().compactMap {
      if case .push(_, let subscription, let notice, _) = $0 {
        Sent(endpoint: subscription.endpoint, notice: notice)
      } else {
        nil
      }
    }
  }

  /// The state after a restart.
  private var stored: [PushSubscription] {
    stage.restart()
    return stage.node.everything.compactMap { if case .device(let device) = $0 { device.push } else { nil } }
  }

  private func subscription(_ path: String) -> PushSubscription {
    PushSubscription(
      endpoint: "https://push.example/\(path)", p256dh: Base64Bytes([4] + [UInt8](repeating: 1, count: 64)),
      auth: Base64Bytes([UInt8](repeating: 2, count: 16)))
  }

  private func subscribe(_ client: Client, _ path: String) {
    #expect(client.code(.people(.subscribePush(SubscribePush(subscription: subscription(path))))) == nil)
  }

  private func away(_ client: Client) { stage.handle(.disconnect(client.session)) }

  private func ring(_ call: CallID) -> PushNotice {
    PushNotice(type: .ring, call: call.text, from: "alice", name: "alice", media: .video)
  }

  private func over(_ call: CallID) -> PushNotice { PushNotice(type: .ringOver, call: call.text) }

  @Test func aDeviceThatIsAwayIsToldOfARingAndOfItsEnd() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    subscribe(bob, "bob")
    away(bob)
    let call = try alice.call(["bob"])
    #expect(sent == [Sent(endpoint: "https://push.example/bob", notice: ring(call))])
    #expect(alice.code(.call(call, .cancel(Cancel()))) == nil)
    #expect(sent == [Sent(endpoint: "https://push.example/bob", notice: over(call))])
  }

  @Test func aDeviceThatIsConnectedIsToldByItsEventsAlone() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    subscribe(bob, "bob")
    _ = try alice.call(["bob"])
    #expect(sent.isEmpty)
  }

  /// Two tabs are two devices with one subscription.
  @Test func eachBrowserIsToldOnceAndNotWhileATabOfItIsConnected() throws {
    let alice = stage.connect("alice")
    let tabs = ["one", "two", "three"].map { stage.connect("bob", $0) }
    subscribe(tabs[0], "laptop")
    subscribe(tabs[1], "laptop")
    subscribe(tabs[2], "phone")
    away(tabs[0])
    away(tabs[2])
    var call = try alice.call(["bob"])
    #expect(sent.map(\.endpoint) == ["https://push.example/phone"])
    #expect(alice.code(.call(call, .leave)) == nil)
    _ = sent
    away(tabs[1])
    call = try alice.call(["bob"])
    #expect(sent.map(\.endpoint).sorted() == ["https://push.example/laptop", "https://push.example/phone"])
  }

  @Test func aSubscriptionOutlivesARestartAndTheRingsEndIsToldAfterOne() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    subscribe(bob, "bob")
    away(bob)
    let call = try alice.call(["bob"])
    _ = sent
    stage.restart()
    stage.advance(.seconds(120))
    #expect(sent.map(\.notice) == [over(call)])
  }

  @Test func aNewSubscriptionTakesThePlaceOfTheOldOneAndNullRemovesIt() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    subscribe(bob, "old")
    subscribe(bob, "new")
    away(bob)
    let call = try alice.call(["bob"])
    #expect(sent.map(\.endpoint) == ["https://push.example/new"])
    #expect(alice.code(.call(call, .leave)) == nil)
    let again = stage.connect("bob")
    #expect(again.code(.people(.subscribePush(SubscribePush(subscription: nil)))) == nil)
    away(again)
    _ = sent
    _ = try alice.call(["bob"])
    #expect(sent.isEmpty)
    #expect(stored.isEmpty)
  }

  @Test func anEndpointThatThePushServiceKnowsNoMoreIsRemovedUnlessItWasReplaced() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    subscribe(bob, "new")
    stage.handle(.pushGone(bob.user, endpoint: "https://push.example/old"))
    stage.handle(.pushGone(alice.user, endpoint: "https://push.example/new"))
    #expect(stored == [subscription("new")])
    stage.handle(.pushGone(bob.user, endpoint: "https://push.example/new"))
    #expect(stored.isEmpty)
  }

  @Test func aRemovedDeviceIsToldNothing() throws {
    let (alice, bob, tablet) = (stage.connect("alice"), stage.connect("bob"), stage.connect("bob", "tablet"))
    subscribe(tablet, "tablet")
    away(tablet)
    #expect(bob.code(.people(.removeDevice(RemoveDevice(device: DeviceID(unchecked: "tablet"))))) == nil)
    _ = try alice.call(["bob"])
    #expect(sent.isEmpty)
  }

  @Test func malformedSubscriptionsAreRefused() {
    let bob = stage.connect("bob")
    func code(_ change: (inout PushSubscription) -> Void) -> RequestError.Code? {
      var changed = subscription("x")
      change(&changed)
      return bob.code(.people(.subscribePush(SubscribePush(subscription: changed))))
    }
    #expect(code { $0.endpoint = "http://push.example/x" } == .requestInvalid)
    #expect(code { $0.endpoint = "https://push.example/" + String(repeating: "x", count: 2_048) } == .requestInvalid)
    #expect(code { $0.p256dh.bytes.removeLast() } == .requestInvalid)
    #expect(code { $0.p256dh.bytes[0] = 2 } == .requestInvalid)
    #expect(code { $0.auth.bytes.append(1) } == .requestInvalid)
    #expect(code { _ in } == nil)
    let stranger = stage.connect("carol", keys: false)
    let body = SubscribePush(subscription: subscription("x"))
    #expect(stranger.code(.people(.subscribePush(body))) == .deviceNotFound)
  }

  @Test func withoutWebPushThereAreNoSubscriptions() {
    let bob = Stage().connect("bob")
    #expect(bob.code(.people(.subscribePush(SubscribePush(subscription: subscription("x"))))) == .requestInvalid)
    #expect(bob.code(.people(.subscribePush(SubscribePush(subscription: nil)))) == nil)
  }
}
