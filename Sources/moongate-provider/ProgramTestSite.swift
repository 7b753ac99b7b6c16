import Foundation
import MoongateConformance
import MoongateCore
import MoongateProgram
import MoongateSDK
import Synchronization

/// A local HTTP server in place of the site that a tested program sends messages to. It records every request, and
/// works, fails or hangs as configured.
///
/// It handles one connection at a time with one request each, on one thread. Of HTTP/1.1, it supports a head and a body
/// with `Content-Length`.
final class ProgramTestSite: Sendable {
  private static let longestHead = 65_536
  private static let longestBody = 1 << 20
  /// The time limit for an idle client, in milliseconds.
  private static let timeLimit: Int32 = 10_000

  private struct State {
    var behavior = ServiceBehavior.works
    var requests: [WebRequest] = []
    var isOver = false
  }

  private let state = Mutex(State())
  private let listener: Int32
  /// The JSON answers by path prefix; the longest matching prefix applies.
  private let answers: [String: [UInt8]]
  /// `http://127.0.0.1:PORT`
  let address: String

  /// - Parameter answers: JSON by path prefix; all other paths answer `{}`.
  /// - Throws: an error if no port can be opened.
  init(answers: [String: [UInt8]] = [:]) throws(StartProblem) {
    self.answers = answers
    let none = StartProblem(
      "No port could be opened for the test site that the program sends to.", status: .couldNotRun)
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard listener >= 0 else { throw none }
    self.listener = listener
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &name) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && getsockname(listener, $0, &size) == 0
      }
    }
    guard isBound, listen(listener, 64) == 0 else {
      close(listener)
      throw none
    }
    address = "http://127.0.0.1:\(UInt16(bigEndian: name.sin_port))"
    Thread.detachNewThread { [self] in serve() }
  }

  /// Sets the behavior from now on.
  func setServiceBehavior(_ behavior: ServiceBehavior) { state.withLock { $0.behavior = behavior } }

  /// The requests since the last call.
  func taken() -> [WebRequest] {
    state.withLock { state in
      defer { state.requests = [] }
      return state.requests
    }
  }

  /// Stops the server.
  func end() { state.withLock { $0.isOver = true } }

  private func serve() {
    while !state.withLock({ $0.isOver }) {
      var polled = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
      guard poll(&polled, 1, 50) > 0 else { continue }
      let client = accept(listener, nil, nil)
      if client >= 0 { Thread.detachNewThread { [self] in answer(client) } }
    }
    close(listener)
  }

  private func answer(_ client: Int32) {
    defer { close(client) }
    guard let request = read(client) else { return }
    let behavior = state.withLock { state in
      state.requests.append(request)
      return state.behavior
    }
    switch behavior {
    case .works: write(client, status: "200 OK", answer(to: request))
    case .fails: write(client, status: "503 Service Unavailable", Array("{}".utf8))
    case .hangs:
      // Wait until the behavior changes or the client disconnects.
      while state.withLock({ $0.behavior == .hangs && !$0.isOver }) {
        var polled = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
        if poll(&polled, 1, 20) > 0 { return }
      }
    }
  }

  private func answer(to request: WebRequest) -> [UInt8] {
    let path = request.url.dropFirst(address.count)
    let fitting = answers.keys.filter { path.hasPrefix($0) }.max { $0.utf8.count < $1.utf8.count }
    return fitting.flatMap { answers[$0] } ?? Array("{}".utf8)
  }

  private func read(_ client: Int32) -> WebRequest? {
    var bytes: [UInt8] = []
    var head: Range<Int>?
    while head == nil {
      guard bytes.count < Self.longestHead, let more = chunk(client) else { return nil }
      bytes += more
      head = bytes.firstRange(of: Array("\r\n\r\n".utf8))
    }
    guard let head else { return nil }
    let lines = String(decoding: bytes[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n")
    let first = lines.first?.split(separator: " ") ?? []
    guard first.count == 3 else { return nil }
    let headers = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (line[..<colon].lowercased(), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
    }
    let length = headers.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
    guard (0...Self.longestBody).contains(length) else { return nil }
    var body = Array(bytes[head.upperBound...])
    while body.count < length {
      guard let more = chunk(client) else { return nil }
      body += more
    }
    return WebRequest(
      method: String(first[0]), url: address + first[1], headers: headers, body: Array(body.prefix(length)))
  }

  private func chunk(_ client: Int32) -> [UInt8]? {
    var polled = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
    guard poll(&polled, 1, Self.timeLimit) > 0 else { return nil }
    var buffer = [UInt8](repeating: 0, count: 16_384)
    let count = recv(client, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer.prefix(count)) : nil
  }

  private func write(_ client: Int32, status: String, _ body: [UInt8]) {
    let head =
      "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n"
    _ = DescriptorIO.sendAll(Array(head.utf8) + body, to: client)
  }
}
