import Foundation

/// The look of a name: names with the same skeleton can pass for each other (Unicode UTS #39 section 4, with a table of confusables of Latin letters
/// only).
struct NameSkeleton: Hashable {
  private var text: String

  init(_ name: String) {
    var text = ""
    for scalar in name.decomposedStringWithCompatibilityMapping.unicodeScalars {
      guard !Self.isInvisible(scalar), !Self.joins(scalar), scalar.properties.generalCategory != .nonspacingMark else {
        continue
      }
      let alike = Self.alike[Character(scalar)] ?? Character(scalar)
      for lower in alike.lowercased() { text.append(Self.alike[lower] ?? lower) }
    }
    self.text = text.replacing("rn", with: "m").replacing("vv", with: "w")
  }

  /// Whether a name has letters of two scripts that look alike, a mark that is not part of a letter, or something invisible. Such a name may pass for another
  /// that the skeleton does not match.
  static func isDoubtful(_ name: String) -> Bool {
    var scripts: Set<Script> = []
    var isAlphabetic = false
    for scalar in name.precomposedStringWithCanonicalMapping.unicodeScalars {
      if isInvisible(scalar) || isAlphabetic && scalar.properties.generalCategory == .nonspacingMark { return true }
      let script = Script(scalar)
      if let script { scripts.insert(script) }
      isAlphabetic = script != nil
    }
    return scripts.count > 1
  }

  /// The scripts whose letters look alike.
  private enum Script {
    case latin, greek, cyrillic, armenian, cherokee

    init?(_ scalar: Unicode.Scalar) {
      guard scalar.properties.isAlphabetic else { return nil }
      switch scalar.value {
      case 0x41...0x24f, 0x1e00...0x1eff, 0xff21...0xff5a: self = .latin
      case 0x370...0x3ff, 0x1f00...0x1fff: self = .greek
      case 0x400...0x52f, 0x1c80...0x1c8f, 0x2de0...0x2dff, 0xa640...0xa69f: self = .cyrillic
      case 0x530...0x58f: self = .armenian
      case 0x13a0...0x13ff, 0xab70...0xabbf: self = .cherokee
      default: return nil
      }
    }
  }

  /// Format characters, fillers and blank letters.
  private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800: true
    default:
      !joins(scalar) && (scalar.properties.isDefaultIgnorableCodePoint || scalar.properties.generalCategory == .format)
    }
  }

  /// The joiner and the variation selectors, of which emoji are composed.
  private static func joins(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value == 0x200d || (0xfe00...0xfe0f).contains(scalar.value)
  }

  /// Letters and digits that look like a Latin one.
  private static let alike: [Character: Character] = {
    let rows: [(Character, String)] = [
      ("l", "I1|ІӀΙᏞ"), ("i", "іι"), ("o", "0OОΟοоօ"), ("a", "АаΑαᎪ"), ("b", "ВΒЬьᏴ"), ("c", "СсϹϲᏟ"), ("d", "ԁᎠ"),
      ("e", "ЕеΕᎬ"), ("g", "ԌᏀ"),
      ("h", "НΗһհᎻ"), ("j", "ЈјᎫ"), ("k", "КкΚκᏦ"), ("m", "МΜᎷ"), ("n", "Νոռ"), ("p", "РрΡρᏢ"), ("q", "ԛզ"),
      ("r", "ᎡᏒ"), ("s", "ЅѕᏚ"),
      ("t", "ТтΤτᎢ"), ("u", "սυ"), ("v", "νѵᏙ"), ("w", "ԜԝᎳ"), ("x", "ХхΧχ"), ("y", "УуΥγ"), ("z", "ΖᏃ"),
    ]
    var table: [Character: Character] = [:]
    for (latin, letters) in rows { for letter in letters { table[letter] = latin } }
    return table
  }()
}
