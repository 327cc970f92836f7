import Crypto
import Foundation

/// Where participants get their tokens: minted with the server's secret, or from a file.
struct TokenSource: Sendable {
  struct Account: Sendable {
    var user: String
    var device: String
    var token: String
  }

  struct Failure: Error, CustomStringConvertible { var description: String }

  let accounts: [Account]

  init(state: String?, secret: String?, tokens: String?, count: Int) throws {
    if let tokens {
      let lines = try Self.text(tokens).split(whereSeparator: \.isNewline).map(String.init)
      guard lines.count >= count else { throw Failure(description: "\(tokens): \(count) tokens are needed") }
      accounts = try lines.prefix(count).map(Self.account)
    } else {
      let file = secret ?? (state ?? "/var/lib/conclave") + "/secret"
      let key = SymmetricKey(data: Data(try Self.text(file).trimmingCharacters(in: .whitespacesAndNewlines).utf8))
      // Each run has its own users, so that calls of an earlier run do not ring.
      let run = String(UInt32.random(in: 0...UInt32.max), radix: 36)
      accounts = (1...count).map { Self.mint(user: "load-\(run)-\($0)", device: "loadtest", key: key) }
    }
  }

  private static func text(_ file: String) throws -> String {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw Failure(
        description:
          "\(file): cannot be read; name the server's state folder with --state, or a file with --secret or --tokens")
    }
    return text
  }

  /// A JWT by HS256 (RFC 7519), valid for a day.
  private static func mint(user: String, device: String, key: SymmetricKey) -> Account {
    let expiry = Int(Date().timeIntervalSince1970) + 86_400
    let claims = #"{"sub":"\#(user)","device":"\#(device)","exp":\#(expiry)}"#
    let signed = base64URL(Data(#"{"alg":"HS256","typ":"JWT"}"#.utf8)) + "." + base64URL(Data(claims.utf8))
    let signature = HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: key)
    return Account(user: user, device: device, token: signed + "." + base64URL(Data(signature)))
  }

  /// The user and device of a token; the server will check its signature.
  private static func account(_ token: String) throws -> Account {
    struct Claims: Decodable {
      var sub: String
      var device: String?
    }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let data = data(base64URL: String(parts[1])),
      let claims = try? JSONDecoder().decode(Claims.self, from: data)
    else { throw Failure(description: "a token is no JWT") }
    return Account(user: claims.sub, device: claims.device ?? "loadtest", token: token)
  }

  private static func base64URL(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static func data(base64URL text: String) -> Data? {
    let padded = text.replacing("-", with: "+").replacing("_", with: "/")
    return Data(base64Encoded: padded + String(repeating: "=", count: (4 - padded.count % 4) % 4))
  }
}
