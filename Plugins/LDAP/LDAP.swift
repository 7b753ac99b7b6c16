import Foundation
import MoongateSDK
import Synchronization

/// Verifies a user name and a password at a directory: OpenLDAP, Active Directory and others (RFC 4511).
///
/// It finds the user's entry and binds with its name. The core counts the attempts before a directory is asked, and
/// decides which account the identity signs in to.
public struct LDAP: FullProvider {
  static let name = "ldap"
  /// The maximum number of connections, and of users who wait for one.
  private static let (connections, waiting) = (8, 64)

  /// `begin` takes `username`, `submit` takes `password`.
  public let descriptor: ProviderDescriptor
  private let servers = ServerHealth()
  private let pace: RefusalPace
  private let threads = OperationQueue()
  private let connect: Directory.Connector

  public init() {
    self.init { server, settings throws(DirectoryFault) in
      try LDAPConnection(server, authority: settings.authority, timeout: settings.timeout)
    }
  }

  init(pace: RefusalPace = RefusalPace(), connect: @escaping Directory.Connector) {
    self.pace = pace
    self.connect = connect
    threads.maxConcurrentOperationCount = Self.connections
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
      rechecks: true)
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
    let settings = try DirectorySettings(step.tools.settings)
    let nobody = "cn=nobody-\(Base64URL.encode(step.tools.randomBytes(12))),\(settings.base)"
    let question = DirectoryQuestion(
      name: try TypedName(String(decoding: step.state, as: UTF8.self)), password: password, nobody: nobody)
    let directory = Directory(settings: settings, servers: servers, connect: connect)
    do {
      return .proved(try await onThread { try directory.proof(for: question) })
    } catch let refusal as DirectoryRefusal {
      step.tools.log.refusal(refusal.text)
      await pace.wait(since: began, settings.base, isOfEntry: refusal.isOfEntry)
      return .refused(refusal.reason)
    }
  }

  /// Runs a call that blocks on one of the provider's threads. It is not cancelled with its task.
  ///
  /// Attack: a client that closes its connection while the directory judges a guess makes the call a fault, which is
  /// not counted.
  private func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    guard threads.operationCount < Self.connections + Self.waiting else {
      throw DirectoryFault("all connections are in use")
    }
    return try await withCheckedThrowingContinuation { continuation in
      threads.addOperation { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}

extension LDAP: Rechecking {
  /// Reads the entry again by its ID, as the account that searches.
  public func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    let settings = try DirectorySettings(tools.settings)
    let directory = Directory(settings: settings, servers: servers, connect: connect)
    let now = tools.clock.now
    return try await onThread { try directory.recheck(known.identity, at: now) }
  }
}

extension LDAP: SettingsChecking {
  public func findings(in settings: StepSettings) -> [SettingFinding] { DirectorySettings.findings(in: settings) }
}

extension LDAP: RehearsableProvider {
  /// Attack: cases and simulations guess passwords. They ask no directory.
  public func rehearsal(sending messenger: any Messenger) -> any Provider {
    LDAP { _, _ throws(DirectoryFault) in throw DirectoryFault("directories are not asked in a dry run") }
  }
}

/// Makes refusals take the same time, whether or not an entry has the name.
///
/// Attack: a directory hashes the password of an entry that it has, and answers sooner for one that it does not have.
/// All refusals therefore take as long as the longest of the last ones for entries, and end at full steps of time.
final class RefusalPace: Sendable {
  private static let step: Duration = .milliseconds(250)
  private static let most: Duration = .seconds(2)
  /// The longest duration of each directory. It becomes shorter with each refusal, in case it was an exception.
  private let longest = Mutex<[String: Duration]>([:])
  private let sleep: @Sendable (Duration) async -> Void

  init(sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }) { self.sleep = sleep }

  func wait(since began: ContinuousClock.Instant, _ directory: String, isOfEntry: Bool) async {
    await sleep(remaining(after: ContinuousClock.now - began, directory, isOfEntry: isOfEntry))
  }

  func remaining(after taken: Duration, _ directory: String, isOfEntry: Bool) -> Duration {
    let known = longest.withLock { longest in
      if isOfEntry { longest[directory] = min(Self.most, max(taken, (longest[directory] ?? .zero) * 0.95)) }
      return longest[directory] ?? .zero
    }
    let steps = (max(taken, known) / Self.step).rounded(.up)
    return max(.zero, Self.step * max(1, Int(steps)) - taken)
  }
}
