import ArgumentParser
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `moongate account end-sessions NAME`.
struct EndAccountSessions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "end-sessions", abstract: "End all sessions of an account. The user can sign in again.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var deed: AccountOperation

  func run() async throws {
    try await deed.carryOut(configuration, "end-sessions", done: "sessions ended") { desk, id throws(StoreFault) in
      try await desk.endSessions(of: id)
    }
  }
}
