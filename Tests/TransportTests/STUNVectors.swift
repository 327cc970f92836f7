import MediaModel

/// RFC 5769: the samples with short-term credentials.
enum STUNVectors {
  static let password = "VOkJxbRl1RmTxUk/WvJxBt"
  static let transaction: (UInt64, UInt32) = (0xb7e7_a701_bc34_d686, 0xfa87_dfae)

  /// Section 2.1: from a controlled agent, USERNAME evtj:h6vY.
  static let request = hex(
    """
    00010058 2112a442 b7e7a701 bc34d686 fa87dfae 80220010 5354554e 20746573 7420636c 69656e74 00240004 6e0001ff 80290008
    932ff9b1 51263b36 00060009 6576746a 3a683676 59202020 00080014 9aeaa70c bfd8cb56 781ef2b5 b2d3f249 c1b571a2 80280004
    e57a3bcf
    """)

  /// Section 2.2: mapped 192.0.2.1:32853.
  static let responseIPv4 = hex(
    """
    0101003c 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200008 0001a147 e112a643 00080014
    2b91f599 fd9e90c3 8c7489f9 2af9ba53 f06be7d7 80280004 c07d4c96
    """)
  static let mappedIPv4 = SocketAddress(ipv4: 0xc000_0201, port: 32853)

  /// Section 2.3: mapped [2001:db8:1234:5678:11:2233:4455:6677]:32853.
  static let responseIPv6 = hex(
    """
    01010048 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200014 0002a147 0113a9fa a5d3f179
    bc25f4b5 bed2b9d9 00080014 a382954e 4be67bf1 1784c97c 8292c275 bfe3ed41 80280004 c8fb0b4c
    """)
  static let mappedIPv6 = SocketAddress(high: 0x2001_0db8_1234_5678, low: 0x0011_2233_4455_6677, port: 32853)
}
