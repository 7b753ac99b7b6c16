import ArgumentParser

/// `moongate reload`: makes the running gateway read its configuration again.
struct Reload: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make the running gateway reload its configuration.",
    discussion: """
      Sends the request to the admin listener, and reads only `admin` of gateway.lua to find it. If gateway.lua has a `gate`, a configuration that would change too many of the recorded decisions is refused; --force \
      skips the gate. Exit status: 1 if the configuration is refused. The reasons are printed, and the previous configuration stays active.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @Flag(help: "Skip the gate.") var force = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let gateway = try RunningGateway(configuration, admin)
    try await gateway.activate("/policy/reload", force: force, by: identity, "moongate reload", json: json)
  }
}
