import Foundation
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import Testing

@testable import MoongateGateway

@Suite struct EditorTypesTests {
  /// To fix a failure, run `moongate policy types > config/editor/moongate.d.lua`.
  @Test func theShippedTypesAreTheProgramsOwn() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let shipped = try String(contentsOf: root.appending(path: "config/editor/moongate.d.lua"), encoding: .utf8)
    #expect(shipped == EditorTypes(providers: Providers.all.map(\.descriptor)).text)
  }
}
