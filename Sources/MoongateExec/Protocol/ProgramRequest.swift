import MoongateSDK

/// What a program of version 2 may ask of the gateway while a call of the gateway is open.
enum ProgramMethod: String, CaseIterable {
  case get = "store.get"
  case set = "store.set"
  case take = "store.take"
  case remove = "store.remove"
  case hash, verify, compare
}

/// A request's parameters: those of all methods, each of which takes its own.
struct ProgramRequest: Decodable {
  struct Parameters: Decodable {
    /// The gateway's call that the request is for; nil: the oldest that is open.
    let call: Int?
    let key: String?
    let value: String?
    /// Seconds.
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

/// What the gateway answers to a request.
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

/// Why the gateway does not do what a program asks.
struct ProgramRefusal: Error, Encodable {
  /// Of JSON-RPC 2.0, and two of our own.
  enum Code: Int, Encodable {
    case noSuchMethod = -32601
    case invalidParameters = -32602
    /// Not now: the store does not answer or is full, or there is no permit to hash.
    case unavailable = -32000
    /// Not here: no call is open, or not one in which this is granted.
    case notGranted = -32001
  }

  let code: Code
  let message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }
}

/// An answer to a request of the program's.
struct Reply<Result: Encodable>: Encodable {
  let jsonrpc = "2.0"
  let id: RequestID
  var result: Result?
  var error: ProgramRefusal?
}
