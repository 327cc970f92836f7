import Foundation
import Testing

@testable import loadtest

/// The figures of each second, and their files.
struct SeriesTests {
  private func reading(at seconds: Double, cpu: Double = 0.2, _ change: (inout Tally) -> Void) -> Reading {
    var tally = Tally()
    change(&tally)
    return Reading(
      nanoseconds: UInt64(seconds * 1e9), threads: [(UInt64(seconds * 1e9), tally)], joined: 7,
      ownCPU: UInt64(seconds * cpu * 1e9), serverCPU: UInt64(seconds * 5e8), serverMemory: 50 << 20)
  }

  @Test func aSampleIsTheDifferenceOfTwoReadings() {
    let before = reading(at: 10) { tally in
      tally.packetsReceived = 1_000
      tally.abandoned = 5
      tally.threadNanoseconds = 100_000_000
      tally.latency.record(nanoseconds: 900_000_000)
    }
    let after = reading(at: 12) { tally in
      tally.packetsReceived = 2_980
      tally.abandoned = 25
      tally.bytesReceived = 250_000
      tally.threadNanoseconds = 1_900_000_000
      tally.socketDrops = 3
      tally.latency.record(nanoseconds: 900_000_000)
      tally.latency.record(nanoseconds: 2_000_000)
    }
    let sample = after.sample(since: before, start: 5_000_000_000, phase: "measuring")
    #expect(sample.seconds == 7 && sample.joined == 7 && sample.phase == "measuring")
    #expect(sample.packetsPerSecond == 990 && sample.megabitsPerSecond == 1)
    #expect(sample.loss == 0.01 && sample.socketDrops == 3)
    // The slow frame came earlier.
    #expect(sample.maxMs.map { 1.9...2.1 ~= $0 } == true)
    #expect(sample.serverCPU.map { abs($0 - 0.5) < 1e-6 } == true && abs(sample.ownCPU - 0.2) < 1e-6)
    #expect(abs(sample.busiestThread - 0.9) < 1e-6 && sample.serverMemory == 52_428_800)
    #expect(OwnUsage(from: before, to: after).bottleneck?.contains("90 %") == true)
    let quiet = after.sample(since: after, start: 0, phase: "")
    #expect(quiet.p99Ms == nil && quiet.packetsPerSecond == 0 && quiet.loss == 0)
  }

  @Test func droppedDatagramsMakeTheLoadTestTheBottleneck() {
    let before = reading(at: 1) { _ in }
    #expect(OwnUsage(from: before, to: reading(at: 2) { _ in }).bottleneck == nil)
    #expect(
      OwnUsage(from: before, to: reading(at: 2) { $0.socketDrops = 4 }).bottleneck?.contains("4 datagrams") == true)
  }

  @Test func aProgramThatFillsItsProcessorsIsTheBottleneck() {
    let (before, after) = (reading(at: 1, cpu: 1.8) { _ in }, reading(at: 2, cpu: 1.8) { _ in })
    #expect(OwnUsage(from: before, to: after, processors: 2).bottleneck?.contains("180 %") == true)
    #expect(OwnUsage(from: before, to: after, processors: 3).bottleneck == nil)
  }

  @Test func theLatenessOfTimersIsThatOfTheTimeBetweenTheReadings() {
    let before = reading(at: 1) { $0.lateness.record(nanoseconds: 80_000_000) }
    let after = reading(at: 2) { tally in
      tally.lateness.record(nanoseconds: 80_000_000)
      for _ in 0..<100 { tally.lateness.record(nanoseconds: 3_000_000) }
    }
    let lateness = OwnUsage(from: before, to: after).lateness
    #expect(lateness.count == 100 && 2.9...3.2 ~= lateness.milliseconds(atShare: 0.99))
  }

  private var samples: [Sample] {
    (1...5).map { second in
      var sample = Sample()
      sample.seconds = Double(second)
      sample.phase = second < 3 ? "joining, slowly" : "measuring"
      sample.packetsPerSecond = 1_000
      sample.p99Ms = second < 3 ? nil : 1.25
      sample.serverCPU = 0.5
      return sample
    }
  }

  @Test func theCSVHasALineForEachSecondAndAFieldForEachFigure() {
    let lines = CSV.text(samples).split(separator: "\r\n")
    #expect(lines.count == 6)
    #expect(lines[0].hasPrefix("seconds,phase,joined,packets_per_second,"))
    #expect(lines[1].contains("\"joining, slowly\",0,1000,"))
    let width = lines[0].split(separator: ",").count
    for line in lines.dropFirst(3) {
      #expect(line.split(separator: ",", omittingEmptySubsequences: false).count == width)
    }
  }

  @Test func thePageHoldsEachSeriesAndNothingFromElsewhere() {
    var histogram = LatencyHistogram()
    for value in 1...200 { histogram.record(nanoseconds: UInt64(value) * 100_000) }
    let charts = Chart.all(samples, latency: histogram, joins: histogram)
    let page = Page(
      title: "<b>&\"", subtitle: "", isOK: false, notes: ["<script>alert(1)</script>"], facts: [], text: "</pre>",
      charts: charts
    ).html
    for title in [
      "One-way latency", "Latency over time", "Packets received", "Loss", "CPU", "Memory of the server", "Joined",
      "Join times",
    ] { #expect(page.contains("<figcaption>\(title) "), "\(title)") }
    // Memory is not known in these samples.
    #expect(page.components(separatedBy: "<svg").count - 1 == charts.count - 1)
    #expect(page.components(separatedBy: "<rect").count - 1 > 20)
    #expect(page.contains("class=\"key c0\">server<") && page.contains(">its busiest media thread<"))
    for foreign in ["<script", "http:", "https:", "src=", "href=", "url(", "<b>", "NaN", "inf,"] {
      #expect(!page.contains(foreign), "\(foreign)")
    }
    // A line begins with its first figure.
    #expect(page.contains("points=\"240.0,"))
  }

  @Test(arguments: [[], [0], [5], [0.0003, 12_345_678], [-1, 3]]) func anyFiguresMakeAPlot(_ values: [Double]) {
    let line = Chart.Line(name: "n", points: values.enumerated().map { (Double($0.offset), $0.element) })
    let html = Chart(title: "t", unit: "u", content: .lines([line], xUnit: "s")).html
    #expect(html.contains("<figure>") && !html.contains("nan") && !html.contains("inf"))
    var histogram = LatencyHistogram()
    for value in values where value >= 0 { histogram.record(nanoseconds: UInt64(value * 1_000)) }
    let bars = histogram.bars(10)
    #expect(bars.reduce(0) { $0 + $1.count } == histogram.count)
    #expect(Chart(title: "t", unit: "u", content: .bars(bars)).html.contains("<figure>"))
  }

  @Test func theDifferenceOfTwoHistogramsIsTheTimeBetweenThem() {
    var histogram = LatencyHistogram()
    histogram.record(nanoseconds: 5_000_000)
    let earlier = histogram
    histogram.record(nanoseconds: 1_000_000)
    let rest = histogram.since(earlier)
    #expect(rest.count == 1 && rest.maximumMilliseconds < 1.1 && rest.milliseconds(atShare: 1) < 1.1)
    #expect(histogram.since(histogram).count == 0)
  }

  @Test func trafficIsComparedAmongThoseThatCount() {
    let key = TrackKey(participant: 1, track: 1)
    let sender = PeerTraffic(index: 0, call: 0, sent: [key: Traffic(frames: 10, packets: 20)], received: [:])
    let whole = PeerTraffic(index: 1, call: 0, sent: [:], received: [key: Traffic(frames: 10, packets: 20)])
    let part = PeerTraffic(index: 2, call: 0, sent: [:], received: [key: Traffic(frames: 5, packets: 10)])
    #expect(PacketArrivals([sender, whole, part]).loss == 0.25)
    #expect(PacketArrivals([sender, whole, part]) { $0 != 2 }.isComplete)
    #expect(!PacketArrivals([sender, whole, part]) { $0 != 0 }.isComplete)
    var speaker = sender
    speaker.sent[TrackKey(participant: 1, track: 2)] = Traffic(frames: 10, packets: 60, isVideo: true)
    #expect(PacketArrivals([speaker, whole]).loss == 0.75)
    #expect(PacketArrivals([speaker, whole], isAudioOnly: true).isComplete)
    let later = PeerTraffic(index: 2, call: 0, sent: [:], received: [key: Traffic(frames: 15, packets: 30)])
    #expect(later.since(part).received[key] == Traffic(frames: 10, packets: 20))
    #expect(later.since(nil).received == later.received)
  }
}
