import Logging

/// The parameters of `hello`.
struct Hello: Encodable {
  /// The versions that the program can choose from.
  let protocols = Array(Introduction.versions)
  /// The provider's name in gateway.lua.
  let name: String
}

/// The provider's settings from gateway.lua.
struct Configuration: Encodable {
  let settings: [String: WireSetting]
}

/// Cancels an abandoned call.
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

/// A string, number or Boolean, as text.
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
