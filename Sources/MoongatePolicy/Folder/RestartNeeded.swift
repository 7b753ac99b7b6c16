import MoongateCore

extension GatewaySettings {
  /// The settings that differ from those at the start and take effect only after a restart: `listen`, `admin`, `store`,
  /// `key`, `app_api`, `drain`, and switching `tls` on or off. One problem for each, at the changed field.
  /// - Parameter started: the settings of the generation that was active at the start.
  package func changesThatNeedRestart(since started: GatewaySettings) -> [ConfigurationProblem] {
    let changes: [(name: String, isChanged: Bool)] = [
      ("listen", listen != started.listen), ("admin", admin != started.admin), ("store", store != started.store),
      ("key", key != started.key),
      ("app_api", appAPI != started.appAPI), ("drain", drain != started.drain),
      // Changed certificate files are reloaded. Only switching TLS on or off needs a restart.
      ("tls", (tls == nil) != (started.tls == nil)),
    ]
    return changes.filter(\.isChanged).map { change in
      ConfigurationProblem(
        location: locations[change.name] ?? SourceLocation(file: "gateway.lua", line: 0), path: change.name,
        message: "changed; takes effect after a restart of the gateway")
    }
  }
}
