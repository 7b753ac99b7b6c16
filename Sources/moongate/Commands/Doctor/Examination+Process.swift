import Foundation
import MoongateCore
import NIOCore

/// The addresses and the open files of the gateway process.
extension Examination {
  /// Whether a gateway of this configuration answers at its admin listener.
  func isGatewayRunning() async -> Bool {
    // Attack on ourselves: many services answer /healthz, so a foreign one would pass as the gateway.
    let answer = try? await AdminClient(gateway).get("/metrics")
    return answer.map { $0.status == 200 && $0.body.range(of: Data("moongate_build_info".utf8)) != nil } ?? false
  }

  func listeners(gatewayRuns: Bool) -> [Finding] {
    [("listen", gateway.listen), ("admin", gateway.admin)].filter { $0.1.port > 0 }.map { name, address in
      Judgement.listener(name, address, code: Self.bindProblem(address), gatewayRuns: gatewayRuns)
    }
  }

  /// Binds a socket to the address, without listening, and closes it.
  /// - Returns: the `errno` of the failed call; nil if the address is free.
  static func bindProblem(_ address: ListenAddress) -> CInt? {
    guard let resolved = try? SocketAddress.makeAddressResolvingHost(address.host, port: address.port) else {
      return EADDRNOTAVAIL
    }
    let family = resolved.protocol == .inet6 ? AF_INET6 : AF_INET
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    // As the gateway does, so that connections that were closed a moment ago do not count.
    var on: CInt = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
    return resolved.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0 ? nil : errno
  }

  func files(gatewayRuns: Bool) -> Finding {
    let connections = gateway.connectionLimits.connections
    if gatewayRuns, let limit = GatewayProcess.openFiles() {
      return Judgement.files(limit: limit, connections: connections, of: .gateway)
    }
    if !gatewayRuns, let limit = ServiceUnit.openFiles() {
      return Judgement.files(limit: limit, connections: connections, of: .unit)
    }
    return Judgement.files(limit: OpenFiles.raiseLimit(), connections: connections, of: .command)
  }
}

/// What the system tells about the running gateways of this machine.
enum GatewayProcess {
  /// The smallest limit on open files of all processes of `moongate serve`; nil if none can be seen.
  static func openFiles() -> UInt64? {
    let processes = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).filter { Int($0) != nil }
    return processes.compactMap { process -> UInt64? in
      guard let line = FileManager.default.contents(atPath: "/proc/\(process)/cmdline"), isServe(line),
        let limits = FileManager.default.contents(atPath: "/proc/\(process)/limits")
      else { return nil }
      return openFiles(inLimits: String(decoding: limits, as: UTF8.self))
    }.min()
  }

  /// - Parameter commandLine: the arguments, each of them with a zero byte at its end.
  static func isServe(_ commandLine: Data) -> Bool {
    let words = commandLine.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    return words.count > 1 && words[0].split(separator: "/").last == "moongate" && words[1] == "serve"
  }

  /// The soft limit in the text of `/proc/PID/limits`. A gateway raises it to the hard limit when it starts.
  static func openFiles(inLimits text: String) -> UInt64? {
    let title = "Max open files"
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(title) }),
      let soft = line.dropFirst(title.count).split(separator: " ").first
    else { return nil }
    return soft == "unlimited" ? .max : UInt64(soft)
  }
}
