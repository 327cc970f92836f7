import CallMessages
import LinuxIO
import NIOSSL
import Listening

extension Configuration {
  /// Web Push to browsers that are not connected. Without it the server sends none, because it means connections to hosts that
  /// browsers name.
  package struct WebPush: Sendable {
    /// The address at which a push service can reach the operator: a `mailto:` or `https:` URL.
    package var contact = ""
    /// Addresses and networks of push services that are not on the public Internet.
    package var networks: [String] = []
    /// A PEM file of authorities that are trusted in addition to the system's.
    package var trust: String?
  }

  func validateWebPush() throws(ConfigurationError) {
    guard let webPush else { return }
    let contact = webPush.contact
    let isMail = contact.hasPrefix("mailto:") && contact.dropFirst(7).contains("@")
    guard isMail || contact.hasPrefix("https://"), contact.utf8.count <= 256,
      contact.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else { throw ConfigurationError("webPush.contact: take a mailto: or https: URL, as mailto:calls@example.org") }
    for network in webPush.networks where AddressList([network]) == nil {
      throw ConfigurationError(
        "webPush.networks: \"\(network)\" is no address or network; take such as 10.0.0.7 or 10.0.0.0/8")
    }
  }
}

extension Configuration.WebPush {
  /// - Throws: `ConfigurationError` if `trust` cannot be read.
  func check() throws(ConfigurationError) {
    do {
      if let trust { _ = try NIOSSLCertificate.fromPEMFile(trust) }
    } catch {
      throw ConfigurationError("webPush.trust: \(trust ?? "") cannot be read as PEM")
    }
  }

  /// - Throws: `ConfigurationError` if `trust` cannot be read, or there is no thread.
  func post() throws(ConfigurationError) -> PushPost {
    try check()
    do throws(SystemError) {
      return try PushPost(addresses: PushAddresses(allowed: AddressList(networks)), trust: trust)
    } catch {
      throw ConfigurationError("webPush: \(error)")
    }
  }
}
