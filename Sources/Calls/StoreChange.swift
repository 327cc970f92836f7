package import MediaModel

/// One change of what survives a restart.
package enum StoreChange: Hashable, Sendable {
  case callEnded(CallID)
}
