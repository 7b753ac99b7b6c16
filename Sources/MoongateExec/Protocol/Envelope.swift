import Foundation

/// JSON-RPC 2.0 as far as it is spoken here: one message a line, UTF-8, no batches, identifiers that are whole numbers.
///
/// What a program writes is decoded twice: here, to find whose answer it is, and then, by whoever asked, as what was
/// asked for.
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
  /// Whether it has what a request has and what an answer has.
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

/// What a program calls a request of its own: to be given back as it is.
enum RequestID: Codable, Sendable {
  /// Of a text, in bytes: whatever it is, it waits here until the program reads it again.
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

/// A request or a notification on its way out.
struct Outgoing<Parameters: Encodable>: Encodable {
  let jsonrpc = "2.0"
  /// nil: a notification.
  let id: Int?
  let method: Method
  let params: Parameters?
}

/// All that the gateway says.
enum Method: String, Encodable, CaseIterable {
  case hello, configure, deliver, begin, submit, hook, upgrade, maintain, cancel, shutdown
}

/// Nothing to say beside the method.
struct NoParameters: Encodable {}

/// An answer to a request of a program of version 1: there is nothing that it could ask for.
struct Refusal: Encodable {
  struct Problem: Encodable {
    let code = -32601
    let message = "the gateway answers no requests; write `log` as a notification, without an id"
  }

  let jsonrpc = "2.0"
  let id: RequestID
  let error = Problem()
}

/// An answer's own part.
struct Answer<Result: Decodable>: Decodable {
  let result: Result
}

/// Lines of JSON.
enum JSONLine {
  /// One line with its end.
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

  /// What is wrong with a message, for its author: the field, and what was expected.
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
    case .typeMismatch(let type, let context): return "\(path(context)) is no \(type)"
    case .valueNotFound(_, let context): return "\(path(context)) is null"
    case .dataCorrupted(let context): return "\(path(context)): \(context.debugDescription)"
    @unknown default: return "\(error)"
    }
  }
}
