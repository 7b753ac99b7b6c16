import Foundation
import MoongateCore
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
  private let token: SecretText?

  /// - Parameter gateway: says where it listens, and by what token it lets callers in.
  init(_ gateway: GatewaySettings) {
    address = gateway.admin
    token = gateway.allAdminTokens.first?.secret
  }

  /// One request of HTTP/1.1 on a connection of its own.
  /// - Returns: nil where nothing listens.
  /// - Throws: a sentence where something does, and does not answer.
  func get(_ path: String) async throws(StartProblem) -> Answer? {
    let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
    do {
      channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(2))
        .connect(host: address.host, port: address.port) { channel in
          channel.eventLoop.makeCompletedFuture { try NIOAsyncChannel(wrappingChannelSynchronously: channel) }
        }
    } catch {
      return nil
    }
    let authorization = token.map { "Authorization: Bearer \($0.reveal())\r\n" } ?? ""
    let request = "GET \(path) HTTP/1.1\r\nHost: \(address)\r\nAccept: application/json\r\n\(authorization)Connection: close\r\n\r\n"
    guard let received = try? await Self.exchange(request, on: channel), let end = received.range(of: Data("\r\n\r\n".utf8)),
      let head = String(data: received[..<end.lowerBound], encoding: .utf8),
      let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw StartProblem("What listens at \(address) does not answer.", status: .couldNotRun) }
    guard status != 401 else {
      throw StartProblem("The admin listener at \(address) wants another token than those that gateway.lua names.", status: .couldNotRun)
    }
    return Answer(status: status, body: received[end.upperBound...])
  }

  /// All that comes until the other side closes.
  private static func exchange(_ request: String, on channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>) async throws -> Data {
    try await withThrowingTaskGroup(of: Data?.self) { group in
      group.addTask {
        try await channel.executeThenClose { inbound, outbound in
          try await outbound.write(ByteBuffer(string: request))
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
