package import MediaModel
import Octets

/// Opens packets from one peer: checks the tag, refuses replays, decrypts in place (RFC 3711, RFC 7714).
package final class SRTPReceiver {
  package let profile: SRTPProfile

  private let transform: SRTPTransform
  private let rtpSources = SourceTable()
  private let rtcpSources = SourceTable()

  /// - Parameter master: of the lengths that `profile` requires; other lengths are a bug of the caller.
  package init(profile: SRTPProfile, master: SRTPMasterKey) {
    self.profile = profile
    transform = SRTPTransform(profile, master, .open)
  }

  /// - Parameter datagram: the whole SRTP packet; any bytes are safe.
  package func unprotectRTP(_ datagram: UnsafeMutableRawBufferPointer) -> Unprotected {
    guard let packet = datagram.baseAddress, datagram.count <= UInt16.max,
      let header = RTPLayout.headerLength(datagram.bytes), header + profile.rtpOverhead <= datagram.count
    else { return .dropped(.malformed) }
    let ssrc = datagram.bytes.uint32(at: 8)
    let sequenceNumber = datagram.bytes.uint16(at: 2)
    let known = rtpSources.find(ssrc)
    let index = known?.pointee.index(of: sequenceNumber) ?? UInt64(sequenceNumber)
    if let known {
      guard known.pointee.admits(index) else { return .dropped(.replayed) }
    } else if rtpSources.isFull {
      return .dropped(.tooManySources)
    }
    guard transform.openRTP(packet, length: datagram.count, header: header, ssrc: ssrc, index: index) else {
      return .dropped(.unauthenticated)
    }
    // Only an authentic packet may create a source or move its window (RFC 3711 section 3.3, step 7).
    (known ?? rtpSources.insert(ssrc, first: index)).pointee.record(index)
    return .packet(length: datagram.count - profile.rtpOverhead)
  }

  /// - Parameter datagram: the whole SRTCP packet; any bytes are safe.
  package func unprotectRTCP(_ datagram: UnsafeMutableRawBufferPointer) -> Unprotected {
    guard let packet = datagram.baseAddress, 8 + profile.rtcpOverhead...Int(UInt16.max) ~= datagram.count,
      datagram.bytes[0] >> 6 == 2
    else { return .dropped(.malformed) }
    let plain = datagram.count - profile.rtcpOverhead
    // The index precedes the tag of HMAC-SHA1 (RFC 3711 section 3.4) but follows that of GCM (RFC 7714 section 9.1).
    let trailer = datagram.bytes.uint32(at: profile == .aes128CMSHA1Tag80 ? plain : datagram.count - 4)
    // The profiles of DTLS-SRTP encrypt all RTCP.
    guard trailer >> 31 == 1 else { return .dropped(.unauthenticated) }
    let index = trailer & 0x7fff_ffff
    let ssrc = datagram.bytes.uint32(at: 4)
    let known = rtcpSources.find(ssrc)
    if let known {
      guard known.pointee.admits(UInt64(index)) else { return .dropped(.replayed) }
    } else if rtcpSources.isFull {
      return .dropped(.tooManySources)
    }
    guard transform.openRTCP(packet, length: datagram.count, ssrc: ssrc, index: index) else {
      return .dropped(.unauthenticated)
    }
    (known ?? rtcpSources.insert(ssrc, first: UInt64(index))).pointee.record(UInt64(index))
    return .packet(length: plain)
  }
}

/// The result of opening a received SRTP or SRTCP packet.
package enum Unprotected: Sendable, Equatable {
  /// The plain packet is the first `length` bytes of the buffer.
  case packet(length: Int)
  /// The buffer's content is undefined.
  case dropped(DropReason)
}
