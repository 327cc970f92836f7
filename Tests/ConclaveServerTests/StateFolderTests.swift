import Foundation
import Testing

@testable import ConclaveServer

@Test func aSecretIsMadeOnceAndForItsOwnerAlone() throws {
  let path = NSTemporaryDirectory() + "conclave-\(UInt64.random(in: .min ... .max))"
  defer { try? FileManager.default.removeItem(atPath: path) }
  let folder = try StateFolder(path)
  let first = try folder.secret(file: nil)
  let second = try folder.secret(file: nil)
  #expect(first.isNew && !second.isNew)
  #expect(first.secret == second.secret && first.secret.utf8.count >= 32)
  let mode = try FileManager.default.attributesOfItem(atPath: path + "/secret")[.posixPermissions] as? Int
  #expect(mode == 0o600)
  #expect(throws: ConfigurationError.self) { try folder.secret(file: path + "/missing") }
}

/// A user who can read the folder or the secret can pose as any user.
@Test(arguments: [("", 0o755), ("", 0o770), ("/secret", 0o644), ("/secret", 0o640)])
func filesThatOthersMayReadAreRefusedByName(name: String, mode: Int) throws {
  let path = NSTemporaryDirectory() + "conclave-\(UInt64.random(in: .min ... .max))"
  defer { try? FileManager.default.removeItem(atPath: path) }
  _ = try StateFolder(path).secret(file: nil)
  try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path + name)
  let error = #expect(throws: ConfigurationError.self) { try StateFolder(path).secret(file: nil) }
  #expect(error?.description.contains("chmod \(name.isEmpty ? "700" : "600") \(path + name)") == true)
}

/// A secret that Kubernetes mounts belongs to root, and the server's group may read it.
@Test(
  arguments: [
    (S_IFREG | 0o600, 900, 900, true), (S_IFREG | 0o440, 0, 900, true), (S_IFREG | 0o640, 0, 900, true),
    (S_IFREG | 0o440, 900, 900, false), (S_IFREG | 0o440, 0, 901, false), (S_IFREG | 0o660, 0, 900, false),
    (S_IFREG | 0o444, 0, 900, false), (S_IFREG | 0o450, 0, 900, false), (S_IFDIR | 0o740, 0, 900, false),
  ] as [(mode_t, uid_t, gid_t, Bool)])
func theServersGroupMayReadASecretOfRoots(mode: mode_t, owner: uid_t, group: gid_t, isPrivate: Bool) {
  var status = stat()
  (status.st_mode, status.st_uid, status.st_gid) = (mode, owner, group)
  #expect(Configuration.isPrivate(status, group: 900) == isPrivate)
}

@Test func theGroupOfRootMayReadNoSecret() {
  var status = stat()
  status.st_mode = S_IFREG | 0o440
  #expect(!Configuration.isPrivate(status, group: 0))
}
