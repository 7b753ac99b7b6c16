import MoongateCore

extension GatewaySettings {
  /// What differs from the settings that the process was started with and takes effect only when it is started again:
  /// `listen`, `admin`, `store`, `key` and `drain`. One sentence each, at the field that was changed.
  /// - Parameter started: the settings of the generation that was active at the start.
  package func changesThatNeedRestart(since started: GatewaySettings) -> [ConfigurationProblem] {
    let changes: [(name: String, isChanged: Bool)] = [
      ("listen", listen != started.listen), ("admin", admin != started.admin), ("store", store != started.store),
      ("key", key != started.key),
      ("drain", drain != started.drain),
      // Other files are read like any change; a listener that speaks TLS or does not is another listener.
      ("tls", (tls == nil) != (started.tls == nil)),
    ]
    return changes.filter(\.isChanged).map { change in
      ConfigurationProblem(
        location: locations[change.name] ?? SourceLocation(file: "gateway.lua", line: 0), path: change.name,
        message: "changed; takes effect when the gateway is started again")
    }
  }
}
