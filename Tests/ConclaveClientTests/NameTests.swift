import Contract
import MediaModel
import Testing

@testable import ConclaveClient

/// Names that look like another's.
struct NameTests {
  private func snapshot(_ names: [String]) -> CallSnapshot {
    let members = names.enumerated().map { index, name in
      MemberState(user: UserID("u\(index)")!, name: name, state: .joined, participants: [])
    }
    var state = KeyWorld.pair.state
    state.members = members
    return CallSnapshot(state, speakers: [])
  }

  @Test(arguments: [
    "Alice", "Аlice", "Alicе", "Αlice", "Aliсe", "AIice", "A1ice", "Alice\u{200B}", "Al\u{AD}ice",
    "Alice\u{3164}",
    "A\u{301}lice", "\u{FF21}lice", "Alice\u{200D}",
  ])
  func aLookAlikeIsToldApart(_ name: String) {
    #expect(snapshot(["Alice", name, "Bob"]).usersToTellApart == ["u0", "u1"])
  }

  @Test func aNameOfTwoScriptsIsToldApartByItself() {
    #expect(snapshot(["Bob", "Gеorge", "Ann\u{200B}", "x\u{335}y"]).usersToTellApart == ["u1", "u2", "u3"])
  }

  @Test func honestNamesAreLeftAlone() {
    let names = [
      "Alice", "Bob", "José", "Jose\u{301} M.", "Łukasz", "Мария", "Γιώργος", "नेहा", "محمد", "山田太郎", "김철수",
      "Zoë 👩\u{200D}🚀", "Björk", "Nguyễn",
    ]
    #expect(snapshot(names).usersToTellApart.isEmpty)
  }
}
