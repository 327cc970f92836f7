import CallMessages
import Foundation
import MediaModel
import Testing

@testable import ConclaveServer

@Test func anEmptyFileMeansTheDefaults() throws {
  let configuration = try Configuration(json: Array("{}".utf8))
  #expect(configuration.listen.stomp == 61613)
  #expect(configuration.listen.http == 8080)
  #expect(configuration.media.port == 30000 && configuration.media.tcp)
  #expect(!configuration.demo)
}

@Test(arguments: [
  (#"{"listen":{"stmp":1}}"#, "listen.stmp"), (#"{"listen":{"stomp":70000}}"#, "listen.stomp"),
  (#"{"listen":{"metrics":"9464"}}"#, #"listen.metrics: take a port, as 9464, or an address"#),
  (#"{"listen":{"metrics":"::1:9464"}}"#, "[::1]:9464"), (#"{"listen":{"metrics":"127.0.0.1:70000"}}"#, "not a port"),
  (#"{"media":{"port":"8080"}}"#, "media.port: take a number from 0 to 65535, without quotes"),
  (#"{"log":"warn"}"#, #"log: "warn" is none; take one of debug, info, notice, warning, error"#),
  (#"{"media":{"workers":-1}}"#, "media.workers"), (#"{"media":{"tcp":"no"}}"#, "media.tcp"),
  (#"{"media":{"voices":0}}"#, "media.voices"),
  (#"{"media":{"historyMiB":0}}"#, "media.historyMiB"),
  (#"{"media":{"historyMiB":9999999999}}"#, "media.historyMiB"),
  (#"{"media":{"callShare":0}}"#, "media.callShare"),
  (#"{"media":{"publishing":{"audioPackets":0}}}"#, "media.publishing.audioPackets"),
  (#"{"media":{"publishing":{"participantKbps":99999999}}}"#, "media.publishing.participantKbps"),
  (#"{"tls":{"certificate":"x"}}"#, "tls.key"),
  (#"{"listen":{"origins":["https://app.example/"]}}"#, #"take "https://app.example""#),
  (#"{"listen":{"origins":["app.example"]}}"#, #"take "https://app.example""#),
  (#"{"listen":{"origins":["https://*.example.com"]}}"#, "by itself"),
  (#"{"auth":{"userClaim":""}}"#, "auth.userClaim"),
  (#"{"auth":{"jwksFile":"x"}}"#, "issuer"), (#"{"log":"loud"}"#, "log"),
  (#"{"logFormat":"xml"}"#, "logFormat"), (#"{"limits":{"body":0}}"#, "limits.body"),
  ("{", "the file"),
  (#"{"auth":{"jwksFile":"x","secretFile":"y","issuer":"i","audience":"a"}}"#, "not several"),
  (#"{"auth":{"jwksFile":"x","jwksURL":"https://id.example/keys","issuer":"i","audience":"a"}}"#, "not several"),
  (#"{"auth":{"jwksURL":"file:///keys","issuer":"i","audience":"a"}}"#, "auth.jwksURL"),
  (#"{"auth":{"jwksURL":"https://id.example/keys","issuer":"","audience":"a"}}"#, "issuer"),
  (#"{"listen":{"metrics":70000}}"#, "listen.metrics"),
  (#"{"destinations":["/elsewhere"]}"#, "destinations"), (#"{"destinations":["/topic/calls/x"]}"#, "own"),
  (#"{"destinations":["/exchange/service"]}"#, "own"), (#"{"destinations":["/topic/../app"]}"#, "destinations"),
  (#"{"roles":{"interpreter":{"neverStart":true}}}"#, "roles.interpreter.neverStart"),
  (#"{"listen":{"proxies":["10.0.0.0/8","lan"]}}"#, #"listen.proxies: "lan" is no address or network"#),
  (#"{"webPush":{"contact":"mailto:a@b.example","networks":["10.0.0.0/99"]}}"#, #"webPush.networks: "10.0.0.0/99" is"#),
  (#"{"webhooks":{"url":"https://a.example"}}"#, "webhooks.secretFile: is missing; set it, or webhooks.secret"),
  (#"{"webhooks":{"url":"ftp://a.example","secret":"s"}}"#, "webhooks.url"),
  (#"{"webhooks":{"url":"https://u:p@a.example","secret":"s"}}"#, "not sent"),
  (#"{"webhooks":{"url":"https://a.example","secret":"s","secretFile":"f"}}"#, "webhooks.secret"),
  (#"{"webhooks":{"url":"https://a.example","secret":"s","events":["call.ends"]}}"#, "call.ended"),
  (#"{"authorize":{"url":"https://a.example"}}"#, "authorize"),
  (#"{"turn":{"urls":["turn:t.example"]}}"#, "static-auth-secret"),
  (#"{"turn":{"urls":[],"secret":"s"}}"#, "turn.urls"),
  (#"{"turn":{"urls":["https://t.example"],"secret":"s"}}"#, "7065"),
  (#"{"turn":{"urls":["turn:t.example"],"secret":"s","seconds":1}}"#, "turn.seconds"),
  (#"{"links":{"days":366}}"#, "links.days"), (#"{"links":{"days":-1}}"#, "links.days"),
  (#"{"links":{"ofUser":0}}"#, "links.ofUser"),
  (#"{"history":{"days":0}}"#, "history.days"), (#"{"drain":-1}"#, "drain"),
])
func aMistakeIsNamed(json: String, words: String) {
  let error = #expect(throws: ConfigurationError.self) { try Configuration(json: Array(json.utf8)) }
  #expect(error?.description.contains(words) == true)
}

@Test func allMistakesAreNamedAtOnce() {
  let json = #"{"drain":-1,"history":{"days":0},"limits":{"body":0,"headers":0},"listen":{"http":70000,"stomp":-1}}"#
  let error = #expect(throws: ConfigurationError.self) { try Configuration(json: Array(json.utf8)) }
  let lines = error?.description.split(separator: "\n").map { $0.prefix { $0 != ":" } } ?? []
  #expect(
    Set(lines) == ["drain", "history.days", "limits.body", "limits.headers", "listen.http", "listen.stomp"]
      && lines.count == 6)
}

@Test(arguments: [
  (#"{"listen":{"http":9,"stomp":9}}"#, "listen.http"), (#"{"listen":{"metrics":8080}}"#, "listen.metrics"),
  (#"{"media":{"port":8080}}"#, "media.port"), (#"{"listen":{"http":"127.0.0.1:9","metrics":9}}"#, "listen.metrics"),
  (#"{"listen":{"http":"127.0.0.1:9","metrics":"127.0.0.1:9"}}"#, "listen.metrics"),
  (#"{"listen":{"stompTLS":8080},"tls":{"certificate":"c","key":"k"}}"#, "listen.http"),
])
func aPortThatTwoMembersNameIsAMistake(json: String, name: String) {
  let error = #expect(throws: ConfigurationError.self) { try Configuration(json: Array(json.utf8)) }
  #expect(error?.description.contains("\(name): ") == true && error?.description.contains("already") == true)
}

@Test(arguments: [
  #"{"listen":{"http":0,"stomp":0,"metrics":0},"media":{"port":0}}"#, #"{"listen":{"stompTLS":8080}}"#,
  #"{"media":{"port":8080,"tcp":false}}"#, #"{"listen":{"http":"127.0.0.1:9","metrics":"[::1]:9"}}"#,
])
func portsThatAreNotOpenedTogetherMayBeEqual(json: String) throws { _ = try Configuration(json: Array(json.utf8)) }

@Test(arguments: ["http://127.0.0.1:4318", "http://127.0.0.1:4318/", "https://c.example/otlp"])
func tracesHaveAPathBelowTheCollectorsAddress(url: String) throws {
  let configuration = try Configuration(json: Array(#"{"telemetry":{"otlp":"\#(url)"}}"#.utf8))
  let base = url.hasSuffix("/") ? String(url.dropLast()) : url
  #expect(configuration.telemetry?.traces == base + "/v1/traces")
}

/// Linux uses these for outgoing connections, so that one could be taken at a start. The kernel's default is 32768 to
/// 60999; this machine's may be lower.
@Test func defaultPortsAreBelowThoseOfOutgoingConnections() {
  let range = try? String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
  let here = range?.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } ?? 32_768
  let configuration = Configuration()
  let listen = configuration.listen
  let media = configuration.media.port..<configuration.media.port + 256
  let limit = min(here, 32_768)
  #expect(media.upperBound <= limit && listen.http.port < limit)
  // 61613 and 61614 are STOMP's registered ports, above the kernel's default range.
  for port in [listen.stomp?.port ?? 0, listen.stompTLS.port] { #expect(!(32_768...60_999).contains(port)) }
}

@Test func pagesWithoutAHostCanBeNamed() throws {
  let configuration = try Configuration(json: Array(#"{"listen":{"origins":["null","file://"]}}"#.utf8))
  #expect(configuration.listen.origins == ["null", "file://"])
}

@Test func theSTOMPPortWithoutTLSCanBeClosed() throws {
  #expect(try Configuration(json: Array(#"{"listen":{"stomp":null}}"#.utf8)).listen.stomp == nil)
}

@Test func aStateFolderWhoseSocketHasNoNameIsRefused() {
  var configuration = Configuration()
  configuration.state = "/" + String(repeating: "x", count: 100)
  #expect(throws: Never.self) { try configuration.validate() }
  configuration.state += "y"
  let error = #expect(throws: ConfigurationError.self) { try configuration.validate() }
  #expect(error?.description.contains("107 bytes") == true)
}

@Test func aKeySetMayBeAURL() throws {
  let text = #"{"auth":{"jwksURL":"https://id.example/keys","issuer":"i","audience":"a"}}"#
  #expect(try Configuration(json: Array(text.utf8)).auth.jwksURL == "https://id.example/keys")
}

@Test func mediaMembersAreRead() throws {
  let text =
    #"{"media":{"workers":2,"port":0,"tcp":false,"announce":["192.0.2.1"],"voices":5,"callShare":9,"publishing":{"videoKbps":7000}}}"#
  let media = try Configuration(json: Array(text.utf8)).media
  #expect(media.workers == 2 && media.port == 0 && !media.tcp && media.announce == ["192.0.2.1"])
  #expect(media.voices == 5 && media.callShare == 9)
  #expect(media.publishing.videoKbps == 7_000 && media.publishing.audioPackets == 200)
}

@Test func anAnnouncedNameIsNoAddress() {
  #expect(throws: ConfigurationError.self) { try AnnouncedAddresses(["example.org"]) }
}

@Test func backEndMembersAreRead() throws {
  let text = #"""
    {"destinations":["/topic/chat.","/queue/work"],"roles":{"interpreter":{"neverStarts":true},"nurse":{}},
     "webhooks":{"url":"https://a.example/hook","secretFile":"/s","events":["call.ended"]},
     "authorize":{"url":"https://a.example/may"},"history":{"days":30},"drain":0,
     "links":{"days":0,"ofUser":3},
     "turn":{"urls":["turn:t.example:3478?transport=udp"],"secret":"s"}}
    """#
  let configuration = try Configuration(json: Array(text.utf8))
  #expect(configuration.destinations == ["/topic/chat.", "/queue/work"])
  #expect(configuration.roles.filter(\.value.neverStarts).map(\.key) == ["interpreter"])
  #expect(configuration.webhooks?.events == ["call.ended"] && configuration.turn?.seconds == 86_400)
  #expect(configuration.history.days == 30 && configuration.drain == 0)
  #expect(configuration.links.days == 0 && configuration.links.ofUser == 3)
  #expect(!"\(configuration)".contains("/s\"") && "\(Secret.text("s"))" == "secret")
}

@Test func aShortSecretIsRefused() {
  #expect(throws: ConfigurationError.self) { try Secret.text("  short \n").bytes("webhooks", minimum: 32) }
  #expect(throws: ConfigurationError.self) { try Secret.file("/nowhere").bytes("webhooks", minimum: 1) }
  let turn = Configuration.TURN(urls: ["turn:t.example"], secret: .text("fifteen bytes .."), seconds: 60)
  #expect(throws: Never.self) { try TURNCredentials(turn) }
  let short = Configuration.TURN(urls: ["turn:t.example"], secret: .text("fifteen bytes ."), seconds: 60)
  #expect(throws: ConfigurationError.self) { try TURNCredentials(short) }
}

@Test func aSecretThatOthersMayReadIsRefused() throws {
  let file = NSTemporaryDirectory() + "secret-\(UInt64.random(in: .min ... .max))"
  defer { try? FileManager.default.removeItem(atPath: file) }
  let secret = Data(String(repeating: "s", count: 32).utf8)
  #expect(FileManager.default.createFile(atPath: file, contents: secret, attributes: [.posixPermissions: 0o600]))
  #expect(try Secret.file(file).bytes("turn", minimum: 16).count == 32)
  try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
  let error = #expect(throws: ConfigurationError.self) { try Secret.file(file).bytes("turn", minimum: 16) }
  #expect(error?.description.contains("chmod 600 \(file)") == true)
}

/// A server starts with an expired certificate, and clients would fail without a message.
@Test func checkConfigTellsThatTheCertificateHasExpired() throws {
  let vectors = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../ListeningTests/Vectors").path
  let text = #"{"tls":{"certificate":"\#(vectors)/test-certificate.pem","key":"\#(vectors)/test-key.pem"}}"#
  let configuration = try Configuration(json: Array(text.utf8))
  // From `openssl x509 -enddate`.
  let end = Timestamp(milliseconds: 4_948_834_091_000)
  #expect(Server.expiryRemark(configuration, now: end - .seconds(1)) == nil)
  #expect(Server.expiryRemark(configuration, now: end)?.contains("expired at 2126-10-28T04:08:11Z") == true)
}
