import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// A compiled-in provider under another name.
@Suite struct ProviderInstanceTests {
  /// Proves the subject of the field, and records what it was given.
  private struct Site: FullProvider {
    let descriptor = ProviderDescriptor(
      name: "site", beginFields: [], submitFields: [InputField(name: "subject", kind: .text)], settings: [],
      policy: PolicySource(file: "site.lua", text: ""), identifierKinds: [.federated])

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .ask(descriptor.submitFields, state: [])
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      let known = step.account?.identifiers.filter { $0.kind == .federated }.map(\.value).joined(separator: ",") ?? ""
      let subject = try input.text("subject")
      return .proved(
        Proof(
          proved: [Identifier(kind: .federated, value: "https://site.example \(subject)", display: known)],
          firstName: known, record: .keep))
    }
  }

  private static func renamed(_ name: String) throws -> any FullProvider {
    var descriptor = Site().descriptor
    descriptor.name = try #require(ProviderName(rawValue: name))
    descriptor.instanceOf = "site"
    return try #require(Site().instance(descriptor) as? any FullProvider)
  }

  private static func proved(_ provider: any FullProvider, account: StepAccount? = nil) async throws -> Identifier {
    let web = NoWeb()
    let step = StepContext(
      flow: "login", purpose: .prove, account: account, identifier: nil, state: [], now: 0, callback: nil,
      tools: StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, web: web))
    guard
      case .proved(let proof) = try await provider.submit(
        step, ProviderInput(fields: ["subject": .text("7")], defaultRegion: "IN")),
      let identity = proof.proved.first
    else { throw Wrong() }
    return identity
  }

  private struct Wrong: Error {}
  private struct NoWeb: WebClient {
    func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
      throw WebFault(reason: "there is no web here")
    }
  }

  /// Attack: the same subject at two sites, each behind an instance of one provider, is taken for one person.
  @Test func identitiesOfTwoInstancesAreNeverEqual() async throws {
    let own = try await Self.proved(Site())
    let work = try await Self.proved(try Self.renamed("work"))
    let club = try await Self.proved(try Self.renamed("club"))
    #expect(
      own.value == "https://site.example 7" && work.value == "work https://site.example 7"
        && club.value == "club https://site.example 7")
  }

  /// An instance passes every field of a proof on to the gateway.
  @Test func anInstanceChangesIdentitiesAlone() async throws {
    var descriptor = Teller().descriptor
    (descriptor.name, descriptor.instanceOf) = ("work", "teller")
    let work = try #require(Teller().instance(descriptor) as? any FullProvider)
    let step = StepContext(
      flow: "login", purpose: .prove, account: nil, identifier: nil, state: [], now: 0, callback: nil,
      tools: StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, web: NoWeb()))
    guard case .proved(let proof) = try await work.submit(step, ProviderInput(fields: [:], defaultRegion: "IN")) else {
      throw Wrong()
    }
    #expect(
      proof.proved.map(\.value) == ["work p"] && proof.attested.map(\.value) == ["work a"]
        && proof.claimed.map(\.value) == ["work c"])
    #expect(proof.firstName == "Asha" && proof.lastName == "Rao" && proof.facts == ["plan": "gold"])
    guard case .replaceOnce([7]) = proof.record else { throw Wrong() }
  }

  /// A proof with a value in every field.
  private struct Teller: FullProvider {
    let descriptor = ProviderDescriptor(
      name: "teller", beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "", text: ""),
      identifierKinds: [.federated])

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .ask([], state: []) }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      let named = { (value: String) in [Identifier(kind: .federated, value: value, display: value)] }
      return .proved(
        Proof(
          proved: named("p"), attested: named("a"), claimed: named("c"), firstName: "Asha", lastName: "Rao",
          facts: ["plan": "gold"],
          record: .replaceOnce([7])))
    }
  }

  /// Giving an instance a title does not wrap it twice.
  @Test func titledInstanceIsNotWrappedTwice() async throws {
    let work = try Self.renamed("work")
    let titled = try #require(work.instance(work.descriptor) as? any FullProvider)
    #expect(try await Self.proved(titled).value == "work https://site.example 7")
  }

  /// A provider gets its identities as it wrote them, and none of another instance.
  @Test func instanceReceivesOnlyItsOwnIdentities() async throws {
    let account = StepAccount(
      id: "ac_1", record: nil,
      identifiers: ["work https://site.example 1", "club https://site.example 2", "https://site.example 3"].map {
        Identifier(kind: .federated, value: $0, display: "")
      })
    #expect(try await Self.proved(try Self.renamed("work"), account: account).display == "https://site.example 1")
  }

  /// Attack: an instance is removed from gateway.lua, and the groups of its identities count as another site's.
  @Test func identitiesOfARemovedInstanceBelongToNoProvider() throws {
    let registry = try ProviderRegistry([Site(), try Self.renamed("work")])
    let prover = { (value: String) in registry.prover(of: Identifier(kind: .federated, value: value, display: "")) }
    #expect(prover("work https://site.example 7") == "work")
    #expect(prover("https://site.example 7") == Site().descriptor.name)
    #expect(prover("partner https://site.example 7") == nil && prover("partner 7") == nil && prover("") == nil)
  }

  @Test func issuerIsThePrefixOfTheIdentity() throws {
    let registry = try ProviderRegistry([Site(), try Self.renamed("work")])
    let issuer = { (value: String) in registry.issuer(of: Identifier(kind: .federated, value: value, display: "")) }
    #expect(
      issuer("work https://site.example 7") == "work" && issuer("https://site.example 7") == nil
        && issuer("club 7") == nil)
    #expect(registry.issuer(of: Identifier(kind: .email, value: "work 7", display: "")) == nil)
  }

  /// An instance forwards every requirement of the SDK. One with a default implementation would otherwise be answered
  /// by the default.
  @Test func instancesForwardEachRequirementOfTheSDK() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
      .deletingLastPathComponent()
    let instance = try String(
      contentsOf: root.appending(path: "Sources/MoongateCore/Providers/ProviderInstance.swift"), encoding: .utf8)
    let sources = try FileManager.default.contentsOfDirectory(
      at: root.appending(path: "Sources/MoongateSDK"), includingPropertiesForKeys: nil)
    var seen: Set<String> = []
    for file in sources where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      for match in text.matches(of: /(?m)^public protocol (\w+): (?:\w*Provider|Sendable) \{\n((?:.*\n)*?)\}/) {
        let name = String(match.1)
        let isForProviders =
          text.contains("public protocol \(name): Provider") || name == "IdentifierFormatting"
          || name.hasSuffix("Provider")
        guard isForProviders, name != "Provider" else { continue }
        seen.insert(name)
        #expect(instance.contains("extension ProviderInstance: \(name) where Base: \(name)"), "\(name)")
        for requirement in String(match.2).matches(of: /(?m)^  (?:func|var) (\w+)/) {
          #expect(instance.contains("base.\(requirement.1)"), "\(name).\(requirement.1)")
        }
      }
    }
    #expect(
      seen.isSuperset(of: [
        "CodeProvider", "FullProvider", "IdentifierFormatting", "RehearsableProvider", "SecretImporting",
      ]), "\(seen)")
  }

  /// Attack: a table of a provider's settings takes the place of a field that the gateway reads itself.
  @Test(arguments: ["env", "timeout", "recheck", "recheck_grace", "identify_by", "title", "label", "icon", "bind"])
  func tablesOfSettingsHaveTheirOwnNames(_ table: String) {
    let descriptor = ProviderDescriptor(
      name: "x", beginFields: [], submitFields: [],
      settings: [SettingField(name: "\(table).dn", kind: .text, isRequired: true, help: "x")],
      policy: PolicySource(file: "x.lua", text: ""), identifierKinds: [])
    #expect(
      descriptor.mistakes
        == (table == "bind" ? [] : ["no table of settings can be called `\(table)`: the gateway has it itself"]))
  }

  /// Attack: a provider that is declared to prove numbers stores a record, and so becomes a factor that authorises
  /// changes of the account.
  @Test func aRoleWithoutAFactorKeepsNoRecord() throws {
    let descriptor = { (kinds: [IdentifierKind], role: ProviderRole?) in
      ProviderDescriptor(
        name: "x", beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "x.lua", text: ""),
        identifierKinds: kinds, role: role)
    }
    #expect(
      descriptor([], nil).role == .keepsFactor && descriptor([.email], nil).role == [.provesIdentifier, .keepsFactor])
    #expect(descriptor([], nil).isSecondFactor && !descriptor([.email], nil).isSecondFactor)
    #expect(
      descriptor([], .provesIdentifier).mistakes == [
        "its role says that it proves an identifier, but it declares no kind of identifier"
      ])
    #expect(
      descriptor([.email], .keepsFactor).mistakes == [
        "it declares kinds of identifier, but its role does not say that it proves one"
      ])
  }
}
