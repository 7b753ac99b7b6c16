import Foundation
import MoongateSDK
import Testing

/// What the build generates for a `policy.lua` resource.
private enum PackageResources {
  // swift-format-ignore: AlwaysUseLowerCamelCase
  static let policy_lua = Array(#"return policy "pigeon_post" {}"#.utf8)
}

// The provider that Documentation/plugins/start.md shows, from here to the next line of slashes: so it compiles.
// ////////
public struct PigeonPost: CodeProvider {
  public let descriptor = ProviderDescriptor(
    name: "pigeon_post",
    beginFields: [InputField(name: "email", kind: .email)],
    submitFields: [InputField(name: "code", kind: .digits)],
    settings: [SettingField(name: "loft", kind: .messages(.mail), isRequired: true, help: "Where the pigeons start.")],
    policy: PolicySource(
      file: "Plugins/PigeonPost/policy.lua", text: String(decoding: PackageResources.policy_lua, as: UTF8.self)),
    identifierKinds: [.email], facts: [.emailDomain])

  public init() {}

  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    try input.email()
  }

  public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
  {
    try await tools.send(
      Message(channel: .mail, to: identifier.value, subject: code.service, text: code.text, code: code.code))
  }
}
// ////////

@Suite struct GuideTests {
  @Test func guideContainsThisProvider() throws {
    let guide = try String(
      contentsOf: URL(filePath: #filePath).appending(path: "../../../Documentation/plugins/start.md")
        .standardizedFileURL,
      encoding: .utf8)
    let here = try String(contentsOfFile: #filePath, encoding: .utf8).components(separatedBy: "// ////////\n")
    #expect(here.count == 3)
    #expect(guide.contains("```swift\nimport MoongateSDK\n\n" + here[1] + "```\n"))
    #expect(PigeonPost().descriptor.mistakes == [])
  }
}
