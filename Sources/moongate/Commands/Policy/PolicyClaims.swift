import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate policy claims NAME FILE`: prints what the gateway makes of the claims of another site.
struct PolicyClaims: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "claims", abstract: "Print what the function `identity` makes of the claims of another site.",
    discussion: """
      FILE holds the claims as a JSON object, or a token whose claims are read without a check of its signature. Without the function, the provider's own \
      rules apply. Nothing is stored. Exit status: 1 if the sign-in would be refused.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The name of a provider, for example work.") var name: ProviderName
  @Argument(help: "A file with a JSON object or a token; - for standard input.") var file: String
  @Flag(help: "Print JSON.") var json = false

  /// In bytes.
  private static let largest = 1 << 20

  func run() async throws {
    let generation = try configuration.generation()
    guard let policy = generation.policies[name] else {
      let names = generation.policies.keys.map(\.rawValue)
      throw StartProblem(
        "gateway.lua configures no provider \(name)\(Suggestion.phrase(for: name.rawValue, among: names)).",
        status: .couldNotRun)
    }
    let registry = try generation.registry ?? Providers.registry()
    let provider = registry.all.first(where: { $0.descriptor.name == name }) as? any ClaimsMapping
    let settings = generation.gateway.providers[name]?.forSteps ?? StepSettings()
    var claims = try read()
    if let provider { claims = try refusing { try provider.readable(claims, settings: settings) } }
    guard let function = policy.identity else {
      guard let provider else {
        throw StartProblem("\(name) passes no claims of another site.", status: .couldNotRun)
      }
      let identity = try refusing { try provider.identity(from: claims, settings: settings) }
      return try printReport(identity, by: "the rules of \(name)")
    }
    do {
      switch try generation.makeEvaluator().identity(of: function, from: claims) {
      case .mapped(let identity): try printReport(identity, by: "identity of policies/\(name).lua")
      case .deny(let reason):
        let text = generation.text(ofReason: reason, by: name).map { ": \($0)" } ?? ""
        throw StartProblem("identity denies \"\(reason)\"\(text)")
      }
    } catch let fault as PolicyFault {
      throw StartProblem("\(fault)")
    }
  }

  private func refusing<Value>(_ body: () throws -> Value) throws -> Value {
    do { return try body() } catch { throw StartProblem("The sign-in would be refused: \(error)") }
  }

  /// The claims of the file.
  private func read() throws -> [String: JSONClaim] {
    let handle = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
    guard let bytes = try? handle?.read(upToCount: Self.largest) else {
      throw StartProblem("\(file) cannot be read.", status: .couldNotRun)
    }
    let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    let isToken = !text.hasPrefix("{") && parts.count == 3
    guard let object = isToken ? Base64URL.decode(String(parts[1])) : Array(text.utf8),
      let claims = try? JSONClaim.members(object)
    else { throw StartProblem("\(file) has no JSON object with claims, and no token.", status: .couldNotRun) }
    return claims
  }

  private struct Report: Encodable {
    let email: String?
    let emailVerified: Bool
    let firstName: String?
    let lastName: String?
    let groups: [String]
    let data: [String: String]

    enum CodingKeys: String, CodingKey {
      case email
      case emailVerified = "email_verified"
      case firstName = "first_name"
      case lastName = "last_name"
      case groups, data
    }
  }

  private func printReport(_ identity: MappedIdentity, by origin: String) throws {
    if json {
      let report = Report(
        email: identity.email, emailVerified: identity.isEmailVerified, firstName: identity.firstName,
        lastName: identity.lastName, groups: identity.groups, data: identity.data)
      return print(try ToolJSON.text(report))
    }
    let email = identity.email.map { $0 + (identity.isEmailVerified ? " (verified)" : " (not verified)") }
    let lines = [("email", email), ("first_name", identity.firstName), ("last_name", identity.lastName)]
    print("by \(origin)")
    for (name, value) in lines { print("  \(name): \(value ?? "none")") }
    print("  groups: \(identity.groups.isEmpty ? "none" : identity.groups.joined(separator: ", "))")
    for (name, value) in identity.data.sorted(by: { $0.key < $1.key }) { print("  data.\(name): \(value)") }
  }
}
