import ArgumentParser
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `moongate account end-sessions NAME`.
struct EndAccountSessions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "end-sessions", abstract: "End all sessions of an account. The user can sign in again.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var operation: AccountOperation

  func run() async throws {
    try await operation.carryOut(configuration, "end-sessions", done: "sessions ended") {
      administration, id throws(StoreFault) in
      try await administration.endSessions(of: id)
    }
  }
}
