import Foundation
import MoongateCore

/// What measured values mean. No input or output: `Examination` measures.
enum Judgement {
  /// - Parameters:
  ///   - begins: when the certificate begins to hold.
  ///   - ends: when it ends.
  static func certificate(_ file: String, begins: Date, ends: Date, now: Date) -> Finding {
    let days = Int((ends.timeIntervalSince(now) / 86_400).rounded(.down))
    let day = ends.formatted(.iso8601.year().month().day())
    if now < begins {
      return .failed(
        "certificate", "\(file) does not hold yet.",
        fix: "Set this machine's clock, or use the certificate from before.")
    }
    if now >= ends {
      return .failed(
        "certificate", "\(file) expired on \(day).", fix: "Renew it; the gateway takes the new file within a second.")
    }
    if days < 14 {
      return .warning(
        "certificate", "\(file) expires in \(days) days, on \(day).",
        fix: "See why it was not renewed: `certbot renew --dry-run`.")
    }
    return .ok("certificate", "\(file) is good until \(day).")
  }

  /// - Parameter offsets: by how many seconds each other clock is ahead of this machine's, by its name.
  static func clock(_ offsets: [(name: String, seconds: Double)]) -> Finding {
    guard let worst = offsets.max(by: { abs($0.seconds) < abs($1.seconds) }) else {
      return .warning(
        "clock", "There was no other clock to compare with.",
        fix: "Run `timedatectl`: it should say that the clock is synchronized.")
    }
    let size = Duration.seconds(Int64(abs(worst.seconds).rounded())).asWritten
    guard abs(worst.seconds) >= 5 else {
      return .ok("clock", "It agrees with \(offsets.map(\.name).joined(separator: ", ")).")
    }
    let told = "\(worst.name) is \(size) \(worst.seconds > 0 ? "ahead of" : "behind") this machine's clock."
    let fix = "Let NTP set the clock: `timedatectl set-ntp true`."
    return abs(worst.seconds) >= 60 ? .failed("clock", told, fix: fix) : .warning("clock", told, fix: fix)
  }

  /// - Parameter limit: of open files; nil if the system does not tell.
  static func files(limit: UInt64?, connections: Int) -> Finding {
    let needed = UInt64(connections) * 2 + 200
    guard let limit else {
      return .warning(
        "files", "The system does not tell how many files may be open.", fix: "Set LimitNOFILE=\(needed) in the unit.")
    }
    guard limit < needed else {
      return .ok("files", "\(limit) files may be open, enough for \(connections) connections.")
    }
    return .warning(
      "files",
      "\(limit) files may be open; \(connections) connections and the requests that they pass on take up to \(needed).",
      fix: "Set LimitNOFILE=\(needed) in the unit, or lower `limits.connections` in gateway.lua.")
  }

  /// Free room on the disk of a folder, in bytes.
  static func room(_ folder: String, free: UInt64) -> Finding {
    let size = free >> 20
    if free < 16 << 20 {
      return .failed("disk", "\(folder) has \(size) MiB left.", fix: "Make room there: without it nobody can sign in.")
    }
    if free < 512 << 20 {
      return .warning("disk", "\(folder) has \(size) MiB left.", fix: "Make room there, or move the store.")
    }
    return .ok("disk", "\(folder) has \(size) MiB left.")
  }

  /// Whether `X-Forwarded-For` is believed from those who set it, and from nobody else.
  static func proxies(_ gateway: GatewaySettings) -> Finding {
    let all = gateway.trustedProxies
    // Attack: with such a block anyone is any client, and every limit per address is gone.
    if let wide = all.first(where: { isWide($0) }) {
      return .failed(
        "proxies", "trusted_proxies has \(wide): anyone there may claim to be any client.",
        fix: "Name the addresses of your own proxies alone.")
    }
    if gateway.publicURL.isSecure, gateway.tls == nil, all.isEmpty {
      return .failed(
        "proxies",
        "A proxy must speak TLS for \(gateway.publicURL), and trusted_proxies names none: all people count as one client.",
        fix: "Write the proxy's address, as in trusted_proxies = { \"127.0.0.1/32\" }.")
    }
    if gateway.listen.isLoopback, !all.isEmpty, !all.contains(where: isOwnMachine) {
      return .failed(
        "proxies",
        "The gateway listens on \(gateway.listen), which this machine alone reaches, and trusted_proxies names no address of this machine.",
        fix: "Add \"127.0.0.1/32\" to trusted_proxies.")
    }
    if all.isEmpty { return .ok("proxies", "Nobody may say X-Forwarded-For: clients connect to the gateway itself.") }
    return .ok("proxies", "X-Forwarded-For is believed from \(all.map(\.description).joined(separator: ", ")) alone.")
  }

  private static func isOwnMachine(_ block: AddressBlock) -> Bool {
    block.network == [UInt8](repeating: 0, count: 15) + [1] || block.network.count == 4 && block.network.first == 127
  }

  /// More than a private network may be.
  private static func isWide(_ block: AddressBlock) -> Bool {
    block.prefix < (block.network.count == 4 ? 8 : 32) && !isUniqueLocal(block)
  }

  private static func isUniqueLocal(_ block: AddressBlock) -> Bool {
    block.network.count == 16 && block.prefix >= 7 && block.network.first.map { $0 & 0xfe == 0xfc } ?? false
  }

  /// - Parameter addresses: of `public_url`'s host.
  static func name(_ url: PublicURL, addresses: [String]) -> Finding {
    guard !addresses.isEmpty else {
      return .failed(
        "dns", "\(url.host) has no address.", fix: "Add an A or AAAA record for \(url.host), or correct public_url.")
    }
    if !url.isLoopback, addresses.allSatisfy(Loopback.contains) {
      return .warning(
        "dns", "\(url.host) is \(addresses.joined(separator: ", ")) here: nobody else learns where it is from that.",
        fix: "Take the name out of /etc/hosts, and look at its record with `dig \(url.host)`.")
    }
    return .ok("dns", "\(url.host) is \(addresses.joined(separator: ", ")).")
  }
}
