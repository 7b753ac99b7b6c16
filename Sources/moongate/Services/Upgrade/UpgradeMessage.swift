import Foundation
import MoongateCore
import MoongateSDK

/// The messages between two processes during an upgrade, one per line, over a socket pair that the older one created.
///
///     older                                   newer
///       | starts it, with its listening sockets |
///       |                                       | loads the configuration, opens the store
///       | <-------------- prepared ------------ |
///       | stops accepting, stores what it       |
///       | has in memory                         |
///       | ----------------- go ---------------> |
///       |                                       | accepts connections
///       | <--------------- serving ------------ |
///       | finishes its connections, and ends    |
///
/// If the older process exits before `go`, the newer one starts serving. If the newer one exits before `serving`, the
/// older one continues.
enum UpgradeMessage: Equatable {
  /// Ready to serve.
  case prepared
  /// Accepts connections with this generation.
  case serving(generation: String)
  /// Cannot serve, with the reason.
  case failed(String)

  /// The environment variable that describes the inherited descriptors.
  static let variable = "MOONGATE_UPGRADE"
  /// The protocol version. Both processes must use the same.
  static let version = "1"

  init?(_ line: String) {
    let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
    switch (parts.first, parts.count > 1 ? parts[1] : "") {
    case ("prepared", Self.version): self = .prepared
    case ("serving", let generation) where !generation.isEmpty: self = .serving(generation: generation)
    case ("failed", let why): self = .failed(why)
    default: return nil
    }
  }

  var line: String {
    switch self {
    case .prepared: "prepared \(Self.version)"
    case .serving(let generation): "serving \(generation)"
    case .failed(let why):
      "failed \(why.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: " ").prefix(2_000))"
    }
  }
}

/// The in-memory state that the newer process takes over.
struct TransferredState: Codable {
  /// A message of the outbox, with its time in milliseconds since 1970.
  struct OutboxMessage: Codable {
    let at: Int64
    let channel: String
    let to: String
    let subject: String?
    let text: String
    let code: String?
  }

  /// The maximum number of messages; the newest are kept.
  static let most = 1_000

  /// The messages, oldest first.
  let outbox: [OutboxMessage]

  /// The encoded state after the word `go`, as one line.
  var line: String {
    let encoded = (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{\"outbox\":[]}"
    return "go \(encoded)"
  }

  init(outbox: [OutboxMessage]) { self.outbox = outbox }

  /// nil if the line is not a `go` message.
  init?(line: String) {
    guard line.hasPrefix("go "), let state = try? JSONDecoder().decode(Self.self, from: Data(line.dropFirst(3).utf8))
    else { return nil }
    self = state
  }
}
