import MoongateSDK

/// The methods that a program can call during a call of the gateway.
enum ProgramMethod: String, CaseIterable {
  case get = "store.get"
  case set = "store.set"
  case take = "store.take"
  case remove = "store.remove"
  case hash, verify, compare
}

/// The parameters of all methods. Each method uses its own subset.
struct ProgramRequest: Decodable {
  struct Parameters: Decodable {
    /// The related call of the gateway; nil for the oldest open one.
    let call: Int?
    let key: String?
    let value: String?
    /// In seconds.
    let expiresIn: Double?
    let once: Bool?
    let secret: String?
    let hash: String?
    let a: String?
    let b: String?

    enum CodingKeys: String, CodingKey {
      case call, key, value, once, secret, hash, a, b
      case expiresIn = "expires_in"
    }
  }

  let params: Parameters
}

/// The results of the methods.
enum ProgramReply: Encodable {
  case value(String?)
  case stored(Bool)
  case removed
  case hash(String)
  case match(Bool, upgrade: String?)

  private enum Keys: String, CodingKey { case value, stored, hash, match, upgrade }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    switch self {
    case .value(let value): try container.encode(value, forKey: .value)
    case .stored(let isStored): try container.encode(isStored, forKey: .stored)
    case .removed: break
    case .hash(let hash): try container.encode(hash, forKey: .hash)
    case .match(let isMatch, let upgrade):
      try container.encode(isMatch, forKey: .match)
      try container.encodeIfPresent(upgrade, forKey: .upgrade)
    }
  }
}

/// Why the gateway refuses a request.
struct ProgramRefusal: Error, Encodable {
  /// Error codes of JSON-RPC 2.0, and two more.
  enum Code: Int, Encodable {
    case noSuchMethod = -32601
    case invalidParameters = -32602
    /// Temporarily unavailable: the store does not answer or is full, or there is no hashing permit.
    case unavailable = -32000
    /// Not allowed here: no call is open, or the call does not grant the service.
    case notGranted = -32001
  }

  let code: Code
  let message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }
}

/// An answer to a request of the program.
struct Reply<Result: Encodable>: Encodable {
  let jsonrpc = "2.0"
  let id: RequestID
  var result: Result?
  var error: ProgramRefusal?
}
