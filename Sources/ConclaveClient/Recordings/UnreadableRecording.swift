/// Why this device does not open a recording.
public enum UnreadableRecording: Error, Sendable, Hashable {
  /// The server's answer, or the file, has another form than the protocol's.
  case malformed
  /// The answer is about another recording.
  case anotherRecording
  /// The statement is not signed by the device that it names, or that device is not the one that was seen first, or its time is to come.
  case notSigned
  /// No grant for this device is signed by a device that counts and opens the statement's key.
  case noKey
}

/// Why the file of a segment is refused. The rest of its reel plays on.
public enum SegmentRefusal: Error, Sendable, Hashable {
  /// It is no segment: its header has another form.
  case malformed
  /// It is not the listed one: another place, length, start or hash, or it does not follow the one before.
  case notListed
  /// It was not sealed under its reel's key, or it is sealed where frames should be.
  case notSealed
}
