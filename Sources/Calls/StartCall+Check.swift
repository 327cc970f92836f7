import Contract
import MediaModel

extension StartCall {
  /// - Throws: `request.invalid` unless the id is a random UUID (RFC 9562 section 5.4), in lower case.
  func checkedID() throws(RequestError) -> CallID {
    guard let id, id.isRandomUUID else {
      throw RequestError(
        .requestInvalid, "a call's id is a random UUID (version 4) in lower case, made by the client", field: "id")
    }
    return id
  }
}

extension CallID {
  /// 8-4-4-4-12 hexadecimal digits in lower case, of version 4 and variant 10.
  fileprivate var isRandomUUID: Bool {
    let characters = Array(text.utf8)
    guard characters.count == 36 else { return false }
    return characters.enumerated().allSatisfy { place, character in
      switch place {
      case 8, 13, 18, 23: character == UInt8(ascii: "-")
      case 14: character == UInt8(ascii: "4")
      case 19: "89ab".utf8.contains(character)
      default: "0123456789abcdef".utf8.contains(character)
      }
    }
  }
}
