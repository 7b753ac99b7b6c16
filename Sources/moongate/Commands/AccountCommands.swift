import ArgumentParser
import Foundation
import MoongateCore
import MoongateSDK

/// `moongate account`: what an operator does about people. Works on the store itself, whether a gateway runs on it or not.
struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "Look up, lock, reset, delete, import and export the people of this gateway.",
    discussion: """
      NAME is an account's id, a phone number or an email address. A gateway that runs on the same store sees a change within a second. \
      Exits with 0, with 1 where there is no such account (or a file has bad lines), with 2 where there is no store.
      """,
    subcommands: [
      ListAccounts.self, ShowAccount.self, LockAccount.self, UnlockAccount.self, DisableAccount.self, ResetAccount.self, DeleteAccount.self,
      AccountSessions.self,
      ImportAccounts.self, ExportAccounts.self,
    ])
}

/// `moongate account list`.
struct ListAccounts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "list", abstract: "List accounts in the order of their ids.")

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
  static let configuration = CommandConfiguration(commandName: "show", abstract: "Tell all that is known of an account.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An id, a number or an address.") var name: String
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = AccountDocument(try await opened.account(named: name))
      print(json ? try ToolJSON.text(account) : account.text)
    }
  }
}

/// `moongate account sessions NAME`.
struct AccountSessions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "sessions", abstract: "List an account's sessions, or end them.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An id, a number or an address.") var name: String
  @Flag(help: "End all of them.") var end = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      let sessions = try await opened.desk.sessions(of: account.id).map(SessionLine.init)
      if end { _ = try await opened.desk.endSessions(of: account.id) }
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
  @OptionGroup var deed: Deed

  func run() async throws { try await deed.carryOut(configuration, "locked") { desk, id throws(StoreFault) in try await desk.lock(id) } }
}

/// `moongate account unlock NAME`.
struct UnlockAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "unlock", abstract: "Let people sign in to a locked account again.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: Deed

  func run() async throws { try await deed.carryOut(configuration, "unlocked") { desk, id throws(StoreFault) in try await desk.unlock(id) } }
}

/// `moongate account disable NAME`.
struct DisableAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "disable", abstract: "Lock an account that somebody else got into, and forget its PIN and password.",
    discussion: "After `unlock` only a code to what the account holds opens it.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: Deed

  func run() async throws { try await deed.carryOut(configuration, "disabled") { desk, id throws(StoreFault) in try await desk.disable(id) } }
}

/// `moongate account delete NAME`.
struct DeleteAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Remove an account and all that tells of the person. It cannot be undone.",
    discussion: "Lines of the audit trail stay, without account, identifier and address. Locks stay: they name nobody.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: Deed

  func run() async throws { try await deed.carryOut(configuration, "deleted") { desk, id throws(StoreFault) in try await desk.delete(id) } }
}

/// One deed about one account.
struct Deed: ParsableArguments {
  @Argument(help: "An id, a number or an address.") var name: String
  @Flag(help: "Print JSON.") var json = false

  private struct Done: Encodable {
    let account: String
    let done: String
  }

  func carryOut(
    _ configuration: ConfigurationOption, _ word: String, _ act: (AccountDesk, String) async throws(StoreFault) -> AccountDesk.Outcome
  ) async throws {
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      guard try await act(opened.desk, account.id) == .done else { throw StartProblem("There is no account \(name).") }
      print(json ? try ToolJSON.text(Done(account: account.id, done: word)) : "\(account.id) \(word)")
    }
  }
}
