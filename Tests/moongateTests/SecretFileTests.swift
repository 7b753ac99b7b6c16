import Foundation
import MoongateCore
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The file that `moongate app secret` writes.
@Suite struct SecretFileTests {
  let folder: ScratchFolder

  init() throws { folder = try ScratchFolder() }

  private func text(_ name: String) throws -> String { try String(contentsOfFile: folder.path(name), encoding: .utf8) }

  private func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: folder.path(name))[.posixPermissions] as? Int
  }

  /// Attack: another user of the machine reads the secret, or the draft of it.
  @Test func onlyTheOwnerCanReadIt() throws {
    #expect(try !SecretFile.write("first\n", to: folder.path("secrets/grafana")))
    #expect(try text("secrets/grafana") == "first\n")
    #expect(try mode("secrets/grafana") == 0o600 && mode("secrets") == 0o700)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("secrets")) == ["grafana"])
  }

  @Test func oldSecretIsReplacedWhateverItsMode() throws {
    try folder.write("old", to: "secrets/grafana")
    try folder.setMode(0o644, of: "secrets/grafana")
    // The draft of a killed command.
    try folder.write("half", to: "secrets/grafana.new")
    #expect(try SecretFile.write("new\n", to: folder.path("secrets/grafana")))
    #expect(try text("secrets/grafana") == "new\n" && mode("secrets/grafana") == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("secrets")) == ["grafana"])
  }

  /// Attack on ourselves: an operator in the folder's group makes a secret that the gateway cannot read.
  @Test func fileOfAnotherUserIsKept() {
    #expect(SecretFile.canKeep(1000, as: 1000) && SecretFile.canKeep(1000, as: 0))
    #expect(!SecretFile.canKeep(0, as: 1000) && !SecretFile.canKeep(1001, as: 1000))
  }

  /// Attack on ourselves: root makes a secret in the package's folder, which is root's, and the gateway, which runs as
  /// the service user, can no longer start.
  @Test func newFileIsTheServiceUsersInAFolderOfRoot() {
    let (root, desk, service) = (
      FileOwner(user: 0, group: 0), FileOwner(user: 1000, group: 1000), FileOwner(user: 990, group: 991)
    )
    #expect(SecretFile.owner(inFolderOf: root, serviceUser: service) == service)
    #expect(SecretFile.owner(inFolderOf: desk, serviceUser: service) == desk)
    #expect(SecretFile.owner(inFolderOf: root, serviceUser: nil) == root)
  }

  @Test func linkIsKept() throws {
    try folder.write("old", to: "elsewhere/secret")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("grafana"), withDestinationPath: folder.path("elsewhere/secret"))
    try SecretFile.write("new\n", to: folder.path("grafana"))
    #expect(try text("elsewhere/secret") == "new\n")
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("grafana"))
    #expect(attributes[.type] as? FileAttributeType == .typeSymbolicLink)
  }

  @Test func folderThatCannotBeMadeIsNamed() throws {
    do throws(StartProblem) {
      try SecretFile.write("x", to: folder.path("no/such/folder/secret"))
      Issue.record("it was written")
    } catch {
      #expect(error.sentence.hasPrefix("The folder \(folder.path("no/such/folder")) cannot be opened: "))
    }
  }
}
