import ArgumentParser
import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateSDK

/// `moongate account unlock NAME`.
struct UnlockAccount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "End all locks that keep an account from signing in.",
    discussion: """
      Ends the lock of an operator (`account lock`, `account disable`) and all locks of limits, including those that disabled a credential, and lists them. \
      Locks at an address or number that the account has not verified stay, because it may belong to somebody else: `moongate locks clear` ends them. \
      An account of an import that is not complete stays as it is. \
      Exit status: 1 if nothing was locked, or if the account is part of such an import.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "An account id, a phone number, an email address or a user name.") var name: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let administration = opened.administration.acting(as: try identity.identity("moongate account unlock"))
      let account = try await opened.account(named: name)
      guard let ended = try await administration.unlock(account.id, in: opened.generation) else {
        throw StartProblem("There is no account \(name).")
      }
      if ended.isPending {
        throw StartProblem(
          """
          \(account.id) is part of an import that is under way, or was stopped. The end of the import opens the account \
          or deletes it.
          """)
      }
      if json {
        print(try ToolJSON.text(OperatorDocument.unlocking(ended, of: account.id, at: opened.now)))
      } else if ended.isNothing {
        print("\(account.id): nothing was locked")
      } else {
        if ended.wasLocked { print("\(account.id) unlocked") }
        for lock in ended.locks { print("lifted: \(LockText(named: lock, now: opened.now).line)") }
      }
      for lock in ended.kept {
        LineLog.standardError(
          "not lifted, because \(account.id) has not verified it: \(LockText(named: lock, now: opened.now).line)\n")
      }
      if ended.isNothing { throw ExitCode(ExitStatus.found.rawValue) }
    }
  }
}
