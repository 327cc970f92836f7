import Contract
import Testing

/// The displayed names of people and devices.
struct DisplayNameTests {
  @Test(arguments: [
    "Ana", "a", "7", "-", "é", "e\u{301}", "Ana\u{200D}", "مريم", "אב\u{200F}", "नमिता", "山田", "ㄱ", "한",
    "👩\u{200D}👩\u{200D}👧",
    "❤\u{FE0F}", "🇧🇪", "Ana Maria", "¡", "€", "⠁", "ⴰ", "𝄞",
  ])
  func aNameThatCanBeSeenIsOne(name: String) { #expect(name.isDisplayName) }

  /// Fonts that have them draw each of these as nothing or as a gap.
  @Test(arguments: [
    ("nothing", ""), ("space", " "), ("no-break space", "\u{A0}"), ("ideographic space", "\u{3000}"),
    ("en quad", "\u{2000}"), ("soft hyphen", "\u{AD}"), ("combining grapheme joiner", "\u{34F}"),
    ("Arabic letter mark", "\u{61C}"), ("Hangul choseong filler", "\u{115F}"), ("Hangul jungseong filler", "\u{1160}"),
    ("Hangul filler", "\u{3164}"), ("halfwidth Hangul filler", "\u{FFA0}"), ("Khmer inherent vowel", "\u{17B4}"),
    ("Mongolian variation selector", "\u{180B}"), ("Mongolian vowel separator", "\u{180E}"),
    ("zero width space", "\u{200B}"), ("zero width non-joiner", "\u{200C}"), ("zero width joiner", "\u{200D}"),
    ("left-to-right mark", "\u{200E}"), ("right-to-left override", "\u{202E}"), ("word joiner", "\u{2060}"),
    ("invisible times", "\u{2062}"), ("pop directional isolate", "\u{2069}"), ("variation selector", "\u{FE0F}"),
    ("byte order mark", "\u{FEFF}"), ("braille blank", "\u{2800}"), ("musical null notehead", "\u{1D159}"),
    ("musical begin beam", "\u{1D173}"), ("tag", "\u{E0041}"), ("language tag", "\u{E0001}"),
    ("variation selector 17", "\u{E0100}"), ("shorthand format", "\u{1BCA0}"), ("private use", "\u{E000}"),
    ("unassigned", "\u{E0FFF}"), ("combining acute", "\u{301}"), ("enclosing circle", "\u{20DD}"),
    ("several", " \u{FE0F}\u{200D}\u{3164}\u{E0041}\u{2800} "),
  ])
  func aNameOfWhichNothingCanBeSeenIsNone(what: String, name: String) {
    #expect(!name.isDisplayName, "\(what)")
    #expect("\(name)A\(name)".isDisplayName, "\(what) beside a letter")
  }

  @Test(arguments: ["\u{0}", "\u{7}", "\n", "\r", "\t", "\u{7F}", "\u{85}", "\u{9B}", "\u{2028}", "\u{2029}"])
  func aNameIsOneLineWithoutControls(character: String) { #expect(!"A\(character)B".isDisplayName) }
}
