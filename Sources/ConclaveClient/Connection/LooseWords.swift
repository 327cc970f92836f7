import Contract
import Foundation
import NIOCore

/// The words of a body and the devices that signed them, read one by one: a malformed one is skipped, and the accompanying list still counts (protocol section
/// 5.13).
struct LooseWords {
  /// The body without them.
  let rest: ByteBuffer
  let admissions: [Admission]
  let signers: [Signer]

  /// nil if the body has neither.
  init?(of body: ByteBuffer) {
    let admissions = JSONElements(of: body, at: ["admissions"])
    let rest = admissions?.rest ?? body
    let signers = JSONElements(of: rest, at: ["signers"])
    guard admissions != nil || signers != nil else { return nil }
    self.rest = signers?.rest ?? rest
    self.admissions = Self.elements(admissions)
    self.signers = Self.elements(signers)
  }

  private static func elements<Element: Decodable>(_ parts: JSONElements?) -> [Element] {
    let decoder = JSONDecoder()
    return (parts?.elements ?? []).prefix(LettingIn.limit).compactMap {
      try? decoder.decode(Element.self, from: Data($0.readableBytesView))
    }
  }
}
