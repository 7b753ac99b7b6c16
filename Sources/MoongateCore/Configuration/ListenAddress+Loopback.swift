import MoongateSDK

extension ListenAddress {
  /// Whether only this machine can connect to it. Names below `localhost` do not count, because they can resolve to any
  /// address.
  package var isLoopback: Bool { Loopback.isAddress(host.lowercased()) }
}

extension PublicURL {
  /// Whether it refers to the machine of the user who opens it.
  package var isLoopback: Bool { Loopback.contains(host) }
}
