import ArgumentParser
import Foundation
import Logging
import MoongateCore
import MoongateDelivery
import MoongateProgram
import MoongateSDK

/// `moongate account reset NAME --provider PROVIDER`.
struct ResetAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset",
    abstract: "Remove one factor of an account, such as a forgotten PIN or a lost authenticator app.",
    discussion: """
      Removes the record of the provider and its attempt counters and locks, ends all sessions of the account, and notifies the user by a message. \
      What is counted by an address that the account has not verified stays, unless it has no other. The \
      other sign-in methods of the account do not change. If the account does not have the factor, the command changes nothing. \
      With --link, the command also prints a link by which the user sets a new password, for a user without an email address. It is shown once. The running gateway sends the message, in the user's language; without one, the command sends it in English. \
      Whoever opens it can set the password, and signs in with it afterwards: give it to the user in person.
      """)

  private enum Done: String, Encodable {
    case reset
    case none
    case link
    case wouldReset = "would_reset"
  }

  private struct Report: Encodable {
    let account: String
    let provider: String
    let done: Done
    var link: String?
    var expiresAt: String?

    enum CodingKeys: String, CodingKey {
      case account, provider, done, link
      case expiresAt = "expires_at"
    }
  }

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @Option(
    help:
      "The provider whose record is removed, by its name in gateway.lua, as in pin, password, totp. With --link it may be left out if one provider keeps passwords."
  )
  var provider: String?
  @Flag(help: "Print a link by which the user sets a new password, once.") var link = false
  @Option(help: "How long the link works: from 60s to 7d. Default: 24h.") var valid: Span?
  @Flag(help: "Show what would be done, without doing it.") var dryRun = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard link || valid == nil else {
      throw StartProblem("--valid is the time of a link: add --link.", status: .couldNotRun)
    }
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      let has =
        account.credentials.isEmpty ? "none" : account.credentials.sorted().map(\.rawValue).joined(separator: ", ")
      guard let named = self.provider ?? (link ? opened.providerOfLinks?.rawValue : nil) else {
        throw StartProblem(
          "Name the provider with --provider. \(account.id) has these factors: \(has).", status: .couldNotRun)
      }
      guard let provider = ProviderName(rawValue: named),
        account.credentials.contains(provider) || opened.registry.descriptor(provider) != nil
      else {
        throw StartProblem("There is no provider \(named). \(account.id) has these factors: \(has).")
      }
      if link { return try await makeLink(provider, account, opened) }
      guard account.credentials.contains(provider) else {
        return try printReport(
          .none, provider, account, "\(account.id) has no \(provider): nothing to reset. It has these factors: \(has).")
      }
      if dryRun {
        return try printReport(
          .wouldReset, provider, account, "\(account.id): \(provider) would be removed, and its sessions would end")
      }
      switch try await opened.resetFactor(provider, of: account.id, by: try identity.identity("moongate account reset"))
      {
      case .done: try printReport(.reset, provider, account, "\(account.id): \(provider) removed, all sessions ended")
      case .none:
        try printReport(.none, provider, account, "\(account.id) has no \(provider) any more: nothing to reset.")
      case .unknown: throw StartProblem("There is no account \(name).")
      }
    }
  }

  private func makeLink(_ provider: ProviderName, _ account: Account, _ opened: OperatorStore) async throws {
    let lifetime = (valid ?? .day).duration
    guard ResetLink.lifetimes.contains(lifetime) else {
      throw StartProblem("--valid must be from 60s to 7d.", status: .couldNotRun)
    }
    guard opened.generation.policies[provider] != nil, opened.registry.identifierSecrets.contains(provider) else {
      throw StartProblem(
        "--link is for a secret that belongs to an identifier, such as a password, and not for \(provider).",
        status: .couldNotRun)
    }
    if dryRun {
      return try printReport(
        .wouldReset, provider, account,
        "\(account.id): \(provider) would be removed, its sessions would end, and a link would be printed")
    }
    let identity = try identity.identity("moongate account reset")
    let isRemoved =
      account.credentials.contains(provider) ? try await resetByGateway(provider, account, opened) : false
    let made: ResetLink?
    do {
      made = try await opened.withEngine { engine, client in
        try await engine.makeResetLink(
          provider, of: account.id, lasting: lifetime, by: identity, client: client)
      }
    } catch let fault as StoreFault where isRemoved {
      throw StartProblem("The store failed: \(fault). \(Self.again(provider))", status: .couldNotRun)
    }
    guard let made else {
      let problem = "There is no account \(name), or it has just changed."
      throw StartProblem(isRemoved ? "\(problem) \(Self.again(provider))" : problem)
    }
    let report = Report(
      account: account.id, provider: provider.rawValue, done: .link, link: made.address, expiresAt: made.expiresAt.text)
    print(
      json
        ? try ToolJSON.text(report)
        : "\(account.id): \(provider) removed, all sessions ended\n\(made.address)\nworks once, until \(made.expiresAt.text)"
    )
  }

  /// What an operator does if there is no link after the gateway has removed the record.
  private static func again(_ provider: ProviderName) -> String {
    "The gateway has removed \(provider) already, and there is no link: run the command again."
  }

  /// The time limit of the gateway's answer.
  private static let timeLimit: Duration = .seconds(10)

  /// Has the running gateway remove the record, so that it sends the message to the user: it has the outbox, the queues
  /// and the texts. The command then makes the link itself: no token of the admin listener can get one.
  ///
  /// Without a gateway, the command removes the record and sends the message too.
  /// - Returns: whether the gateway has removed it.
  private func resetByGateway(_ provider: ProviderName, _ account: Account, _ opened: OperatorStore) async throws
    -> Bool
  {
    let reason: String
    var client = AdminClient(opened.gateway)
    client.withoutAnswer = """
      It may have removed \(provider) and sent the message, or do so later: if the link does not work, run the command \
      again.
      """
    do throws(StartProblem) {
      let answer = try await client.act(
        "DELETE", "/accounts/\(account.id)/factors/\(provider)", within: Self.timeLimit)
      if answer.status == 204 { return true }
      reason = "The admin listener at \(opened.gateway.admin) answered \(answer.status)."
    } catch {
      reason = error.sentence
    }
    LineLog.standardError(
      "\(reason) So this command sends the message to the user itself, in English. With outbox(), nobody gets it.\n")
    return false
  }

  private func printReport(_ done: Done, _ provider: ProviderName, _ account: Account, _ sentence: String) throws {
    print(json ? try ToolJSON.text(Report(account: account.id, provider: provider.rawValue, done: done)) : sentence)
  }
}

extension OperatorStore {
  /// Removes a factor in the same way as the admin listener of a gateway, including the message to the user.
  func resetFactor(_ provider: ProviderName, of account: String, by identity: OperatorIdentity) async throws
    -> FactorReset
  {
    try await withEngine { engine, client in
      try await engine.resetFactor(provider, of: account, by: identity, client: client)
    }
  }

  /// The provider whose links set a new secret; nil if several can.
  fileprivate var providerOfLinks: ProviderName? {
    let able = registry.identifierSecrets.filter { generation.policies[$0] != nil }
    return able.count == 1 ? able.first : nil
  }

  /// Runs the body with an engine on the store, and waits for the messages that it sends.
  fileprivate func withEngine<Value>(_ body: (FlowEngine, ClientContext) async throws -> Value) async throws -> Value {
    let logger = Logger(label: "account") { LineLog(label: $0, level: .notice) }
    let random = SystemRandom()
    let web = SiteClient()
    let engine = FlowEngine(
      store: store, generations: ActiveGeneration(generation, at: clock.now()), providers: registry,
      delivery: Deliveries(outbox: Outbox(clock: clock), clock: clock, random: random, web: web, logger: logger),
      web: web, clock: clock,
      random: random, keys: keys, audit: AuditTrail(store: store, logger: logger), logger: logger)
    let client = ClientContext(
      decision: DecisionID(from: random), address: .unspecified, userAgent: nil, browser: nil, session: nil)
    let outcome = try await body(engine, client)
    // Send the message before the command ends.
    await engine.deliveriesEnd()
    await web.end()
    return outcome
  }
}
