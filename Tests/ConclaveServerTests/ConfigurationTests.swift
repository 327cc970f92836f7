import Testing

@testable import ConclaveServer

@Test func anEmptyFileMeansTheDefaults() throws {
  let configuration = try Configuration(json: Array("{}".utf8))
  #expect(configuration.listen.stomp == 61613)
  #expect(configuration.listen.http == 8080)
  #expect(configuration.media.port == 40000)
  #expect(!configuration.demo)
}

@Test(arguments: [
  (#"{"listen":{"stmp":1}}"#, "listen.stmp"), (#"{"listen":{"stomp":70000}}"#, "listen.stomp"),
  (#"{"media":{"workers":-1}}"#, "media.workers"), (#"{"tls":{"certificate":"x"}}"#, "tls.key"),
  (#"{"auth":{"jwksFile":"x"}}"#, "issuer"), (#"{"log":"loud"}"#, "log"), (#"{"limits":{"body":0}}"#, "limits.body"),
  ("{", "the file"),
  (#"{"auth":{"jwksFile":"x","secretFile":"y","issuer":"i","audience":"a"}}"#, "not both"),
])
func aMistakeIsNamed(json: String, words: String) {
  let error = #expect(throws: ConfigurationError.self) { try Configuration(json: Array(json.utf8)) }
  #expect(error?.description.contains(words) == true)
}

@Test func anAnnouncedNameIsNoAddress() {
  #expect(throws: ConfigurationError.self) { try AnnouncedAddresses(["example.org"]) }
}
