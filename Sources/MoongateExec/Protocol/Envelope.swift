import Foundation

/// A JSON-RPC 2.0 message in the supported subset: one message per line, UTF-8, no batches, integer ids.
///
/// A message is decoded twice: here to find the related call, and then by the caller as the expected result.
struct Incoming: Decodable {
  struct Problem: Decodable {
    let code: Int
    let message: String
  }

  enum Kind {
    case answer(id: Int)
    case failure(id: Int, Problem)
    case notification(method: String)
    case request(id: RequestID, method: String)
  }

  let kind: Kind
  /// Whether it contains members of both a request and an answer.
  let isAmbiguous: Bool

  private enum Keys: String, CodingKey { case jsonrpc, id, method, result, error }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    guard try container.decode(String.self, forKey: .jsonrpc) == "2.0" else {
      throw DecodingError.dataCorruptedError(forKey: .jsonrpc, in: container, debugDescription: "not 2.0")
    }
    isAmbiguous = container.contains(.method) && (container.contains(.result) || container.contains(.error))
    if let method = try container.decodeIfPresent(String.self, forKey: .method) {
      if let id = try container.decodeIfPresent(RequestID.self, forKey: .id) {
        kind = .request(id: id, method: method)
      } else {
        kind = .notification(method: method)
      }
      return
    }
    let id = try container.decode(Int.self, forKey: .id)
    if let problem = try container.decodeIfPresent(Problem.self, forKey: .error) {
      kind = .failure(id: id, problem)
      return
    }
    guard container.contains(.result) else {
      throw DecodingError.dataCorruptedError(
        forKey: .result, in: container, debugDescription: "neither result nor error")
    }
    kind = .answer(id: id)
  }
}

/// The id of a program's request, which is returned unchanged.
enum RequestID: Codable, Sendable {
  /// The maximum length of a string id in bytes, because it stays in memory until the program reads the answer.
  private static let longest = 128

  case number(Int)
  case text(String)

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int.self) {
      self = .number(number)
      return
    }
    let text = try container.decode(String.self)
    guard text.utf8.count <= Self.longest else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "longer than \(Self.longest) bytes")
    }
    self = .text(text)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .number(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    }
  }
}

/// An outgoing request or notification.
struct Outgoing<Parameters: Encodable>: Encodable {
  let jsonrpc = "2.0"
  /// nil for a notification.
  let id: Int?
  let method: Method
  let params: Parameters?
}

/// The methods that the gateway sends.
enum Method: String, Encodable, CaseIterable {
  case hello, configure, deliver, begin, submit, hook, upgrade, maintain, recheck, cancel, shutdown
}

/// Empty parameters.
struct NoParameters: Encodable {}

/// The result of an answer.
struct Answer<Result: Decodable>: Decodable {
  let result: Result
}

/// JSON encoding of lines.
enum JSONLine {
  /// The encoded message with its line end.
  static func encode(_ message: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    var line = Array(try encoder.encode(message))
    line.append(UInt8(ascii: "\n"))
    return line
  }

  static func decode<Message: Decodable>(_ type: Message.Type, _ line: [UInt8]) throws -> Message {
    try JSONDecoder().decode(type, from: Data(line))
  }

  /// Why a message cannot be decoded, for its author: the field and the expected value.
  static func problem(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return "\(error)" }
    func path(_ context: DecodingError.Context, _ last: (any CodingKey)? = nil) -> String {
      let keys = (context.codingPath + (last.map { [$0] } ?? [])).map {
        $0.intValue.map { "[\($0)]" } ?? $0.stringValue
      }
      return keys.isEmpty ? "the message" : "`\(keys.joined(separator: ".").replacing(".[", with: "["))`"
    }
    switch error {
    case .keyNotFound(let key, let context): return "\(path(context, key)) is missing"
    case .typeMismatch(let type, let context): return "\(path(context)) is not a \(type)"
    case .valueNotFound(_, let context): return "\(path(context)) is null"
    case .dataCorrupted(let context): return "\(path(context)): \(context.debugDescription)"
    @unknown default: return "\(error)"
    }
  }
}
