import MoongateSDK

/// The client that has created a flow, as the store keeps it: keyed hashes of its network and its address.
package struct FlowOrigin: Sendable, Equatable {
  private static let mark: Character = "."
  private static let openedMark: Character = "~"

  /// The stored text: the network, then the address. Flows with the same text are of the same address.
  package let text: String

  /// - Parameter keys: the keys of the hashes.
  init(_ address: ClientAddress, _ keys: KeyRing) {
    let hash = { (name: String, key: [UInt8]) in
      Base64URL.encode(keys.counterKey([Array(name.utf8), key]).prefix(12))
    }
    text = "\(hash("flow network", address.networkKey))\(Self.mark)\(hash("flow", address.countingKey))"
  }

  /// The text of a flow that a browser has opened. It has a share of its own (`FlowBound`).
  static func opened(_ text: String) -> String { "\(text)\(openedMark)" }

  /// What the stored text says for the bound.
  /// - Parameter bytes: the size of the flow.
  package static func member(_ text: String, bytes: Int) -> FlowBound.Member<String> {
    FlowBound.Member(
      origin: text, network: String(text.prefix { $0 != mark }), isOpened: text.last == openedMark, bytes: bytes)
  }
}
