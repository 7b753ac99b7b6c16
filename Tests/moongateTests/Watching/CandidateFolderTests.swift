import Foundation
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The allowed folders of candidates named over the admin listener.
@Suite struct CandidateFolderTests {
  private func problem(_ path: String, served: ScratchFolder) -> CandidateFolder.Problem? {
    do throws(CandidateFolder.Problem) {
      _ = try CandidateFolder.trusted(path, as: served.path)
      return nil
    } catch {
      return error
    }
  }

  private func folder() throws -> ScratchFolder {
    let folder = try ScratchFolder()
    try folder.write("return gateway {}", to: "gateway.lua")
    try folder.write("return policy {}", to: "policies/x.lua")
    try folder.setMode(0o755, of: "policies")
    return folder
  }

  @Test func filesWritableOnlyByTheOperatorAreTrusted() throws {
    let folder = try folder()
    #expect(
      try CandidateFolder.trusted(folder.path + "/policies/..", as: folder.path)
        == CandidateFolder.canonicalPath(folder.path))
  }

  /// Attack: another local user changes the candidate or one of its files after it was reviewed.
  @Test(arguments: ["", "policies", "gateway.lua", "policies/x.lua"])
  func filesWritableByOthersAreNotTrusted(_ name: String) throws {
    let folder = try folder()
    for mode in [0o775, 0o757] {
      try folder.setMode(mode, of: name)
      let told = try #require(problem(folder.path, served: folder))
      #expect(told.place.hasSuffix(name) && told.sentence.contains("chmod go-w"))
    }
  }

  /// Attack: a local user without a token makes their own folder the gateway's configuration.
  @Test func filesOfAnotherUserAreNotTrusted() throws {
    guard geteuid() == 0 else { return }
    let folder = try folder()
    try FileManager.default.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: folder.path("policies/x.lua"))
    #expect(problem(folder.path, served: folder)?.sentence.contains("belongs to another user (65534)") == true)
    try FileManager.default.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: folder.path)
    #expect(problem(folder.path, served: try self.folder())?.place == CandidateFolder.canonicalPath(folder.path))
    // The owner of the active folder can also change the candidate.
    #expect(problem(folder.path, served: folder) == nil)
  }

  /// Attack: a symbolic link in a trusted folder leads to an untrusted one.
  @Test func linksAreNotFollowed() throws {
    let folder = try folder()
    try FileManager.default.createSymbolicLink(atPath: folder.path("routes.lua"), withDestinationPath: "/etc/passwd")
    #expect(problem(folder.path, served: folder)?.sentence.contains("is a symbolic link") == true)
    try FileManager.default.removeItem(atPath: folder.path("routes.lua"))
    try FileManager.default.createSymbolicLink(atPath: folder.path("flows"), withDestinationPath: "/tmp")
    #expect(problem(folder.path, served: folder)?.place.hasSuffix("/flows") == true)
  }

  @Test(arguments: [
    "config", "", "/no/such", "/etc/passwd", "/tmp", "/\u{0}etc", "/" + String(repeating: "x", count: 5_000),
  ])
  func pathOutsideTheAllowedFoldersIsRefused(_ path: String) throws {
    #expect(problem(path, served: try folder()) != nil)
  }
}
