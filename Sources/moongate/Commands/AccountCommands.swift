import ArgumentParser
import Foundation
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `moongate account`: what an operator does about people. Works on the store itself, whether a gateway runs on it or
/// not.
struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "Look up, lock, reset, delete, import and export the people of this gateway.",
    discussion: """
      NAME is an account's id, a phone number or an email address. A gateway that runs on the same store sees a change within a second. \
      Exits with 0, with 1 where there is no such account (or a file has bad lines), with 2 where there is no store.
      """,
    subcommands: [
      ListAccounts.self, ShowAccount.self, AccountHistory.self, LockAccount.self, UnlockAccount.self,
      DisableAccount.self, ResetAccount.self,
      DeleteAccount.self, AccountSessions.self, EndAccountSessions.self, ImportAccounts.self, ExportAccounts.self,
    ])
}

/// `moongate account list`.
struct ListAccounts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List accounts in the order of their ids.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "Only those of this number or address, proved or claimed.") var name: String?
  @Option(help: "Begin behind this id.") var after: String?
  @Option(help: "At most so many.") var limit = 100
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard limit > 0 else { throw StartProblem("--limit is 1 or more.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      let accounts =
        if let name {
          try await opened.desk.accounts(named: name, region: opened.gateway.region)
        } else {
          try await opened.desk.accounts(after: after, limit: limit)
        }
      if json {
        print(try ToolJSON.text(accounts.map(AccountDocument.init)))
      } else {
        for account in accounts { print(AccountDocument(account).line) }
        if name == nil, accounts.count == limit, let last = accounts.last { print("… more behind --after \(last.id)") }
      }
      if name != nil, accounts.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
    }
  }
}

/// `moongate account show NAME`.
struct ShowAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Tell all that is known of an account.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An id, a number or an address.") var name: String
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let overview = try await opened.desk.overview(of: try await opened.account(named: name), in: opened.generation)
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
    commandName: "sessions", abstract: "List an account's sessions, or end them.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An id, a number or an address.") var name: String
  @Flag(help: "End all of them, as `end-sessions` does.") var end = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      let sessions = try await opened.desk.sessions(of: account.id).map(SessionLine.init)
      if end {
        _ = try await opened.desk.acting(as: try identity.identity("moongate account sessions")).endSessions(
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
    commandName: "lock", abstract: "Lock an account: its sessions end, and nobody signs in to it until it is unlocked.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: AccountOperation

  func run() async throws {
    try await deed.carryOut(configuration, "lock", done: "locked") { desk, id throws(StoreFault) in
      try await desk.lock(id)
    }
  }
}

/// `moongate account disable NAME`.
struct DisableAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "disable", abstract: "Lock an account that somebody else got into, and forget its PIN and password.",
    discussion: "After `unlock` only a code to what the account holds opens it.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: AccountOperation

  func run() async throws {
    try await deed.carryOut(configuration, "disable", done: "disabled") { desk, id throws(StoreFault) in
      try await desk.disable(id)
    }
  }
}

/// `moongate account delete NAME`.
struct DeleteAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Remove an account and all that tells of the person. It cannot be undone.",
    discussion:
      "Lines of the audit trail stay, without account, identifier and address. Locks stay; whom they are about is forgotten."
  )

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: AccountOperation

  func run() async throws {
    try await deed.carryOut(configuration, "delete", done: "deleted") { desk, id throws(StoreFault) in
      try await desk.delete(id)
    }
  }
}

/// One deed about one account.
struct AccountOperation: ParsableArguments {
  @Argument(help: "An id, a number or an address.") var name: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  private struct Done: Encodable {
    let account: String
    let done: String
  }

  /// - Parameters:
  ///   - command: the word behind `moongate account`.
  ///   - word: what is said when it is done.
  func carryOut(
    _ configuration: ConfigurationOption, _ command: String, done word: String,
    _ act: (AccountAdministration, String) async throws(StoreFault) -> AccountAdministration.Outcome
  ) async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      guard
        try await act(opened.desk.acting(as: try identity.identity("moongate account \(command)")), account.id) == .done
      else {
        throw StartProblem("There is no account \(name).")
      }
      print(json ? try ToolJSON.text(Done(account: account.id, done: word)) : "\(account.id) \(word)")
    }
  }
}
