import Foundation
import MoongateCore
import MoongateSDK

/// Turns measured values into findings, without input or output. `Examination` measures.
enum Judgement {
  /// Judges a key file that does not exist.
  /// - Parameters:
  ///   - store: the name of the store.
  ///   - isUsed: whether a gateway has used the store, with a key that is now missing.
  ///   - canBeCreated: whether this user can create the key file.
  static func missingKey(
    _ path: String, store: String, isUsed: Bool, canBeCreated: Bool = true
  ) -> (key: Finding, store: Finding) {
    guard isUsed else {
      return (
        canBeCreated
          ? .ok("key", "The first start will create the master key: \(path).")
          : .failed(
            "key", "The first start cannot create the master key: this user cannot write the folder of \(path).",
            fix: "Correct the folder, as `permissions` says, or name another file in `key` in gateway.lua."),
        .ok("store", "No gateway has used the store \(store) yet. The first start will create it.")
      )
    }
    return (
      .failed(
        "key", "The key file \(path) is missing, and the store \(store) was made with it.",
        fix: "Restore the key file from your copy. No other key opens this store."),
      .ok("store", "The store \(store) can be read, but not without its key.")
    )
  }

  /// Judges a key file that does not exist, beside a store that cannot be read.
  static func missingKey(_ path: String, storeProblem: String) -> (key: Finding, store: Finding) {
    (
      .warning(
        "key", "The key file \(path) does not exist. The first start creates it if the store is new.",
        fix: "If a gateway has used the store before, restore the key file from your copy."),
      .failed("store", storeProblem, fix: storeFix)
    )
  }

  /// What to do if the store cannot be opened.
  static let storeFix = "Fix this first: the gateway does not start without its store."

  /// - Parameter offsets: for each other clock, by name, how many seconds it is ahead of this machine's clock.
  static func clock(_ offsets: [(name: String, seconds: Double)]) -> Finding {
    guard let worst = offsets.max(by: { abs($0.seconds) < abs($1.seconds) }) else {
      return .warning(
        "clock", "No other clock was available for comparison.",
        fix: "Run `timedatectl`: it should say that the clock is synchronized.")
    }
    let size = Duration.seconds(Int64(abs(worst.seconds).rounded())).asWritten
    guard abs(worst.seconds) >= 5 else {
      return .ok("clock", "The clock agrees with \(offsets.map(\.name).joined(separator: ", ")).")
    }
    let told = "\(worst.name) is \(size) \(worst.seconds > 0 ? "ahead of" : "behind") this machine's clock."
    let fix = "Synchronize the clock with NTP: `timedatectl set-ntp true`."
    return abs(worst.seconds) >= 60 ? .failed("clock", told, fix: fix) : .warning("clock", told, fix: fix)
  }

  /// The process whose limits are judged.
  enum LimitedProcess: String {
    case gateway = "the running gateway"
    /// No gateway runs, and this is the limit that systemd will give it.
    case unit = "moongate.service"
    /// A gateway may have other limits, for example those of its unit.
    case command = "this command"
  }

  /// - Parameters:
  ///   - limit: the limit on open files; nil if it is unknown.
  ///   - process: the process that has the limit.
  static func files(limit: UInt64?, connections: Int, of process: LimitedProcess) -> Finding {
    let needed = UInt64(connections) * 2 + 200
    guard let limit else {
      return .warning(
        "files", "The limit on open files is unknown.", fix: "Set LimitNOFILE=\(needed) in the unit.")
    }
    guard limit < needed else {
      return .ok(
        "files", "The limit of \(process.rawValue), \(limit) open files, is enough for \(connections) connections.")
    }
    let own = process == .command ? " A gateway under systemd has the limit of its unit instead (LimitNOFILE)." : ""
    return .warning(
      "files",
      "The limit of \(process.rawValue) is \(limit) open files; \(connections) connections and their proxied requests "
        + "need up to \(needed).\(own)",
      fix: "Set LimitNOFILE=\(needed) in the unit, or lower `limits.connections` in gateway.lua.")
  }

  /// - Parameters:
  ///   - name: `listen` or `admin`.
  ///   - code: the `errno` of a failed attempt to bind the address; nil if it is free.
  ///   - gatewayRuns: whether a gateway of this configuration runs.
  static func listener(_ name: String, _ address: ListenAddress, code: CInt?, gatewayRuns: Bool) -> Finding {
    guard let code else { return .ok("listen", "\(address) (`\(name)`) is free.") }
    let change = "set another port in `\(name)` in gateway.lua"
    switch code {
    case EADDRINUSE where gatewayRuns, EACCES where gatewayRuns:
      return .ok("listen", "\(address) (`\(name)`) belongs to the running gateway.")
    case EADDRINUSE:
      return .failed(
        "listen", "\(address) (`\(name)`) is in use, and the gateway does not answer at `admin`.",
        fix: "If moongate.socket is active, systemd holds the port: start moongate.service. Otherwise find the program "
          + "with `ss -ltnp` and stop it, or \(change).")
    case EACCES:
      // A warning only: systemd may open the port for the gateway.
      return .warning(
        "listen", "This user cannot open port \(address.port) (`\(name)`).",
        fix: "Let systemd open the port (moongate.socket), or \(change), above 1023.")
    case EADDRNOTAVAIL:
      return .failed(
        "listen", "This machine has no address \(address.host) (`\(name)`).",
        fix: "Correct `\(name)` in gateway.lua.")
    default:
      return .failed(
        "listen", "The gateway cannot listen on \(address) (`\(name)`): \(String(cString: strerror(code))).",
        fix: "Correct `\(name)` in gateway.lua.")
    }
  }

  /// - Parameter channels: the channels for which a provider sends messages.
  /// - Returns: nil if a provider sends messages to the recipient.
  static func recipient(_ recipient: String, channels: Set<MessageChannel>) -> Finding? {
    let isMail = recipient.contains("@")
    guard !channels.contains(isMail ? .mail : .sms) else { return nil }
    let (kind, other) = isMail ? ("mail", "a phone number") : ("messages to phones", "an email address")
    return .failed(
      "messages", "No test message was sent to \(recipient), because no provider of gateway.lua sends \(kind).",
      fix: "Use --to with \(other), or configure a provider that sends \(kind).")
  }

  /// What this user can do with the folder of the store or of the key.
  enum FolderState: Equatable {
    /// Write it, or create it.
    case usable
    /// It does not exist, and this user cannot create it.
    case missing
    /// It exists, and this user cannot write it. The reason is the system's.
    case refused(reason: String)
  }

  /// - Parameters:
  ///   - folder: the folder of the store or of the key. Attack on ourselves: the fix never names a folder above it,
  ///     such as `/var/lib` or the configuration folder, because the service would then own what it must not change.
  ///   - setting: the setting that names the folder: `store` or `key`.
  /// - Returns: nil if the folder is usable.
  static func permissions(_ folder: String, _ state: FolderState, of setting: String) -> Finding? {
    let user = ServiceUser.name
    switch state {
    case .usable: return nil
    case .missing:
      return .failed(
        "permissions", "\(folder) does not exist, and this user cannot create it.",
        fix: "Run: install -d -o \(user) -g \(user) -m 700 \(folder)")
    case .refused(let reason):
      return .failed(
        "permissions", "\(folder) cannot be written by this user: \(reason).",
        fix: "If the folder holds only the state of Moongate, run: chown \(user) \(folder). "
          + "Otherwise name a folder of its own in `\(setting)` in gateway.lua.")
    }
  }

  /// Judges the free disk space of a folder, in bytes.
  static func room(_ folder: String, free: UInt64) -> Finding {
    let size = free >> 20
    if free < 16 << 20 {
      return .failed("disk", "\(folder) has \(size) MiB left.", fix: "Free disk space: sign-ins fail without it.")
    }
    if free < 512 << 20 {
      return .warning("disk", "\(folder) has \(size) MiB left.", fix: "Free disk space, or move the store.")
    }
    return .ok("disk", "\(folder) has \(size) MiB left.")
  }

  /// - Parameter addresses: the resolved addresses of `public_url`'s host.
  static func name(_ url: PublicURL, addresses: [String]) -> Finding {
    guard !addresses.isEmpty else {
      return .failed(
        "dns", "\(url.host) has no address.", fix: "Add an A or AAAA record for \(url.host), or correct public_url.")
    }
    if !url.isLoopback, addresses.allSatisfy(Loopback.contains) {
      return .warning(
        "dns",
        "\(url.host) resolves to \(addresses.joined(separator: ", ")) on this machine, which other machines cannot use.",
        fix: "Remove the name from /etc/hosts, and check its record with `dig \(url.host)`.")
    }
    return .ok("dns", "\(url.host) is \(addresses.joined(separator: ", ")).")
  }
}
