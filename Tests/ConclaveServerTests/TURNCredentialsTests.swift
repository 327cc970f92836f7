import Contract
import MediaModel
import Testing

@testable import ConclaveServer

private func ice(_ turn: String) throws -> ICE {
  let configuration = try Configuration(json: Array(#"{"turn":\#(turn)}"#.utf8))
  return try TURNCredentials(try #require(configuration.turn)).ice(
    for: UserID("alice")!, now: Timestamp(milliseconds: 1_790_000_000_500))
}

/// `printf '1790003600:alice' | openssl dgst -sha1 -hmac 'the north pole is cold' -binary | base64`
@Test func aTURNCredentialIsWhatCoturnExpects() throws {
  let servers = try ice(
    #"{"urls":["turn:t.example:3478","turns:t.example"],"secret":"the north pole is cold","seconds":3600}"#
  ).servers
  #expect(
    servers == [
      ICEServer(
        urls: ["turn:t.example:3478", "turns:t.example"], username: "1790003600:alice",
        credential: "NgzKZgCEXA/p5erNyTefE7FUQXA=")
    ])
}

@Test func aSTUNServerGetsNoCredential() throws {
  #expect(try ice(#"{"urls":["stun:t.example"]}"#).servers == [ICEServer(urls: ["stun:t.example"])])
  let both = try ice(#"{"urls":["stun:t.example","turn:t.example"],"secret":"the north pole is cold"}"#).servers
  #expect(both.map(\.urls) == [["stun:t.example"], ["turn:t.example"]] && both[0].credential == nil)
}
