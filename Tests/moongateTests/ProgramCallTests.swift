import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The command line that an upgrade starts again.
@Suite struct ProgramCallTests {
  private func file(_ folder: String, _ name: String, _ text: String) throws -> String {
    try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    return "\(folder)/\(name)"
  }

  @Test func thePathIsTheOneThatItWasCalledBy() throws {
    let folder = try ScratchFolder()
    let image = try file(folder.path, "moongate-1", "1")
    try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/moongate", withDestinationPath: image)
    let call = {
      ProgramCall(arguments: [$0, "serve"], folder: folder.path, searchPath: "/nowhere:\(folder.path)", image: image)
    }
    #expect(call("\(folder.path)/moongate").path == "\(folder.path)/moongate", "a link whose target may change")
    #expect(call("./moongate").path == "\(folder.path)/./moongate")
    #expect(call("moongate").path == "\(folder.path)/moongate")
    #expect(call("moongate").arguments == ["moongate", "serve"])
  }

  /// Attack: a first argument that names another program than the running one.
  @Test func pathOfAnotherProgramIsIgnored() throws {
    let folder = try ScratchFolder()
    let image = try file(folder.path, "moongate", "1")
    let other = try file(folder.path, "other", "2")
    let link = "\(folder.path)/exe"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: image)
    for name in [other, "other", "./other", "missing", ""] {
      #expect(
        ProgramCall(arguments: [name], folder: folder.path, searchPath: folder.path, image: link).path == image,
        "\(name)")
    }
  }
}
