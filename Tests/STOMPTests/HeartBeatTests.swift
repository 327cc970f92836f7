import STOMP
import Testing

private let second: UInt64 = 1_000_000_000

/// D: heart-beats.
@Suite struct HeartBeatTests {
  @Test("stomp.md 33: malformed headers are an error", arguments: ["abc", "1", "1,2,3", "-1,0", "1,", ",", "1.5,2"])
  func malformedHeadersAreAnError(value: String) {
    var server = TestServer()
    server.receive("CONNECT\naccept-version:1.2\nheart-beat:\(value)\nhost:h\n\n\0")
    #expect(server.closed == .violation(.protocolError))
  }

  @Test(
    "stomp.md 34: intervals are the larger of both sides",
    arguments: [
      // The client's header, then what the server (10,000 both ways) expects and sends, in seconds.
      (nil, nil, nil), ("0,0", nil, nil), ("5000,0", 10, nil), ("0,5000", nil, 10), ("20000,30000", 20, 30),
    ] as [(String?, UInt64?, UInt64?)])
  func intervalsAreTheLargerOfBothSides(header: String?, receiving: UInt64?, sending: UInt64?) throws {
    let timers = HeartBeat(sends: 10_000, wants: 10_000).agreed(with: try #require(HeartBeat(header: header)))
    #expect(timers.receiving == receiving.map { $0 * second } && timers.sending == sending.map { $0 * second })
  }

  @Test(
    "stomp.md 38: silly values become sensible ones",
    arguments: [("1,1", 10, 10), ("999999999999999999,1", 86_400, 10)] as [(String, UInt64, UInt64)])
  func sillyValuesBecomeSensibleOnes(header: String, receiving: UInt64, sending: UInt64) throws {
    let timers = HeartBeat(sends: 10_000, wants: 10_000).agreed(with: try #require(HeartBeat(header: header)))
    #expect(timers.receiving == receiving * second && timers.sending == sending * second)
  }

  @Test("stomp.md 35: a beat is written before the interval is over but not beside other frames")
  func aBeatIsWrittenBeforeTheIntervalIsOverButNotBesideOtherFrames() {
    var server = TestServer(.v11, heartBeat: "0,10000")
    #expect(server.session.nextDeadline == 8 * second)
    server.now = 5 * second
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\nreceipt:1\n\n\0")
    server.advance(to: 8 * second)
    #expect(server.heartBeats == 0)
    server.advance(to: 13 * second)
    #expect(server.heartBeats == 1 && server.session.nextDeadline == 21 * second)
  }

  @Test("stomp.md 36: any octet keeps the client alive") func anyOctetKeepsTheClientAlive() {
    var server = TestServer(.v12, heartBeat: "10000,0")
    server.now = 9 * second
    server.receive("\n")
    server.now = 18 * second
    server.receive("SEN")
    server.advance(to: 36 * second)
    #expect(server.closed == nil)
    server.advance(to: 37 * second)
    #expect(server.closed == .violation(.heartBeatMissing))
  }

  @Test("stomp.md 37: a late beat is forgiven, a missing one is not", arguments: [100, 2_000, 10_000] as [UInt64])
  func aLateBeatIsForgiven(milliseconds: UInt64) throws {
    let promised = milliseconds * 1_000_000
    var timers = HeartBeat(sends: 0, wants: 1).agreed(with: HeartBeat(sends: Int(milliseconds), wants: 0))
    timers.start(now: 0)
    let dead = try #require(timers.peerDead)
    #expect(dead >= promised + promised / 2 && dead <= 2 * promised)
    timers.received(now: dead - 1)
    #expect(timers.peerDead == 2 * dead - 1)
  }

  @Test("stomp.md 37: a client that promised a beat each ten seconds is gone within twenty")
  func aClientThatPromisedABeatEachTenSecondsIsGoneWithinTwenty() throws {
    let server = TestServer(.v12, heartBeat: "10000,0")
    let deadline = try #require(server.session.nextDeadline)
    #expect(deadline > 15 * second && deadline < 20 * second)
  }

  @Test("stomp.md 38: version 10 has no heart beats") func version10HasNoHeartBeats() {
    let server = TestServer(.v10, heartBeat: "1000,1000")
    #expect(server.session.nextDeadline == nil)
  }
}
