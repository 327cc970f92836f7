import Contract
import JSON
import MediaModel
import Recording

@testable import ConclaveServer

/// A segment that is not sealed. Its records lie in the input and in their order, and the same bytes without the last record have the same records before it.
func readSegment(_ input: UnsafeMutableRawBufferPointer) {
  guard let header = try? SegmentHeader(parsing: input.bytes) else { return }
  precondition(header.reel > 0 && header.start < SegmentHeader.timeLimit && header.nonce.count == 12)
  let contents = input.bytes.extracting(droppingFirst: SegmentHeader.byteCount)
  let read = SegmentContents(parsing: contents, start: header.start)
  precondition(read.records.count <= SegmentContents.maximumRecords)
  var end = 0
  for record in read.records {
    guard case .frame(let frame) = record else { continue }
    precondition(frame.range.lowerBound >= end + 14 && frame.range.upperBound <= contents.byteCount)
    end = frame.range.upperBound
  }
  if case .closed = read.ending {
    // The end takes 17 bytes.
    let before = SegmentContents(parsing: contents.extracting(0..<contents.byteCount - 17), start: header.start)
    precondition(before.ending == .open && before.records == Array(read.records.dropLast()))
  }
}

/// A page of a reel's segments: one that was added is in the index, and can be written again.
func readReel(_ input: UnsafeMutableRawBufferPointer) {
  guard let page = try? JSONCoding.decode(ReelPage.self, from: UnsafeRawBufferPointer(input)),
    let recording = RecordingID("0d6f3a1c-5b2e-4f7a-9c8d-1e2f3a4b5c6d")
  else { return }
  precondition((try? JSONCoding.decode(ReelPage.self, from: JSONCoding.encode(page))) == page)
  var index = ReelIndex(recording: recording, reel: page.participant)
  guard (try? index.append(page)) != nil else { return }
  precondition(index.entries.count == page.segments.count && page.from == 0)
  guard let last = index.entries.last else { return }
  let head = ReelHead(segments: UInt32(index.entries.count), hash: last.hash, isEnd: true)
  precondition(index.finding(witnesses: [head]) == .complete)
}

/// The headers of an upload and a download: a witness, and in the second half a range of 1,000 bytes.
func readUpload(_ input: UnsafeMutableRawBufferPointer) {
  let lines = input.text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
  if let witness = UploadWitness(lines[0]) {
    let text = "\(witness.at.milliseconds):\(witness.algorithm):\(witness.signature.base64)"
    precondition(UploadWitness(text) == witness)
  }
  guard case .part(let range) = ByteRange.wanted(lines.last, of: 1_000) else { return }
  precondition(!range.isEmpty && range.lowerBound >= 0 && range.upperBound <= 1_000)
}
