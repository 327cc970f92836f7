package import Listening

extension SignalingStatistics.Drop {
  /// A WebSocket of the rooms read too slowly.
  package static let slowJanusReader = Self(rawValue: "slowJanusReader")

  package static let ofJanus: [Self] = [slowJanusReader]
}
