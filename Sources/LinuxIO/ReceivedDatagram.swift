package import MediaModel

/// One datagram in a `ReceiveBatch`; valid until the batch receives again. The bytes may be changed in place.
package struct ReceivedDatagram {
  package var bytes: UnsafeMutableRawBufferPointer
  package var source: SocketAddress
}
