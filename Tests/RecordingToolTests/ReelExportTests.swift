import Testing

@testable import ConclaveClient
@testable import recordingtool

/// The part of a reel that gets into its file.
struct ReelExportTests {
  private let start: Int64 = 1_800_000_000_000_000
  private let sound = RecordingTrack(number: 4, source: .microphone, codec: .opus, clockRate: 48_000)
  private let camera = RecordingTrack(number: 7, source: .camera, codec: .vp8, clockRate: 90_000)
  private let key: [UInt8] = [0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xB4, 0x00]

  private func picture(_ milliseconds: Int64, isKey: Bool) -> RecordingFrame {
    RecordingFrame(track: 7, time: start + milliseconds * 1_000, isKeyFrame: isKey, bytes: isKey ? key : [0x11, 9])
  }

  private func segment(_ frames: [RecordingFrame], _ gaps: [RecordingGap] = [], tracks: [RecordingTrack]? = nil)
    -> RecordingSegment
  {
    RecordingSegment(
      number: 0, start: start, end: start + 4_000_000, tracks: tracks ?? [sound, camera], frames: frames, gaps: gaps,
      marks: [])
  }

  /// The number of times that a picture's bytes are in the file.
  private func count(_ file: [UInt8], _ bytes: [UInt8]) -> Int {
    file.indices.dropLast(bytes.count - 1).count { Array(file[$0..<$0 + bytes.count]) == bytes }
  }

  @Test func picturesBehindAGapWaitForAKeyFrame() {
    var export = ReelExport(start: start)
    let gap = RecordingGap(track: 7, from: start + 250_000, to: start + 290_000, reason: .network)
    var file = export.add(
      segment(
        [
          picture(0, isKey: false), picture(100, isKey: true), picture(200, isKey: false), picture(300, isKey: false),
          picture(400, isKey: false), picture(500, isKey: true), picture(600, isKey: false),
        ], [gap]))
    let (tail, _) = export.finish()
    file += tail
    #expect(count(file, [0x11, 9]) == 2 && count(file, key) == 2 && export.hasVideo && !export.hasSound)
  }

  /// A gap of the sound does not stop the pictures.
  @Test func aGapOfAnotherTrackIsNone() {
    var export = ReelExport(start: start)
    let gap = RecordingGap(track: 4, from: start, to: start + 150_000, reason: .network)
    let file =
      export.add(segment([picture(100, isKey: true), picture(200, isKey: false)], [gap])) + export.finish().tail
    #expect(count(file, [0x11, 9]) == 1)
  }

  @Test func aCodecThatWebMLacksIsLeftOut() {
    var export = ReelExport(start: start)
    let h264 = RecordingTrack(number: 9, source: .screen, codec: .h264, clockRate: 90_000)
    let frame = RecordingFrame(track: 9, time: start, isKeyFrame: true, bytes: [0, 0, 1, 0x65])
    _ = export.add(segment([frame], tracks: [h264]))
    #expect(export.leftOut == [9] && export.isEmpty)
    let voice = RecordingFrame(track: 4, time: start, isKeyFrame: true, bytes: [0xFC, 1])
    _ = export.add(segment([voice]))
    #expect(!export.isEmpty && export.hasSound && export.head.count == ReelExport.room)
  }

  @Test func theGridIsOneCommand() throws {
    let inputs = [
      GridCommand.Input(path: "1.webm", hasVideo: true, hasSound: true),
      GridCommand.Input(path: "2.webm", hasVideo: false, hasSound: true),
      GridCommand.Input(path: "3.webm", hasVideo: true, hasSound: false),
      GridCommand.Input(path: "none.webm", hasVideo: false, hasSound: false),
      GridCommand.Input(path: "4.webm", hasVideo: true, hasSound: true),
    ]
    let arguments = try #require(GridCommand(inputs, output: "all.webm")).arguments
    let filter = try #require(arguments.firstIndex(of: "-filter_complex").map { arguments[$0 + 1] })
    #expect(filter.contains("[t0][t1][t2]xstack=inputs=3:layout=0_0|640_0|0_360"))
    #expect(filter.contains("[0:a:0][1:a:0][3:a:0]amix=inputs=3") && filter.contains("[2:v:0]fps"))
    #expect(arguments.filter { $0 == "-i" }.count == 4 && !arguments.contains("none.webm"))
    #expect(arguments.last == "all.webm" && arguments.contains("-n"), "it overwrites nothing")
    let single = try #require(GridCommand([inputs[1]], output: "all.webm")).arguments
    #expect(!single.contains("-filter_complex") && single.contains("0:a:0") && !single.contains("-c:v"))
    #expect(GridCommand([inputs[3]], output: "all.webm") == nil)
  }
}
