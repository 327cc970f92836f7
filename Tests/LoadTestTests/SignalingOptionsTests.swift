import Testing

@testable import loadtest

struct SignalingOptionsTests {
  @Test func aBrokersAddressMayNameWhoSignsIn() throws {
    let address = try #require(BrokerAddress("stomp://guest:a:b@c@[::1]:43702"))
    #expect(address.host == "::1" && address.port == 43702)
    #expect(address.credentials == BrokerAddress.Credentials(login: "guest", passcode: "a:b@c"))
    let plain = try #require(BrokerAddress("stomp://localhost"))
    #expect(plain.host == "localhost" && plain.port == 61613 && plain.credentials == nil)
  }

  @Test(arguments: ["stomps://localhost", "localhost", "stomp://guest@localhost", "stomp://:x@localhost"])
  func otherAddressesAreRefused(url: String) { #expect(BrokerAddress(url) == nil) }

  @Test func aFanOutIsSubscribersAtARate() {
    #expect(FanOut(argument: "100@max") == FanOut(subscribers: 100, rate: nil))
    #expect(FanOut(argument: "1000@0.5") == FanOut(subscribers: 1_000, rate: 0.5))
    for wrong in ["100", "0@5", "5@0", "5@-1", "@", "5@nan", "5@inf", "99999@1"] {
      #expect(FanOut(argument: wrong) == nil, "\(wrong)")
    }
  }

  @Test func aSpreadsMedianIsOfTheSorted() throws {
    let odd = try #require(BrokerResult.Spread([5, 1, 3]))
    #expect(odd.median == 3 && odd.min == 1 && odd.max == 5)
    #expect(BrokerResult.Spread([4, 1, 2, 9])?.median == 3)
    #expect(BrokerResult.Spread([]) == nil)
  }
}
