import Foundation
import MoongateCore

/// Asks the admin listener of the gateway that runs on this machine.
struct AdminClient {
  struct Answer {
    let status: Int
    let body: Data
  }

  /// How long it may take to answer.
  private static let patience = timeval(tv_sec: 5, tv_usec: 0)
  private static let most = 1 << 20

  private let address: ListenAddress

  init(_ address: ListenAddress) { self.address = address }

  /// One request of HTTP/1.1 on a connection of its own.
  /// - Returns: nil where nothing listens.
  /// - Throws: a sentence where something does, and does not answer.
  func get(_ path: String) throws(StartProblem) -> Answer? {
    guard let socket = connected() else { return nil }
    defer { close(socket) }
    var left = Array("GET \(path) HTTP/1.1\r\nHost: \(address)\r\nAccept: application/json\r\nConnection: close\r\n\r\n".utf8)[...]
    while !left.isEmpty {
      let sent = left.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard sent > 0 else { throw silent }
      left = left.dropFirst(sent)
    }
    var received = Data()
    while received.count < Self.most {
      let chunk = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in count = max(0, recv(socket, buffer.baseAddress, buffer.count, 0)) }
      if chunk.isEmpty { break }
      received += chunk
    }
    guard let end = received.range(of: Data("\r\n\r\n".utf8)), let head = String(data: received[..<end.lowerBound], encoding: .utf8),
      let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw silent }
    return Answer(status: status, body: received[end.upperBound...])
  }

  private var silent: StartProblem { StartProblem("What listens at \(address) does not answer.", status: .couldNotRun) }

  private func connected() -> Int32? {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address.host, String(address.port), &hints, &found) == 0 else { return nil }
    defer { freeaddrinfo(found) }
    var next = found
    while let one = next?.pointee {
      let descriptor = socket(one.ai_family, one.ai_socktype, one.ai_protocol)
      if descriptor >= 0 {
        var patience = Self.patience
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        if connect(descriptor, one.ai_addr, one.ai_addrlen) == 0 { return descriptor }
        close(descriptor)
      }
      next = one.ai_next
    }
    return nil
  }
}
