import Octets

/// Protects the packets to one peer: many SSRCs under one master key (RFC 3711, RFC 7714).
package final class SRTPSender {
  package let profile: SRTPProfile

  private let transform: SRTPTransform
  private let sources = SourceTable()
  /// The index of the next SRTCP packet of any SSRC; a nonce contains the SSRC, too.
  private var rtcpIndex: UInt32 = 0

  /// - Parameter master: of the lengths that `profile` requires; other lengths are a bug of the caller.
  package init(profile: SRTPProfile, master: SRTPMasterKey) {
    self.profile = profile
    transform = SRTPTransform(profile, master, .seal)
  }

  /// Encrypts an RTP packet into `destination`, which becomes header, prefix, payload, padding, tag.
  /// - Parameters:
  ///   - destination: begins with the finished header and, behind it, `prefixLength` bytes of plain payload that the caller
  ///     has written (a rewritten descriptor, the original sequence number of RTX). At least `headerLength + prefixLength +
  ///     payload.count + padding + profile.rtpOverhead` bytes.
  ///   - headerLength: with CSRCs and extension.
  ///   - payload: the rest of the plain payload; it is encrypted from here straight to its place. Must not overlap `destination`
  ///     except by lying exactly at its place.
  ///   - padding: bytes of RTP padding to append (RFC 3550 5.1); the caller has set the P bit.
  /// - Returns: the packet's length; nil when this sequence number was used before or is over 1024 behind, which would use
  ///   a nonce twice, or when too many SSRCs are in use.
  package func protectRTP(
    _ destination: UnsafeMutableRawBufferPointer, headerLength: Int, prefixLength: Int = 0,
    payload: UnsafeRawBufferPointer, padding: UInt8 = 0
  ) -> Int? {
    let layout = RTPLayout(
      header: headerLength, prefix: prefixLength, payload: payload.count, padding: Int(padding))
    precondition(headerLength >= 12 && destination.count >= layout.plainLength + profile.rtpOverhead)
    guard let packet = destination.baseAddress else { return nil }
    let ssrc = destination.bytes.uint32(at: 8)
    let sequenceNumber = destination.bytes.uint16(at: 2)
    let window: UnsafeMutablePointer<ReplayWindow>
    if let known = sources.find(ssrc) {
      window = known
    } else {
      guard !sources.isFull else { return nil }
      window = sources.insert(ssrc, first: UInt64(sequenceNumber))
    }
    let index = window.pointee.index(of: sequenceNumber)
    guard window.pointee.admits(index) else { return nil }
    window.pointee.record(index)
    if padding > 0 { pad(packet + layout.paddingOffset, padding) }
    transform.sealRTP(packet, layout, payload.baseAddress, ssrc: ssrc, index: index)
    return layout.plainLength + profile.rtpOverhead
  }

  /// Zeros, and their number in the last byte.
  private func pad(_ padding: UnsafeMutableRawPointer, _ count: UInt8) {
    padding.initializeMemory(as: UInt8.self, repeating: 0, count: Int(count))
    padding.storeBytes(of: count, toByteOffset: Int(count) - 1, as: UInt8.self)
  }

  /// Encrypts a compound RTCP packet of `length` bytes in place; `buffer` has `profile.rtcpOverhead` bytes more.
  /// - Returns: the packet's length; nil for less than 8 bytes or after 2^31 packets.
  package func protectRTCP(_ buffer: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
    precondition(buffer.count >= length + profile.rtcpOverhead)
    guard length >= 8, let packet = buffer.baseAddress else { return nil }
    guard rtcpIndex >> 31 == 0 else { return nil }
    transform.sealRTCP(packet, length: length, ssrc: buffer.bytes.uint32(at: 4), index: rtcpIndex)
    rtcpIndex += 1
    return length + profile.rtcpOverhead
  }
}
