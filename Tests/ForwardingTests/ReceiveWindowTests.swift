import Testing

@testable import Forwarding

struct ReceiveWindowTests {
  @Test func takesEachIndexOnce() {
    var window = ReceiveWindow()
    #expect(window.insert(70_000) == .new)
    #expect(window.insert(70_000) == .duplicate)
    #expect(window.insert(70_003) == .new)
    #expect(window.insert(70_001) == .new)
    #expect(window.insert(70_001) == .duplicate)
    #expect(window.insert(70_002) == .new)
  }

  @Test func forgetsWhatIsAWindowBehind() {
    var window = ReceiveWindow()
    #expect(window.insert(70_000) == .new)
    #expect(window.insert(70_000 + ReceiveWindow.size - 1) == .new)
    #expect(window.insert(70_000) == .duplicate)
    #expect(window.insert(70_000 + ReceiveWindow.size) == .new)
    #expect(window.insert(70_000) == .late)
    #expect(window.insert(90_000) == .new)
    #expect(window.insert(89_999) == .new)
  }
}
