import ArgumentParser
import Foundation
import Logging
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate app claims APP NAME`: prints what an app would learn about a user.
struct ShowAppClaims: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "claims", abstract: "Print the claims that an app would get about a user, and by which rule.",
    discussion: """
      The user's newest session is taken; without one, a session that begins now and has passed the providers of --passed. \
      Nothing is stored. Claims of the protocol, such as `iss` and `exp`, are left out. Exit status: 1 if the app would refuse the user; \
      2 if `claims` fails.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The client id of the app, for example grafana.") var app: String
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @Option(
    name: .customLong("scope"),
    help: "A scope that the app asks for. Can be repeated. Default: all that it may ask for.")
  var scopes: [String] = []
  @Option(name: .customLong("passed"), help: "Assume a session that has passed this provider. Can be repeated.")
  var passed: [ProviderName] = []
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      guard let app = opened.generation.apps[app] else {
        throw StartProblem(
          "apps.lua defines no app \(app)\(Suggestion.phrase(for: app, among: opened.generation.apps.apps.map(\.id))).")
      }
      guard app.signsUsersIn else {
        throw StartProblem("No user signs in to \(app.id): its only grant is client_credentials.")
      }
      let granted = app.permitted(scopes.isEmpty ? app.scopes.sorted() : scopes)
      if let refused = scopes.first(where: { !granted.contains($0) }) {
        throw StartProblem("\(app.id) may not ask for the scope \(refused). Add it to `scopes` in apps.lua.")
      }
      let account = try await opened.account(named: name)
      let session = try await self.session(of: account, opened)
      let apps = try opened.apps()
      let call = AppCall(
        generation: opened.generation, client: ClientFacts(address: .unspecified, isNewDevice: false),
        decision: DecisionID(from: SystemRandom()))
      do {
        let refusal: String? =
          account.isLocked ? "the account is locked" : apps.verdict(app, session.snapshot, call).words(of: app)
        let report = Report(
          app: app.id, account: account.id, session: session.id, scopes: granted, refusal: refusal,
          claims: try apps.claims(of: session.snapshot, scopes: granted, app, call))
        print(json ? try ToolJSON.text(report) : report.text)
        if refusal != nil { throw ExitCode(ExitStatus.found.rawValue) }
      } catch let fault as PolicyFault {
        throw StartProblem("\(fault)", status: .couldNotRun)
      }
    }
  }

  /// The newest session of the account, or one that begins now.
  private func session(of account: Account, _ opened: OperatorStore) async throws -> (
    id: String?, snapshot: SessionSnapshot
  ) {
    let sessions = try await opened.administration.sessions(of: account.id)
    if passed.isEmpty, let newest = sessions.max(by: { $0.authenticatedAt < $1.authenticatedAt }) {
      return (newest.id, SessionSnapshot(session: newest, account: account))
    }
    let now = opened.now
    let assumed = Session(
      id: "se_assumed", token: TokenHash(bytes: []), account: account.id, createdAt: now,
      expiresAt: now + .seconds(3600), idle: .seconds(3600), lastSeenAt: now,
      passed: Self.steps(passed, opened.registry, at: now), userAgent: nil)
    return (nil, SessionSnapshot(session: assumed, account: account))
  }

  /// The steps of a session that has passed the providers, each with as many factors as it can prove.
  static func steps(_ passed: [ProviderName], _ registry: ProviderRegistry, at now: Timestamp) -> [PassedStep] {
    passed.map { provider in
      let isMultiFactor = registry.descriptor(provider)?.mayProveSeveralFactors ?? false
      return PassedStep(provider: provider, at: now, isMultiFactor: isMultiFactor)
    }
  }

  private struct Report: Encodable {
    let app: String
    let account: String
    /// nil: one that begins now.
    let session: String?
    let scopes: [String]
    /// nil: allowed.
    let refusal: String?
    let claims: [AppClaim]

    private enum CodingKeys: CodingKey { case app, account, session, scopes, refusal, claims, rules }

    func encode(to encoder: any Encoder) throws {
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(app, forKey: .app)
      try members.encode(account, forKey: .account)
      try members.encode(session, forKey: .session)
      try members.encode(scopes, forKey: .scopes)
      try members.encode(refusal, forKey: .refusal)
      let values = claims.map { ($0.name, EncodedClaim(claim: $0.value)) }
      try members.encode(Dictionary(values) { first, _ in first }, forKey: .claims)
      try members.encode(Dictionary(claims.map { ($0.name, $0.rule) }) { first, _ in first }, forKey: .rules)
    }

    var text: String {
      let name = claims.map(\.name.count).max() ?? 0
      let value = min(40, claims.map(\.value.asWritten.count).max() ?? 0)
      let pad = { (text: String, width: Int) in text + String(repeating: " ", count: max(0, width - text.count)) }
      return
        ([
          "\(refusal.map { "refused: \($0)" } ?? "allowed"), \(session.map { "in the session \($0)" } ?? "in a session that begins now")"
        ]
        + claims.map { "  \(pad($0.name, name))  \(pad($0.value.asWritten, value))  \($0.rule)" })
        .joined(separator: "\n")
    }
  }
}

/// A claim as JSON.
private struct EncodedClaim: Encodable {
  let claim: JSONClaim

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch claim {
    case .null: try container.encodeNil()
    case .flag(let flag): try container.encode(flag)
    case .number(let number):
      if let integer = Int64(exactly: number) { try container.encode(integer) } else { try container.encode(number) }
    case .integer(let digits):
      if let integer = Int64(digits) { try container.encode(integer) } else { try container.encode(digits) }
    case .text(let text): try container.encode(text)
    case .list(let items): try container.encode(items.map(EncodedClaim.init))
    case .object(let members): try container.encode(members.mapValues(EncodedClaim.init))
    }
  }
}

extension OperatorStore {
  /// What decides about apps, on this store.
  fileprivate func apps() throws -> Apps {
    let logger = Logger(label: "apps") { LineLog(label: $0, level: .error) }
    return Apps(
      store: store, generations: ActiveGeneration(generation, at: now), providers: registry, keys: keys, clock: clock,
      random: SystemRandom(), signing: SigningKeys(keys, store: store, at: now),
      audit: AuditTrail(store: store, logger: logger))
  }
}

extension AppVerdict {
  /// Why the app refuses the session, for an operator; nil: it does not.
  fileprivate func words(of app: App) -> String? {
    let place = { (field: String) in app.locations[field].map { " (\($0))" } ?? "" }
    switch self {
    case .needsFactors(let count):
      return "the session has not passed \(count) factors, as `require` demands\(place("require"))"
    case .judged(let verdict):
      switch verdict {
      case .pass: return nil
      case .noSession: return "there is no session"
      case .emailNotVerified: return "the email address is not verified, as `require` demands\(place("require"))"
      case .notInGroup(let groups):
        let names = groups.anyOf.map(\.rawValue).joined(separator: " or ")
        return "the account is not in the group \(names), as `require` demands\(place("require"))"
      case .needs(let provider): return "the session has not passed \(provider) recently enough\(place("require"))"
      case .tooNew(let provider, let until): return "\(provider) is too new, and counts from \(until.text) on"
      case .denied(let reason): return "`decide` denies \"\(reason)\"\(place("decide"))"
      case .failed(let fault): return "\(fault)"
      }
    }
  }
}
