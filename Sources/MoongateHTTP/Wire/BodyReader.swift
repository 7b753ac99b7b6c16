import Hummingbird
import HTTPTypes
import MoongateCore
import MoongateProxy
import NIOCore

/// Reads whole request bodies, with limits on size and time.
package struct BodyReader: Sendable {
  /// In bytes.
  package let longest: Int
  /// The time from the first byte to the last. Attack: a thousand clients that send one byte per minute.
  ///
  /// nil if requests arrive complete, as from a `ClientConnection`, which limits their time itself. A timer for each
  /// body would cost more than reading it.
  package let timeLimit: Duration?

  package init(longest: Int = ClientConnection.maxOwnBody, timeLimit: Duration? = .seconds(10)) {
    self.longest = longest
    self.timeLimit = timeLimit
  }

  private enum Reading: Sendable { case whole([UInt8]), tooLong, tooSlow, broken }

  /// - Throws: 413, 408, or 400 if the body ends too early.
  func read(_ exchange: Exchange) async throws(Refusal) -> [UInt8] {
    if let announced = exchange.request.headers[.contentLength].flatMap(Int.init), announced > longest {
      throw exchange.refusal(.tooLarge)
    }
    let body = exchange.request.body
    let reading = if let timeLimit { await collect(body, within: timeLimit) } else { await collect(body) }
    switch reading {
    case .whole(let bytes): return bytes
    case .tooLong: throw exchange.refusal(.tooLarge)
    case .tooSlow: throw exchange.refusal(.timeout)
    case .broken: throw exchange.refusal(.badRequest)
    }
  }

  private func collect(_ body: RequestBody, within timeLimit: Duration) async -> Reading {
    await withTaskGroup(of: Reading.self) { group in
      group.addTask { await collect(body) }
      group.addTask { (try? await Task.sleep(for: timeLimit)) == nil ? .broken : .tooSlow }
      let first = await group.next() ?? .broken
      group.cancelAll()
      return first
    }
  }

  private func collect(_ body: RequestBody) async -> Reading {
    var bytes: [UInt8] = []
    do {
      for try await part in body {
        guard bytes.count + part.readableBytes <= longest else { return .tooLong }
        bytes += part.readableBytesView
      }
    } catch {
      return .broken
    }
    return .whole(bytes)
  }
}

extension Exchange {
  /// The body as a JSON object.
  /// - Throws: 415 for another Content-Type, 408, 413, and 400 if it is not a JSON object.
  package func object() async throws(Refusal) -> JSONValue {
    guard isMedia("application/json") else { throw refusal(.notJSON) }
    let bytes = try await reader.read(self)
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONReader.read(bytes)
    } catch {
      throw refusal(.badRequest, detail: error.reason)
    }
    guard case .object = value else { throw refusal(.badRequest, detail: "The request is not a JSON object.") }
    return value
  }

  /// The body as form fields.
  /// - Throws: 415 for another Content-Type, 408, 413, and 400 if it is ambiguous.
  package func form() async throws(Refusal) -> FormFields {
    guard isMedia("application/x-www-form-urlencoded") else {
      throw refusal(.notJSON, detail: "The form was sent in a format that is not supported.")
    }
    guard let fields = FormFields(try await reader.read(self)) else { throw refusal(.badRequest) }
    shown.note(fields)
    return fields
  }

  /// Whether the body has this media type, in UTF-8 and without compression (RFC 9110, section 8.3.1).
  private func isMedia(_ type: String) -> Bool {
    let values = request.headers[values: .contentType]
    guard values.count == 1, request.headers[.contentEncoding] == nil else { return false }
    let parts = values[0].lowercased().split(separator: ";", omittingEmptySubsequences: false).map {
      $0.filter { $0 != " " && $0 != "\t" }
    }
    return parts.first == type
      && parts.dropFirst().allSatisfy {
        !$0.hasPrefix("charset=") || $0 == "charset=utf-8" || $0 == "charset=\"utf-8\""
      }
  }
}
