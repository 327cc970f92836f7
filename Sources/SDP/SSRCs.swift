/// The sources of an m-line in which the server sends: the stream's, and that of its retransmissions.
struct SSRCs: Sendable, Hashable {
  var primary: UInt32
  var rtx: UInt32

  /// - Parameter taken: the other sources of the peer connection.
  init(avoiding taken: Set<UInt32>, using generator: inout some RandomNumberGenerator) {
    var taken = taken
    taken.insert(0)
    func fresh() -> UInt32 {
      var ssrc = UInt32.random(in: 1 ... .max, using: &generator)
      while !taken.insert(ssrc).inserted { ssrc &+= 1 }
      return ssrc
    }
    primary = fresh()
    rtx = fresh()
  }
}
