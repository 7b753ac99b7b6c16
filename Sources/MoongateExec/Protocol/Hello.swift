import Logging

/// The gateway's greeting.
struct Hello: Encodable {
  /// For programs that know of no other.
  let `protocol` = Introduction.versions.lowerBound
  /// Of which the program may choose one.
  let protocols = Array(Introduction.versions)
  /// Under which name gateway.lua configures the provider.
  let name: String
}

/// The provider's settings, as gateway.lua says them.
struct Configuration: Encodable {
  let settings: [String: WireSetting]
}

/// A call that nobody waits for any more.
struct Cancellation: Encodable {
  let id: Int
}

/// A line for the gateway's log.
struct LogLine: Decodable {
  struct Parameters: Decodable {
    enum Level: String, Decodable { case info, notice, warning, error }

    let level: Level?
    let message: String
    let values: [String: Scalar]?

    var loggerLevel: Logger.Level {
      switch level {
      case .info: .info
      case .warning: .warning
      case .error: .error
      case .notice, nil: .notice
      }
    }
  }

  let params: Parameters
}

/// Text, a number or a flag, as text.
struct Scalar: Decodable {
  let text: String

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let text = try? container.decode(String.self) {
      self.text = text
    } else if let flag = try? container.decode(Bool.self) {
      text = "\(flag)"
    } else if let whole = try? container.decode(Int64.self) {
      text = "\(whole)"
    } else {
      text = "\(try container.decode(Double.self))"
    }
  }
}
