import Foundation
import MoongateCore
import MoongateProgram
import MoongateSDK
import NIOCore
import NIOPosix

/// A client of the admin listener of the gateway that runs on this machine.
struct AdminClient {
  struct Answer {
    let status: Int
    let body: Data
  }

  /// The time limit for an answer.
  private static let timeLimit: Duration = .seconds(5)
  private static let most = 1 << 20

  let address: ListenAddress
  private let tokens: [AdminToken]
  /// The end of the message if the listener requires a token and `tokens` is empty.
  private let withoutTokens: String
  /// What may have happened if the listener does not answer, as a sentence; nil: nothing that the operator must know.
  var withoutAnswer: String?

  /// - Parameter gateway: provides the address of the listener and the admin tokens.
  init(_ gateway: GatewaySettings) {
    self.init(asking: gateway.admin, tokens: gateway.allAdminTokens)
  }

  /// - Parameters:
  ///   - tokens: the tokens of the listener; empty for requests that need none.
  ///   - withoutTokens: why there are no tokens, and what to do, as a sentence.
  init(
    asking address: ListenAddress, tokens: [AdminToken] = [],
    withoutTokens: String = "Set it at `admin` in gateway.lua, and name the folder with --config FOLDER."
  ) {
    self.address = address
    self.tokens = tokens
    self.withoutTokens = withoutTokens
  }

  /// Sends a GET request.
  /// - Returns: nil if no process listens at the address.
  /// - Throws: an error if the listener does not answer.
  func get(_ path: String) async throws(StartProblem) -> Answer? {
    try await ask("GET", path, by: tokens.first, within: Self.timeLimit)
  }

  /// Sends a request that changes something, with a token of the role `act`.
  /// - Parameters:
  ///   - method: `POST` or `DELETE`.
  ///   - fields: the fields of the body; nil for a request without a body.
  ///   - timeLimit: the time limit for an answer.
  /// - Throws: an error if no process listens at the address, if the listener does not answer, or if no configured
  ///   token has the role `act`.
  func act(
    _ method: String, _ path: String, query: [(name: String, value: String)] = [], fields: (any Encodable)? = nil,
    within timeLimit: Duration
  ) async throws(StartProblem) -> Answer {
    let pairs = PercentEncoding.form(query.map { ($0.name, $0.value) })
    let body: Data?
    do { body = try fields.map { try JSONEncoder().encode($0) } } catch {
      throw StartProblem("The input cannot be written as JSON.", status: .couldNotRun)
    }
    let token = tokens.first { $0.role == .act } ?? tokens.first
    guard
      let answer = try await ask(method, pairs.isEmpty ? path : "\(path)?\(pairs)", body, by: token, within: timeLimit)
    else {
      throw StartProblem(
        "No gateway listens at \(address). Start it, or name its configuration folder with --config FOLDER.",
        status: .couldNotRun)
    }
    if answer.status == 403, token?.role == .read {
      throw StartProblem(
        "All admin tokens of gateway.lua have the role `read`. This command needs a token with the role `act`.",
        status: .couldNotRun)
    }
    return answer
  }

  /// Sends one HTTP/1.1 request on a new connection.
  private func ask(
    _ method: String, _ path: String, _ body: Data? = nil, by token: AdminToken?, within timeLimit: Duration
  ) async throws(StartProblem) -> Answer? {
    let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
    do {
      channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(2))
        .connect(host: address.host, port: address.port) { channel in
          channel.eventLoop.makeCompletedFuture { try NIOAsyncChannel(wrappingChannelSynchronously: channel) }
        }
    } catch {
      return nil
    }
    let authorization = token.map { "Authorization: Bearer \($0.secret.reveal())\r\n" } ?? ""
    let length = method == "GET" ? "" : "Content-Length: \(body?.count ?? 0)\r\n"
    let type = body == nil ? "" : "Content-Type: application/json\r\n"
    let head =
      "\(method) \(path) HTTP/1.1\r\nHost: \(address)\r\nAccept: application/json\r\n\(authorization)\(type)\(length)Connection: close\r\n\r\n"
    guard let received = try? await Self.exchange(Data(head.utf8) + (body ?? Data()), on: channel, within: timeLimit),
      let end = received.range(of: Data("\r\n\r\n".utf8)),
      let head = String(data: received[..<end.lowerBound], encoding: .utf8),
      let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else {
      let sentences = ["The server at \(address) does not answer.", withoutAnswer].compactMap(\.self)
      throw StartProblem(sentences.joined(separator: " "), status: .couldNotRun)
    }
    guard status != 401 else {
      throw StartProblem(
        tokens.isEmpty
          ? "The admin listener at \(address) requires a token. \(withoutTokens)"
          : "The admin listener at \(address) refuses the tokens of gateway.lua.", status: .couldNotRun)
    }
    return Answer(status: status, body: received[end.upperBound...])
  }

  /// Sends the request and reads until the server closes the connection.
  private static func exchange(
    _ request: Data, on channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>, within timeLimit: Duration
  ) async throws -> Data {
    try await withThrowingTaskGroup(of: Data?.self) { group in
      group.addTask {
        try await channel.executeThenClose { inbound, outbound in
          try await outbound.write(ByteBuffer(bytes: request))
          var received = Data()
          for try await part in inbound {
            received += part.readableBytesView
            if received.count > most { break }
          }
          return received
        }
      }
      group.addTask {
        try await Task.sleep(for: timeLimit)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next().flatMap(\.self) ?? Data()
    }
  }
}
