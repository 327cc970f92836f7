import MediaModel

extension MediaOffer.Section {
  /// The offered formats that the server accepts: Opus for audio, `codecs` for video in their order. RTX is accepted only with NACK.
  func formats(acceptedOf codecs: [String]) -> [PayloadFormat] {
    let accepted: [PayloadFormat]
    switch kind {
    case .application: return []
    case .media(.audio):
      accepted = formats.filter { $0.codec.lowercased() == "opus" && $0.clockRate == 48_000 && $0.channels == 2 }
    case .media(.video):
      accepted = codecs.flatMap { codec in
        formats.filter { $0.codec.lowercased() == codec.lowercased() && $0.clockRate == 90_000 }
      }
    }
    return accepted.map { format in
      var format = format
      if !format.nack { format.rtxPayloadType = nil }
      return format
    }
  }
}
