import ArgumentParser
import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateSDK

/// `moongate account`: manages accounts. Works directly on the store, whether or not a gateway is running.
struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "Manage accounts: look up, lock, reset, delete, import and export.",
    discussion: """
      NAME is an account id, a phone number, an email address or a user name. A gateway that runs on the same store applies a change within a second. \
      Exit status: 0 on success; 1 if the account does not exist or an imported file has bad lines; 2 if the store is missing.
      """,
    subcommands: [
      ListAccounts.self, ShowAccount.self, AccountHistory.self, LockAccount.self, UnlockAccount.self,
      DisableAccount.self, ResetAccount.self,
      DeleteAccount.self, AccountSessions.self, EndAccountSessions.self, AccountDevices.self, ImportAccounts.self,
      ExportAccounts.self,
    ])
}

/// `moongate account list`.
struct ListAccounts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List accounts in order of id.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "List only accounts with this phone number or email address, verified or not.") var name: String?
  @Option(help: "Start after this account id.") var after: String?
  @Option(help: "Maximum number of accounts to list.") var limit = 100
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard limit > 0 else { throw StartProblem("--limit must be 1 or more.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      let accounts =
        if let name {
          try await opened.administration.accounts(named: name, region: opened.gateway.region)
        } else {
          try await opened.administration.accounts(after: after, limit: limit)
        }
      if json {
        print(try ToolJSON.text(accounts.map(AccountDocument.init)))
      } else {
        for account in accounts { print(AccountDocument(account).line) }
        if name == nil, accounts.count == limit, let last = accounts.last {
          print("… continue with --after \(last.id)")
        }
      }
      if name != nil, accounts.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
    }
  }
}

/// `moongate account show NAME`.
struct ShowAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show everything stored about an account.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let overview = try await opened.administration.overview(
        of: try await opened.account(named: name), in: opened.generation)
      print(
        json
          ? try ToolJSON.text(OperatorDocument.overview(overview, at: opened.now))
          : OverviewText(overview: overview, now: opened.now).text)
    }
  }
}

/// `moongate account sessions NAME`.
struct AccountSessions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions", abstract: "List or end the sessions of an account.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @Flag(help: "End all sessions, like `end-sessions`.") var end = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      let sessions = try await opened.administration.sessions(of: account.id).map(SessionLine.init)
      if end {
        _ = try await opened.administration.acting(as: try identity.identity("moongate account sessions")).endSessions(
          of: account.id)
      }
      if json {
        print(try ToolJSON.text(sessions))
      } else {
        for session in sessions { print(session.text) }
        if end { print("\(sessions.count) session\(sessions.count == 1 ? "" : "s") ended") }
      }
    }
  }
}

/// `moongate account lock NAME`.
struct LockAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Lock an account: end its sessions and refuse sign-ins until it is unlocked.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var operation: AccountOperation
  @OptionGroup var reason: ReasonOption

  func run() async throws {
    try await operation.carryOut(configuration, "lock", done: "locked") { administration, id throws(StoreFault) in
      try await administration.lock(id, because: reason.reason)
    }
  }
}

/// `moongate account disable NAME`.
struct DisableAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "disable", abstract: "Lock a compromised account and remove its PIN and password.",
    discussion: "After `unlock`, the user can sign in only with a code sent to an identifier of the account.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var operation: AccountOperation
  @OptionGroup var reason: ReasonOption

  func run() async throws {
    try await operation.carryOut(configuration, "disable", done: "disabled") { administration, id throws(StoreFault) in
      try await administration.disable(id, because: reason.reason)
    }
  }
}

/// `moongate account delete NAME`.
struct DeleteAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete an account and all personal data stored for it. This cannot be undone.",
    discussion: """
      The command shows the account and asks you to type its id. Scripts pass --yes. \
      Audit events are kept, without account, identifier and IP address. Locks are kept, without the identifier that they apply to.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var operation: AccountOperation
  @Flag(help: "Delete without asking. Required if standard input is not a terminal.") var yes = false

  func run() async throws {
    try await operation.carryOut(configuration, "delete", done: "deleted", asks: !yes) {
      administration, id throws(StoreFault) in
      try await administration.delete(id)
    }
  }
}

/// Why an operator does something.
struct ReasonOption: ParsableArguments {
  @Option(help: "Why, for the audit trail and for `policy explain`. The user never sees it.") var reason: String?
}

/// Arguments of a command that performs one operation on one account.
struct AccountOperation: ParsableArguments {
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  private struct Done: Encodable {
    let account: String
    let done: String
  }

  /// - Parameters:
  ///   - command: the subcommand of `moongate account`, for the audit trail.
  ///   - word: the past participle that is printed on success.
  ///   - asks: whether the operator must confirm the operation.
  func carryOut(
    _ configuration: ConfigurationOption, _ command: String, done word: String,
    asks: Bool = false,
    _ act: (AccountAdministration, String) async throws(StoreFault) -> AccountAdministration.Outcome
  ) async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      if asks { try Self.confirm(account, command) }
      guard
        try await act(
          opened.administration.acting(as: try identity.identity("moongate account \(command)")), account.id) == .done
      else {
        throw StartProblem("There is no account \(name).")
      }
      print(json ? try ToolJSON.text(Done(account: account.id, done: word)) : "\(account.id) \(word)")
    }
  }

  /// Asks the operator to type the account's id.
  private static func confirm(_ account: Account, _ command: String) throws(StartProblem) {
    let question = """
      \(AccountDocument(account).text)
      This deletes the account and all personal data stored for it. It cannot be undone.
      Type \(account.id) to delete it: 
      """
    guard let answer = Terminal.answer(to: question) else {
      throw StartProblem(
        "account \(command) asks first, and standard input is not a terminal: add --yes.",
        status: .couldNotRun)
    }
    guard answer == account.id else {
      throw StartProblem("Nothing was deleted: that is not \(account.id).", status: .couldNotRun)
    }
  }
}
