import MediaModel
import RTP

@testable import Forwarding

/// A report block without loss.
func report(of ssrc: UInt32) -> ReportBlock {
  ReportBlock(
    ssrc: ssrc, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0, lastSenderReport: 0,
    delaySinceLastSenderReport: 0)
}

/// The number of workers for the peers of a simulated call. Slow builds use the case that runs more code.
let workerCounts = isRelease ? [1, 2] : [2]

func instant(_ milliseconds: UInt64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

/// A packet that fills the memory, with this number and the same timestamp for all.
func packet(_ index: UInt64, in memory: UnsafeMutableRawBufferPointer) -> Packet {
  RTPHeader.write(
    marker: false, payloadType: 96, sequenceNumber: UInt16(truncatingIfNeeded: index), timestamp: 7, ssrc: 1,
    into: memory)
  return Packet(
    base: memory.baseAddress!, length: memory.count, header: RTPHeader(parsing: memory.bytes)!, index: index)
}
