import Foundation
import MoongateCore
import MoongateSDK
import NIOCore
import NIOPosix

/// Asks the admin listener of the gateway that runs on this machine.
struct AdminClient {
  struct Answer {
    let status: Int
    let body: Data
  }

  /// How long it may take to answer.
  private static let patience: Duration = .seconds(5)
  private static let most = 1 << 20

  private let address: ListenAddress
  private let tokens: [AdminToken]

  /// - Parameter gateway: says where it listens, and by what token it lets callers in.
  init(_ gateway: GatewaySettings) {
    address = gateway.admin
    tokens = gateway.allAdminTokens
  }

  /// - Parameter address: of a listener that is asked what needs no token.
  init(asking address: ListenAddress) {
    self.address = address
    tokens = []
  }

  /// Looks at something.
  /// - Returns: nil where nothing listens.
  /// - Throws: a sentence where something does, and does not answer.
  func get(_ path: String) async throws(StartProblem) -> Answer? {
    try await ask("GET", path, by: tokens.first, within: Self.patience)
  }

  /// Changes something, by a token that may.
  /// - Parameters:
  ///   - method: `POST` or `DELETE`.
  ///   - fields: of the body; nil: none.
  ///   - patience: how long the gateway may take for it.
  /// - Throws: a sentence where nothing listens, or what does has no answer, or lets nobody do this.
  func act(
    _ method: String, _ path: String, query: [(name: String, value: String)] = [], fields: [String: String]? = nil,
    within patience: Duration
  ) async throws(StartProblem) -> Answer {
    let pairs = PercentEncoding.form(query.map { ($0.name, $0.value) })
    let body = fields.flatMap { try? JSONEncoder().encode($0) }
    let token = tokens.first { $0.role == .act } ?? tokens.first
    guard
      let answer = try await ask(method, pairs.isEmpty ? path : "\(path)?\(pairs)", body, by: token, within: patience)
    else {
      throw StartProblem(
        "No gateway listens at \(address). Start it, or name its configuration's folder by --config FOLDER.",
        status: .couldNotRun)
    }
    if answer.status == 403, token?.role == .read {
      throw StartProblem(
        "The tokens that gateway.lua names all have the role `read`: this needs one with the role `act`.",
        status: .couldNotRun)
    }
    return answer
  }

  /// One request of HTTP/1.1 on a connection of its own.
  private func ask(
    _ method: String, _ path: String, _ body: Data? = nil, by token: AdminToken?, within patience: Duration
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
    guard let received = try? await Self.exchange(Data(head.utf8) + (body ?? Data()), on: channel, within: patience),
      let end = received.range(of: Data("\r\n\r\n".utf8)),
      let head = String(data: received[..<end.lowerBound], encoding: .utf8),
      let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw StartProblem("What listens at \(address) does not answer.", status: .couldNotRun) }
    guard status != 401 else {
      throw StartProblem(
        "The admin listener at \(address) wants another token than those that gateway.lua names.", status: .couldNotRun)
    }
    return Answer(status: status, body: received[end.upperBound...])
  }

  /// All that comes until the other side closes.
  private static func exchange(
    _ request: Data, on channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>, within patience: Duration
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
        try await Task.sleep(for: patience)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next().flatMap(\.self) ?? Data()
    }
  }
}
