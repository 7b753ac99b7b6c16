import Foundation
import MoongateCore
import MoongateDelivery
import MoongateProgram
import MoongateSDK
import MoongateStore

/// Takes the measurements that `moongate doctor` judges.
struct Examination {
  let generation: any PolicyGeneration
  /// The configuration folder, as it was named on the command line.
  let folder: String
  let registry: ProviderRegistry
  /// The recipient of a test message: an email address or a phone number; nil to send none.
  let recipient: String?
  let web = SiteClient()
  let random = SystemRandom()

  var gateway: GatewaySettings { generation.gateway }

  init(_ generation: any PolicyGeneration, of folder: String, registry: ProviderRegistry, recipient: String?) {
    self.generation = generation
    self.folder = folder
    self.registry = registry
    self.recipient = recipient
  }

  func findings() async -> [Finding] {
    var all = generation.warnings.map {
      Finding.warning("configuration", "\($0)", fix: "Correct this line, then run `moongate check --config \(folder)`.")
    }
    if all.isEmpty { all.append(.ok("configuration", "Generation \(generation.id.prefix(8)) is good.")) }
    let (key, store, storeOffset) = await keyAndStore()
    all += Judgement.geo(gateway, now: SystemClock.systemWall())
    all += certificate() + upstreamCertificates() + [key] + disk() + [keyFolder()].compactMap(\.self)
    let (upstreams, upstreamOffsets) = await self.upstreams()
    let (sites, siteOffsets) = await self.sites()
    let offsets = upstreamOffsets + siteOffsets
    let gatewayRuns = await isGatewayRunning()
    all += [store, Judgement.clock(storeOffset + offsets), files(gatewayRuns: gatewayRuns)]
    all += listeners(gatewayRuns: gatewayRuns)
    all += upstreams + sites + (await messages())
    let addresses = Self.addresses(of: gateway.publicURL.host)
    all.append(Judgement.name(gateway.publicURL, addresses: addresses))
    if !addresses.isEmpty { all += await checkPublicURL() }
    let proxies = Judgement.proxies(gateway, addresses.isEmpty ? nil : await forwarding())
    all += [proxies, Judgement.networks(generation.routes, proxies: proxies)].compactMap(\.self)
    if !addresses.isEmpty { all.append(await judgedHost()) }
    await web.end()
    return all
  }

  // MARK: this machine

  private func key() -> Finding {
    switch gateway.key {
    case .value: return .ok("key", "The master key comes from the environment.")
    case .file(let path), .credential(let path):
      do {
        _ = try MasterKey(gateway.key)
        return .ok("key", "\(path) is readable only by this user.")
      } catch {
        return .failed(
          "key", error.sentence,
          fix:
            "Run this as the gateway's user, for example `sudo -u \(ServiceUser.name) moongate doctor --config \(folder)`; then correct the file's mode."
        )
      }
    }
  }

  private func disk() -> [Finding] {
    guard case .sqlite(let path) = gateway.store, path != ":memory:" else { return [] }
    let folder = StateFolder(of: path)
    var findings = [Judgement.permissions(folder.path, folder.state, of: "store")].compactMap(\.self)
    var status = statvfs()
    if statvfs(folder.nearest, &status) == 0 {
      findings.append(Judgement.room(folder.nearest, free: UInt64(status.f_bavail) * UInt64(status.f_frsize)))
    }
    return findings
  }

  /// - Returns: what keeps the first start from creating the key file; nil if nothing does, or if the file exists.
  private func keyFolder() -> Finding? {
    guard case .file(let path) = gateway.key, Self.isMissing(path) else { return nil }
    let folder = StateFolder(of: path)
    // `disk` reports the folder of the store.
    if case .sqlite(let store) = gateway.store, store != ":memory:", StateFolder(of: store).path == folder.path {
      return nil
    }
    return Judgement.permissions(folder.path, folder.state, of: "key")
  }

  private static func isMissing(_ path: String) -> Bool { access(path, F_OK) != 0 && errno == ENOENT }

  // MARK: the store

  private func keyAndStore() async -> (key: Finding, store: Finding, offsets: [(name: String, seconds: Double)]) {
    if case .file(let path) = gateway.key, Self.isMissing(path) {
      let (key, store) = Self.withoutKey(path, gateway.store)
      return (key, store, [])
    }
    let (store, offsets) = await store()
    return (key(), store, offsets)
  }

  /// - Parameter path: the key file, which does not exist. The store is read without it.
  static func withoutKey(_ path: String, _ location: StoreLocation) -> (key: Finding, store: Finding) {
    do {
      let store = try StoreCopier(location)
      let isUsed = try store.fingerprint() != nil
      return Judgement.missingKey(
        path, store: store.name, isUsed: isUsed, canBeCreated: StateFolder(of: path).state == .usable)
    } catch {
      return Judgement.missingKey(path, storeProblem: "\(error)")
    }
  }

  private func store() async -> (Finding, [(name: String, seconds: Double)]) {
    if case .sqlite(let path) = gateway.store, !FileManager.default.fileExists(atPath: path) {
      return (.ok("store", "There is no store at \(path) yet. The first start will create it."), [])
    }
    do {
      let keys = KeyRing(try KeySource(gateway.key).read())
      let opened = try await OpenedStore(gateway.store, keys)
      defer { try? opened.store.close() }
      let ahead = Double(opened.clock.now().milliseconds) / 1000 - Date().timeIntervalSince1970
      // The clock of a SQLite file is this machine's, unless the file contains later times.
      let isOwnClock = if case .sqlite = gateway.store { ahead < 1 } else { false }
      return (
        .ok("store", "The store answers and belongs to this master key."), isOwnClock ? [] : [("the store", ahead)]
      )
    } catch {
      let reason = (error as? StartProblem)?.sentence ?? "\(error)"
      return (.failed("store", reason, fix: Judgement.storeFix), [])
    }
  }

  // MARK: other machines

  /// Checks the certificate at public_url, and that public_url leads to a gateway.
  private func checkPublicURL() async -> [Finding] {
    let url = gateway.publicURL.description + "/.well-known/moongate/jwks.json"
    do throws(WebFault) {
      let answer = try await web.send(WebRequest(url: url))
      return await presentedCertificate(isRefused: false) + [leadsToGateway(answer, url)]
    } catch {
      let reason = SiteClient.withoutSite(error.reason, of: url)
      let isRefused = reason.contains("CERTIFICATE_VERIFY_FAILED")
      let certificate = await presentedCertificate(isRefused: isRefused)
      let fix =
        isRefused || certificate.contains { $0.state == .failed }
        ? "Correct the certificate first, then run the doctor again."
        : "Start the gateway and the proxy in front of it. If this machine cannot reach the proxy, run the check on another one."
      return certificate + [
        .warning("public_url", "\(gateway.publicURL) does not answer from this machine: \(reason).", fix: fix)
      ]
    }
  }

  private func leadsToGateway(_ answer: WebAnswer, _ url: String) -> Finding {
    guard answer.status == 200, answer.header("content-type")?.contains("json") ?? false else {
      return .failed(
        "public_url", "\(url) answers \(answer.status), not like a gateway.",
        fix: "Configure the proxy to forward /auth, /api/auth and /.well-known/moongate to \(gateway.listen).")
    }
    return .ok("public_url", "\(gateway.publicURL) leads to a gateway.")
  }

  /// All IP addresses of a host, as resolved by this machine.
  static func addresses(of host: String) -> [String] {
    var found: UnsafeMutablePointer<addrinfo>?
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    let bare = IPAddressBytes.withoutBrackets(host)
    guard getaddrinfo(bare, nil, &hints, &found) == 0 else { return [] }
    defer { freeaddrinfo(found) }
    var all: [String] = []
    var next = found
    while let entry = next {
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      if getnameinfo(
        entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      {
        let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        if !all.contains(address) { all.append(address) }
      }
      next = entry.pointee.ai_next
    }
    return all
  }

  /// Parses a `Date` field (RFC 9110 section 5.6.7).
  static func date(_ text: String) -> Date? {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return format.date(from: text)
  }
}

/// The folder of a file that the gateway creates.
struct StateFolder {
  let path: String
  /// The nearest folder that exists. The first start creates the others in it.
  let nearest: String
  let state: Judgement.FolderState

  init(of file: String) {
    let inner = file.parentFolder
    path = inner.isEmpty ? "." : inner
    var nearest = path
    while !nearest.isEmpty, nearest != "/", access(nearest, F_OK) != 0, errno == ENOENT {
      nearest = nearest.parentFolder
    }
    if nearest.isEmpty { nearest = "." }
    self.nearest = nearest
    state =
      if access(nearest, W_OK | X_OK) == 0 { .usable } else if nearest == path {
        .refused(reason: MasterKey.reason())
      } else { .missing }
  }
}
