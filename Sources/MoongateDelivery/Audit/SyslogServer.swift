import Foundation
import MoongateCore

/// `syslog { … }`: sends events to the local syslog (`/dev/log`) in the format of syslog(3), or to a remote server by
/// TCP (RFC 6587, octet counting) in the format of RFC 5424.
///
/// Blocks its thread for at most five seconds.
package struct SyslogServer: AuditSink {
  private let settings: SyslogSettings
  private static let timeLimit = timeval(tv_sec: 5, tv_usec: 0)
  /// Severity: notice.
  private static let notice = 5

  package init(_ settings: SyslogSettings) { self.settings = settings }

  package func take(_ lines: [[UInt8]], at now: Timestamp) async throws(AuditSinkFault) {
    switch settings.address {
    case .local(let path): try send(lines, at: now, to: path)
    case .tcp(let host, let port): try send(lines, at: now, to: host, port)
    }
  }

  private var priority: Int { settings.facility.number * 8 + Self.notice }

  // MARK: local

  private func send(_ lines: [[UInt8]], at now: Timestamp, to path: String) throws(AuditSinkFault) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw AuditSinkFault("\(path) is too long for a socket")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw fault() }
    defer { close(descriptor) }
    Self.limit(descriptor)
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) == 0 }
    }
    guard isConnected else { throw fault() }
    let head = Array("<\(priority)>\(Self.localTime(now)) moongate[\(getpid())]: ".utf8)
    for line in lines {
      let message = head + line
      guard Foundation.send(descriptor, message, message.count, Int32(MSG_NOSIGNAL)) == message.count else {
        throw fault()
      }
    }
  }

  /// A local time like `Nov 24 11:30:00`, as syslog(3) writes it.
  private static func localTime(_ moment: Timestamp) -> String {
    var seconds = time_t(moment.seconds)
    var parts = tm()
    localtime_r(&seconds, &parts)
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let two = { (number: Int32) in (number < 10 ? "0" : "") + String(number) }
    let day = (parts.tm_mday < 10 ? " " : "") + String(parts.tm_mday)
    return "\(months[Int(parts.tm_mon)]) \(day) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
  }

  // MARK: remote

  private func send(_ lines: [[UInt8]], at now: Timestamp, to host: String, _ port: Int) throws(AuditSinkFault) {
    let descriptor = try open(host, port)
    defer { close(descriptor) }
    let name = ProcessInfo.processInfo.hostName.filter { $0.isASCII && !$0.isWhitespace }
    let head = Array("<\(priority)>1 \(now.exactText) \(name.isEmpty ? "-" : name) moongate \(getpid()) audit - ".utf8)
    var bytes: [UInt8] = []
    for line in lines { bytes += Array("\(head.count + line.count) ".utf8) + head + line }
    guard DescriptorIO.sendAll(bytes, to: descriptor) else { throw fault() }
    // The protocol has no responses. A server that has read everything closes the connection after us; a failed one
    // resets it.
    shutdown(descriptor, Int32(SHUT_WR))
    var byte: UInt8 = 0
    guard recv(descriptor, &byte, 1, 0) >= 0 || errno == EAGAIN || errno == EWOULDBLOCK else { throw fault() }
  }

  private func open(_ host: String, _ port: Int) throws(AuditSinkFault) -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &found) == 0 else {
      throw AuditSinkFault("\(settings.address): the host name has no address")
    }
    defer { freeaddrinfo(found) }
    var next = found
    while let info = next?.pointee {
      let descriptor = socket(info.ai_family, info.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), info.ai_protocol)
      if descriptor >= 0 {
        Self.limit(descriptor)
        if connect(descriptor, info.ai_addr, info.ai_addrlen) == 0 { return descriptor }
        let error = errno
        close(descriptor)
        errno = error
      }
      next = info.ai_next
    }
    throw fault()
  }

  /// Sets the timeouts for connecting, sending and receiving.
  private static func limit(_ descriptor: Int32) {
    var timeLimit = timeLimit
    let length = socklen_t(MemoryLayout<timeval>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeLimit, length)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeLimit, length)
  }

  private func fault() -> AuditSinkFault { AuditSinkFault("\(settings.address): \(String(cString: strerror(errno)))") }
}
