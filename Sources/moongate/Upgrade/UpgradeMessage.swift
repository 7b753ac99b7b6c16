import Foundation
import MoongateCore
import MoongateSDK

/// What two processes say to each other during an upgrade: a line each, over a pair of sockets that the older one made.
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
/// If the older one ends before it says `go`, the newer one serves all the same. If the newer one ends before it says
/// `serving`, the older one goes on.
enum UpgradeMessage: Equatable {
  /// It could serve at once.
  case prepared
  /// It accepts connections, by this generation.
  case serving(generation: String)
  /// It cannot serve; why.
  case failed(String)

  /// The environment variable by which the newer process knows what it was handed.
  static let variable = "MOONGATE_UPGRADE"
  /// The number of the protocol: both must speak the same.
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

/// What only the older process's memory holds, and the newer one goes on with.
struct HandedState: Codable {
  /// A message of the outbox.
  struct Kept: Codable {
    let at: Int64
    let channel: String
    let to: String
    let subject: String?
    let text: String
    let code: String?
  }

  /// The newest that are handed over.
  static let most = 1_000

  /// The oldest first.
  let outbox: [Kept]

  /// In one line, with `go` in front.
  var line: String {
    let encoded = (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{\"outbox\":[]}"
    return "go \(encoded)"
  }

  init(outbox: [Kept]) { self.outbox = outbox }

  /// nil where the line says something else than `go`.
  init?(line: String) {
    guard line.hasPrefix("go "), let state = try? JSONDecoder().decode(Self.self, from: Data(line.dropFirst(3).utf8))
    else { return nil }
    self = state
  }
}
