import MoongateSDK

/// Verifies a user name and a password at a directory: OpenLDAP, Active Directory and others (RFC 4511).
///
/// It finds the user's entry and binds with its name. The core counts the attempts before a directory is asked, and
/// decides which account the identity signs in to.
public struct LDAP: FullProvider {
  static let name = "ldap"

  /// `begin` takes `username`, `submit` takes `password`.
  public let descriptor: ProviderDescriptor
  private let servers = ServerHealth()
  private let pace: RefusalPace
  private let calls = BlockingCalls(threads: 8, waiting: 64)
  private let connect: Directory.Connector

  public init() {
    self.init { server, settings, timeout throws(DirectoryFault) in
      try LDAPConnection(server, authority: settings.authority, timeout: timeout)
    }
  }

  init(pace: RefusalPace = RefusalPace(), connect: @escaping Directory.Connector) {
    self.pace = pace
    self.connect = connect
    descriptor = ProviderDescriptor(
      name: "ldap", beginFields: [TypedName.field], submitFields: [TypedSecret.field],
      settings: DirectorySettings.fields,
      policy: PolicySource(file: "Plugins/LDAP/policy.lua", bytes: PackageResources.policy_lua),
      flows: [PolicySource(file: "Plugins/LDAP/flows/ldap_join.lua", bytes: PackageResources.ldap_join_lua)],
      cases: PolicySource(file: "Plugins/LDAP/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [.federated, .email], outcomes: DirectoryRefusal.outcomes, facts: [.emailDomain],
      words: StepWords(
        title: "Company account", labels: ["username": "User name", "password": "Password"],
        translations: PackageResources.translations),
      presentation: .form, entrance: .link(label: "Continue with your company account"), role: .provesIdentifier,
      mapsClaims: true, rechecks: true)
  }

  /// The typed name, by which attempts are counted. It is no identity: what the directory says is.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    let name = try TypedName(try input.text(TypedName.field.name))
    return Identifier(kind: .federated, value: "\(Self.name) name \(name.canonical)", display: name.text)
  }

  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    _ = try TypedSecret.bytes(in: input)
  }

  /// Asks for the password. The directory is not asked for the name alone.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    do throws(InputProblem) {
      let name = try TypedName(try input.text(TypedName.field.name))
      return .ask([TypedSecret.field], state: Array(name.text.utf8), showing: [.text(name.text)])
    } catch {
      return .malformed(error)
    }
  }

  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let password: [UInt8]
    do throws(InputProblem) { password = try TypedSecret.bytes(in: input) } catch { return .malformed(error) }
    let began = ContinuousClock.now
    let directory = try directory(step.tools.settings, since: began)
    let (settings, tools) = (directory.settings, step.tools)
    let nobody = "cn=nobody-\(Base64URL.encode(tools.randomBytes(12))),\(settings.base)"
    let name = try TypedName(String(decoding: step.state, as: UTF8.self))
    let question = DirectoryQuestion(name: name, password: password, nobody: nobody, now: step.now)
    do {
      let user = try await calls.run(at: settings.site) { try directory.user(for: question) }
      let mapped = try await mapped(user, tools)
      return .proved(
        mapped.proof(
          of: mapped.identifier("\(Self.name) \(user.identity)", named: name.canonical),
          alwaysVerified: tools.settings.text("email_verified") == "always", recheck: settings.rechecks ? [] : nil
        ) { settings.trustedDomains.contains($0) })
    } catch let refusal as DirectoryRefusal {
      tools.log.refusal(refusal.text)
      await pace.wait(since: began, at: settings.site, isKnown: refusal.isOfEntry)
      return .refused(refusal.reason)
    }
  }

  private func directory(_ settings: StepSettings, since began: ContinuousClock.Instant) throws -> Directory {
    Directory(
      settings: try DirectorySettings(settings), servers: servers, connect: connect, end: began + Directory.patience)
  }
}

extension LDAP: Rechecking {
  /// The state of an identity whose entry was missing at the last recheck. Otherwise it is empty.
  static let wasMissing = Array("missing".utf8)

  /// Reads the entry again by its ID, as the account that searches.
  public func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    let directory = try directory(tools.settings, since: .now)
    let now = tools.clock.now
    switch try await calls.run(at: directory.settings.site, { try directory.recheck(known.identity, at: now) }) {
    case .ended(let because): return .ended(because: because)
    case .missing:
      if known.state == Self.wasMissing { return .ended(because: "no entry") }
      try await known.keep(Self.wasMissing)
      throw DirectoryFault("no server has the entry of a user: they are asked once more")
    case .found(let user):
      if !known.state.isEmpty { try await known.keep([]) }
      let mapped = try await mapped(user, tools)
      return .confirmed(mapped.identifier("\(Self.name) \(user.identity)", named: known.identity.display))
    }
  }
}

extension LDAP: ClaimsMapping {
  /// By the function `identity` of the policy, or the provider's own rules.
  private func mapped(_ user: DirectoryUser, _ tools: StepTools) async throws -> MappedIdentity {
    if user.omitted > 0 { tools.log.warning("groups with unusable names are left out", ["count": "\(user.omitted)"]) }
    return try await tools.identity(user.claims) ?? MappedIdentity(ofEntry: user.claims, by: tools.settings)
  }

  public func identity(from claims: [String: JSONClaim], settings: StepSettings) throws -> MappedIdentity {
    MappedIdentity(ofEntry: claims, by: settings)
  }
}

extension LDAP: SiteProbing {
  /// Binds to each server as the account that searches.
  public func probe(with tools: StepTools) async throws -> String? {
    let directory = try directory(tools.settings, since: .now)
    let settings = directory.settings
    for server in settings.servers {
      try await calls.run(at: settings.site) {
        do throws(DirectoryFault) { _ = try directory.connection(to: server, within: settings.timeout) } catch {
          throw DirectoryFault("\(server.url): \(error)")
        }
      }
    }
    let account = settings.account == nil ? "anonymous searches" : "the password of bind.dn"
    return "\(settings.servers.map(\.url).joined(separator: ", ")) accepts \(account)"
  }
}

extension LDAP: SettingsChecking {
  public func findings(in settings: StepSettings) -> [SettingFinding] { DirectorySettings.findings(in: settings) }
}

extension LDAP: RehearsableProvider {
  /// Attack: cases and simulations guess passwords. They ask no directory.
  public func rehearsal(sending messenger: any Messenger) -> any Provider {
    LDAP { _, _, _ throws(DirectoryFault) in throw DirectoryFault("directories are not asked in a dry run") }
  }
}
