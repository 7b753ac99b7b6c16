import ArgumentParser
import Foundation
import Logging
import MoongateCore
import MoongateDelivery
import MoongateSDK

/// `moongate account reset NAME --provider PROVIDER`.
struct ResetAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset",
    abstract: "Remove one factor of an account, such as a forgotten PIN or a lost authenticator app.",
    discussion: """
      The record goes, with the attempts and locks that were counted for it; all sessions of the account end, and the person is told by a message. The \
      other ways into the account stay as they are. Nothing is done where the account has no such factor.
      """)

  private enum Done: String, Encodable {
    case reset
    case none
    case wouldReset = "would_reset"
  }

  private struct Report: Encodable {
    let account: String
    let provider: String
    let done: Done
  }

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An id, a number or an address.") var name: String
  @Option(help: "The provider whose record is removed, as gateway.lua names it: pin, password, totp, …") var provider:
    String
  @Flag(help: "Tell what would be done, and do nothing.") var dryRun = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      let has =
        account.credentials.isEmpty ? "none" : account.credentials.sorted().map(\.rawValue).joined(separator: ", ")
      guard let provider = ProviderName(rawValue: provider),
        account.credentials.contains(provider) || opened.registry.descriptor(provider) != nil
      else {
        throw StartProblem("There is no provider \(self.provider). \(account.id) has these factors: \(has).")
      }
      guard account.credentials.contains(provider) else {
        return try tell(
          .none, account, "\(account.id) has no \(provider): nothing to reset. It has these factors: \(has).")
      }
      if dryRun {
        return try tell(.wouldReset, account, "\(account.id): \(provider) would be removed, and its sessions would end")
      }
      switch try await opened.resetFactor(provider, of: account.id, by: try identity.identity("moongate account reset"))
      {
      case .done: try tell(.reset, account, "\(account.id): \(provider) removed, all sessions ended")
      case .none: try tell(.none, account, "\(account.id) has no \(provider) any more: nothing to reset.")
      case .unknown: throw StartProblem("There is no account \(name).")
      }
    }
  }

  private func tell(_ done: Done, _ account: Account, _ sentence: String) throws {
    print(json ? try ToolJSON.text(Report(account: account.id, provider: provider, done: done)) : sentence)
  }
}

extension OperatorStore {
  /// Removes a factor as the admin listener of a gateway does, with the message to the person.
  func resetFactor(_ provider: ProviderName, of account: String, by identity: OperatorIdentity) async throws
    -> FactorReset
  {
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
    let outcome = try await engine.resetFactor(provider, of: account, by: identity, client: client)
    // The message goes out before the command ends.
    await engine.deliveriesEnd()
    await web.end()
    return outcome
  }
}
