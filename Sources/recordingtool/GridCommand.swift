/// The arguments with which ffmpeg puts the files of several reels into one: pictures in a grid, sound mixed. All files count time from the same moment.
struct GridCommand: Equatable {
  struct Input: Equatable {
    var path: String
    var hasVideo: Bool
    var hasSound: Bool
  }

  /// Pixels of a tile.
  static let (width, height) = (640, 360)
  private static let rate = 25

  let arguments: [String]

  /// nil if no file has anything to play.
  init?(_ inputs: [Input], output: String) {
    let used = inputs.filter { $0.hasVideo || $0.hasSound }
    let videos = used.indices.filter { used[$0].hasVideo }
    let sounds = used.indices.filter { used[$0].hasSound }
    guard !used.isEmpty else { return nil }
    var filters: [String] = []
    for (tile, index) in videos.enumerated() {
      // A reel that begins later shows its first picture until then.
      filters.append(
        "[\(index):v:0]fps=fps=\(Self.rate):start_time=0,"
          + "scale=\(Self.width):\(Self.height):force_original_aspect_ratio=decrease,"
          + "pad=\(Self.width):\(Self.height):(ow-iw)/2:(oh-ih)/2,setsar=1[t\(tile)]")
    }
    var columns = 1
    while columns * columns < videos.count { columns += 1 }
    if videos.count > 1 {
      let layout = videos.indices.map {
        "\($0 % columns * Self.width)_\($0 / columns * Self.height)"
      }.joined(separator: "|")
      let tiles = videos.indices.map { "[t\($0)]" }.joined()
      filters.append("\(tiles)xstack=inputs=\(videos.count):layout=\(layout):fill=black[v]")
    }
    if sounds.count > 1 {
      let all = sounds.map { "[\($0):a:0]" }.joined()
      filters.append("\(all)amix=inputs=\(sounds.count):duration=longest:normalize=0[a]")
    }
    var arguments = ["-hide_banner", "-loglevel", "error", "-n"]
    for input in used { arguments += ["-i", input.path] }
    if !filters.isEmpty { arguments += ["-filter_complex", filters.joined(separator: ";")] }
    if !videos.isEmpty {
      arguments += ["-map", videos.count > 1 ? "[v]" : "[t0]", "-c:v", "libvpx", "-b:v", "2M", "-deadline", "good"]
    }
    if let first = sounds.first {
      arguments += ["-map", sounds.count > 1 ? "[a]" : "\(first):a:0", "-c:a", "libopus"]
    }
    self.arguments = arguments + [output]
  }
}
