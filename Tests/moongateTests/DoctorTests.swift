import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore
import MoongateTesting
import NIOCore
import NIOPosix
import Testing

@testable import MoongateGateway

/// The findings of `moongate doctor` for measured values.
@Suite struct DoctorTests {
  private static let now = Date(timeIntervalSince1970: 1_800_000_000)

  private static func validity(_ begins: Double, _ ends: Double) -> DateInterval {
    DateInterval(start: now + begins * 86_400, end: now + ends * 86_400)
  }

  @Test(arguments: [
    (-1.0, 90.0, Finding.State.ok), (-77, 13, .warning), (-90, -1, .failed), (1, 90, .failed), (-3, 3, .ok),
    (-5, 1, .warning),
  ]) func aCertificateIsJudgedByItsDays(_ begins: Double, _ ends: Double, _ state: Finding.State) {
    for presenter in [CertificatePresenter.gateway(file: "cert.pem"), .proxy(url: "https://a.example")] {
      let finding = Judgement.certificate(presenter, Self.validity(begins, ends), now: Self.now)
      #expect(finding.state == state && (finding.fix == nil) == (state == .ok))
    }
  }

  @Test(arguments: [(0, Finding.State.ok), (60, .ok), (61, .warning), (4_000, .warning), (-1, .ok)])
  func aGeoDatabaseIsJudgedByItsAge(_ days: Int, _ state: Finding.State) {
    let now = Timestamp(milliseconds: 1_800_000_000_000)
    let finding = Judgement.geo("c.mmdb", of: .countries, builtAt: now + .seconds(-days * 86_400), now: now)
    #expect(finding.state == state && finding.check == "geo" && (finding.fix == nil) == (state == .ok))
    if days == 61 { #expect(finding.message.hasPrefix("c.mmdb has the countries of addresses as of 2026-11-15, more")) }
  }

  @Test func aCertificateOfAProxyIsRenewedThere() {
    let proxy = CertificatePresenter.proxy(url: "https://a.example")
    #expect(
      Judgement.certificate(proxy, Self.validity(-91, -1), now: Self.now)
        == .failed(
          "certificate", "The certificate at https://a.example expired on 2027-01-14.",
          fix: "Renew the certificate at the proxy, and let the proxy load the new one."))
    let own = CertificatePresenter.gateway(file: "cert.pem")
    let expired = Judgement.certificate(own, Self.validity(-91, -1), now: Self.now)
    #expect(expired.message == "cert.pem expired on 2027-01-14.")
  }

  @Test func aCertificateOfAnUnknownAuthorityIsReported() {
    let proxy = Judgement.untrusted(.proxy(url: "https://a.example"))
    #expect(
      proxy
        == .failed(
          "certificate",
          "The certificate at https://a.example is not signed by an authority that this machine trusts.",
          fix: "Install the whole chain of a public authority (fullchain.pem) at the proxy. "
            + "If the authority is your own, let this machine trust it (`update-ca-certificates`)."))
    #expect(Judgement.untrusted(.gateway(file: "cert.pem")).state == .warning, "an authority of one's own may do")
  }

  @Test func aServerWithoutTLSPresentsNoCertificate() async throws {
    let group = MultiThreadedEventLoopGroup.singleton
    let listener = try await ServerBootstrap(group: group).childChannelInitializer { channel in channel.close() }
      .bind(host: "127.0.0.1", port: 0).get()
    let taken = try #require(listener.localAddress?.port)
    #expect(await PresentedCertificate.read(PublicURL(isSecure: true, host: "127.0.0.1", port: taken)) == nil)
    try await listener.close().get()
    #expect(await PresentedCertificate.read(PublicURL(isSecure: true, host: "localhost", port: taken)) == nil)
  }

  @Test(arguments: [
    ("auth.example.com", true), ("AUTH.example.com", true), ("a.example.org", true), ("example.org", false),
    ("a.b.example.org", false), ("other.example.com", false), ("192.0.2.7", true), ("192.0.2.8", false),
    ("[2001:db8::1]", true), ("2001:db8::2", false),
  ]) func aCertificateCoversItsNames(_ host: String, _ isCovered: Bool) {
    let ipv6: [UInt8] = [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [1]
    let names = CertificateNames(
      names: ["auth.example.com", "*.example.org"], addresses: [[192, 0, 2, 7], ipv6])
    #expect(names.covers(host) == isCovered)
  }

  @Test func aCertificateForAnotherHostFails() {
    let other = CertificateNames(names: ["other.example.com"])
    let hosts = ["auth.example.com", "shop.example.com"]
    #expect(
      Judgement.names("cert.pem", other, hosts: hosts, hasProxy: false)
        == .failed(
          "certificate",
          "cert.pem is not valid for auth.example.com, shop.example.com. It names other.example.com.",
          fix: "Install a certificate that names auth.example.com, shop.example.com too, so that browsers accept it."))
    #expect(Judgement.names("cert.pem", other, hosts: hosts, hasProxy: true)?.state == .warning)
    #expect(
      Judgement.names("cert.pem", CertificateNames(names: ["*.example.com"]), hosts: hosts, hasProxy: false) == nil)
  }

  @Test func aMissingKeyIsJudgedWithItsStore() {
    let new = Judgement.missingKey("/k", store: "postgres://db/m", isUsed: false)
    #expect(new.key == .ok("key", "The first start will create the master key: /k.") && new.store.state == .ok)
    let used = Judgement.missingKey("/k", store: "/s.db", isUsed: true)
    #expect(
      used.key
        == .failed(
          "key", "The key file /k is missing, and the store /s.db was made with it.",
          fix: "Restore the key file from your copy. No other key opens this store."))
    let unknown = Judgement.missingKey("/k", storeProblem: "Refused.")
    #expect(unknown.key.state == .warning && unknown.store.state == .failed && unknown.store.message == "Refused.")
  }

  /// Before the first start there is no key, and the store is examined all the same.
  @Test func aStoreIsReadWithoutItsKey() async throws {
    let folder = try ScratchFolder()
    let location = StoreLocation.sqlite(path: folder.path("moongate.db"))
    let new = Examination.withoutKey(folder.path("master.key"), location)
    #expect(new.key.state == .ok && new.store.state == .ok)
    #expect(!FileManager.default.fileExists(atPath: folder.path("moongate.db")), "the doctor changes nothing")
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    try await OpenedStore(location, keys, purpose: .serving).store.close()
    let used = Examination.withoutKey(folder.path("master.key"), location)
    #expect(used.key.state == .failed && used.store.state == .ok)
  }

  /// The first start makes the key before anything else, whatever the store is.
  @Test func aKeyThatCannotBeCreatedFails() throws {
    let refused = Judgement.missingKey("/k", store: "postgres://db/m", isUsed: false, canBeCreated: false)
    #expect(refused.key.state == .failed && refused.store.state == .ok)
    #expect(
      refused.key.message == "The first start cannot create the master key: this user cannot write the folder of /k.")
    let used = Judgement.missingKey("/k", store: "/s.db", isUsed: true, canBeCreated: false)
    #expect(used.key.message == "The key file /k is missing, and the store /s.db was made with it.")
  }

  @Test func theFolderOfAFileIsExamined() throws {
    let folder = try ScratchFolder()
    let inner = StateFolder(of: folder.path("a/b/master.key"))
    #expect(inner.path == folder.path("a/b") && inner.nearest == folder.path && inner.state == .usable)
    let refused = StateFolder(of: "/proc/self/master.key")
    #expect(refused.path == "/proc/self" && refused.nearest == "/proc/self")
    #expect(StateFolder(of: "master.key").path == ".")
  }

  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func postgresIsReadWithoutAKey() throws {
    let server = try #require(PostgresServer.shared)
    let folder = try ScratchFolder()
    let new = Examination.withoutKey(folder.path("master.key"), .postgres(url: server.url(try server.makeDatabase())))
    #expect(new.key.state == .ok && new.store.state == .ok)
    let refused = Examination.withoutKey("/k", .postgres(url: server.url("postgres", password: "guess")))
    #expect(refused.key.state == .warning && refused.store.state == .failed)
    #expect(refused.store.message.hasPrefix("PostgreSQL refuses the password"))
  }

  @Test func aStartWithAMissingKeySaysSo() {
    let refusal = StoreRefusal.otherKey(path: "/s.db")
    #expect(
      Gateway.sentence(for: refusal, madeKey: "/k")
        == "The key file /k is missing, and the store /s.db was made with it. "
        + "Restore the key file from your copy, or name another store in gateway.lua.")
    #expect(Gateway.sentence(for: refusal, madeKey: nil) == refusal.description)
  }

  @Test func aClockThatIsAnHourOffFails() {
    #expect(
      Judgement.clock([("a", 0.4), ("http://127.0.0.1:3000/", -3600)])
        == .failed(
          "clock", "http://127.0.0.1:3000/ is 1h behind this machine's clock.",
          fix: "Synchronize the clock with NTP: `timedatectl set-ntp true`."))
    #expect(Judgement.clock([("the store", 10)]).state == .warning)
    #expect(Judgement.clock([("a", 1), ("b", -1)]) == .ok("clock", "The clock agrees with a, b."))
    #expect(Judgement.clock([]).state == .warning)
  }

  @Test func lowFileLimitIsReported() {
    #expect(
      Judgement.files(limit: 1024, connections: 10_000, of: .command).fix
        == "Set LimitNOFILE=20200 in the unit, or lower `limits.connections` in gateway.lua.")
    #expect(
      Judgement.files(limit: 262_144, connections: 10_000, of: .command).state == .ok
        && Judgement.files(limit: nil, connections: 1, of: .command).state == .warning)
    #expect(
      Judgement.files(limit: 262_144, connections: 10_000, of: .gateway).message
        == "The limit of the running gateway, 262144 open files, is enough for 10000 connections.")
  }

  @Test func theLimitOfAnIdleServiceIsThatOfItsUnit() {
    #expect(
      Judgement.files(limit: 262_144, connections: 10_000, of: .unit)
        == .ok("files", "The limit of moongate.service, 262144 open files, is enough for 10000 connections."))
    let low = Judgement.files(limit: 1024, connections: 10_000, of: .unit)
    #expect(low.message.hasPrefix("The limit of moongate.service is 1024 open files"))
    #expect(!low.message.contains("LimitNOFILE"))
    #expect(
      Judgement.files(limit: 1024, connections: 10_000, of: .command).message.hasSuffix(
        "A gateway under systemd has the limit of its unit instead (LimitNOFILE)."))
  }

  @Test func theLimitOfAUnitIsRead() throws {
    let root = try ScratchFolder()
    #expect(ServiceUnit.openFiles(root: root.path) == nil)
    try root.write("[Service]\nLimitNOFILE=262144\nRestart=on-failure\n", to: "lib/systemd/system/moongate.service")
    #expect(ServiceUnit.openFiles(root: root.path) == 262_144)
    try root.write(
      "[Service]\nLimitNOFILE = 1024:4096\n", to: "etc/systemd/system/moongate.service.d/override.conf")
    #expect(ServiceUnit.openFiles(root: root.path) == 4096, "a drop-in comes after the unit")
    try root.write("LimitNOFILE=1\n", to: "etc/systemd/system/moongate.service.d/override.conf~")
    #expect(ServiceUnit.openFiles(root: root.path) == 4096, "systemd reads only .conf")
    try root.write("[Service]\n# LimitNOFILE=9\n", to: "etc/systemd/system/moongate.service.d/override.conf")
    try root.write("[Service]\n", to: "etc/systemd/system/moongate.service")
    #expect(ServiceUnit.openFiles(root: root.path) == nil, "the unit of /etc replaces that of the package")
    #expect(ServiceUnit.openFiles(inUnit: "LimitNOFILE=infinity") == .max)
    #expect(ServiceUnit.openFiles(inUnit: "LimitNOFILE=\n") == nil)
  }

  @Test func theLimitOfAnotherProcessIsRead() {
    let text = """
      Limit                     Soft Limit           Hard Limit           Units
      Max core file size        0                    unlimited            bytes
      Max open files            4096                 524288               files
      """
    #expect(GatewayProcess.openFiles(inLimits: text) == 4096)
    #expect(GatewayProcess.openFiles(inLimits: "Max open files   unlimited   unlimited   files") == .max)
    #expect(GatewayProcess.openFiles(inLimits: "") == nil)
    #expect(GatewayProcess.isServe(Data("/usr/bin/moongate\0serve\0--config\0/etc/moongate\0".utf8)))
    #expect(!GatewayProcess.isServe(Data("/usr/bin/moongate\0doctor\0".utf8)))
    #expect(!GatewayProcess.isServe(Data("vi\0moongate\0serve\0".utf8)))
  }

  @Test func addressesAreJudged() {
    let address = ListenAddress(host: "127.0.0.1", port: 443)
    func judged(_ code: CInt?, runs: Bool = false) -> Finding {
      Judgement.listener("listen", address, code: code, gatewayRuns: runs)
    }
    #expect(judged(nil) == .ok("listen", "127.0.0.1:443 (`listen`) is free."))
    #expect(
      judged(EADDRINUSE, runs: true) == .ok("listen", "127.0.0.1:443 (`listen`) belongs to the running gateway."))
    #expect(judged(EACCES, runs: true).state == .ok, "systemd opened the port")
    #expect(judged(EACCES).state == .warning)
    #expect(judged(EADDRNOTAVAIL, runs: true).message == "This machine has no address 127.0.0.1 (`listen`).")
    #expect(
      judged(EADDRINUSE)
        == .failed(
          "listen", "127.0.0.1:443 (`listen`) is in use, and the gateway does not answer at `admin`.",
          fix: "If moongate.socket is active, systemd holds the port: start moongate.service. Otherwise find the "
            + "program with `ss -ltnp` and stop it, or set another port in `listen` in gateway.lua."))
  }

  @Test func anAddressInUseIsNoticed() async throws {
    let group = MultiThreadedEventLoopGroup.singleton
    let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
    let taken = try #require(listener.localAddress?.port)
    #expect(Examination.bindProblem(ListenAddress(host: "127.0.0.1", port: taken)) == EADDRINUSE)
    #expect(Examination.bindProblem(ListenAddress(host: "192.0.2.1", port: 8080)) == EADDRNOTAVAIL)
    #expect(await Examination.connectionProblem("127.0.0.1", taken) == nil)
    #expect(Examination.bindProblem(ListenAddress(host: "127.0.0.1", port: 0)) == nil)
    try await listener.close().get()
  }

  @Test func aHostWithoutAddressIsNotCalledARefusal() async {
    // A label has 63 characters at most, so no name server is asked.
    let host = String(repeating: "a", count: 64) + ".invalid"
    #expect(await Examination.connectionProblem(host, 25) == "the host name has no address")
  }

  @Test func aRecipientThatNoProviderTakesFails() {
    #expect(
      Judgement.recipient("+15550100", channels: [.mail])
        == .failed(
          "messages",
          "No test message was sent to +15550100, because no provider of gateway.lua sends messages to phones.",
          fix: "Use --to with an email address, or configure a provider that sends messages to phones."))
    #expect(Judgement.recipient("me@example.com", channels: [.sms])?.state == .failed)
    #expect(Judgement.recipient("me@example.com", channels: [.mail]) == nil)
  }

  @Test func oneWarningIsCounted() {
    let report = DoctorReport(checks: [.warning("clock", "Unknown.", fix: "Compare it.")])
    #expect(report.text.hasSuffix("\n0 ok, 1 warning, 0 failed"))
  }

  @Test func textBeginsWithWhatIsWrong() {
    let report = DoctorReport(checks: [
      .ok("key", "Good."), .warning("clock", "Unknown.", fix: "Compare it."), .ok("disk", "Empty."),
      .failed("dns", "None.", fix: "Add one."),
    ])
    #expect(
      report.text.split(separator: "\n") == [
        "FAILED  dns: None.", "        Add one.", "warning clock: Unknown.", "        Compare it.",
        "ok      key: Good.", "ok      disk: Empty.", "2 ok, 1 warning, 1 failed",
      ])
    #expect(report.checks.map(\.check) == ["key", "clock", "disk", "dns"])
  }

  /// The service must never own a folder above its own.
  @Test func theFixOfAMissingFolderNamesThatFolder() {
    #expect(
      Judgement.permissions("/var/lib/x", .missing, of: "store")
        == .failed(
          "permissions", "/var/lib/x does not exist, and this user cannot create it.",
          fix: "Run: install -d -o moongate -g moongate -m 700 /var/lib/x"))
    let refused = Judgement.permissions("/srv/state", .refused(reason: "Permission denied"), of: "key")
    #expect(refused?.message == "/srv/state cannot be written by this user: Permission denied.")
    #expect(refused?.fix?.hasPrefix("If the folder holds only the state of Moongate, run: chown moongate") ?? false)
    #expect(refused?.fix?.hasSuffix("name a folder of its own in `key` in gateway.lua.") ?? false)
    #expect(Judgement.permissions("/srv/state", .usable, of: "store") == nil)
  }

  @Test func aFullDiskFails() {
    #expect(Judgement.room("/var", free: 1 << 20).state == .failed)
    #expect(
      Judgement.room("/var", free: 100 << 20).state == .warning && Judgement.room("/var", free: 10 << 30).state == .ok)
  }

  private func proxies(
    _ blocks: [String], publicURL: PublicURL = PublicURL(isSecure: true, host: "a.example", port: 443)
  ) -> Finding {
    var settings = GatewaySettings.test(publicURL: publicURL)
    settings.trustedProxies = blocks.compactMap(AddressBlock.init)
    return Judgement.proxies(settings)
  }

  /// Attack: a block so wide that every client can claim any address, which disables limits per address.
  @Test(arguments: ["0.0.0.0/0", "::/0", "128.0.0.0/1", "2000::/3"]) func aWideBlockOfProxiesFails(_ block: String) {
    #expect(proxies(["127.0.0.1/32", block]).state == .failed)
  }

  @Test func trustedProxiesMustMatchTheListener() {
    for blocks in [["127.0.0.1/32"], ["10.0.0.0/8", "127.0.0.1"], ["fc00::/7", "::1"]] {
      #expect(proxies(blocks).state == .ok)
    }
    #expect(proxies(["192.0.2.7"]).state == .failed, "the listener is reachable only from this machine")
    #expect(proxies([]).state == .failed, "TLS is required")
    #expect(proxies([], publicURL: PublicURL(isSecure: false, host: "localhost", port: 8080)).state == .ok)
  }

  /// The finding for a probe that arrived at a gateway that trusts 10.0.0.1 and 10.0.0.2. This machine is 10.0.0.9.
  private func probed(
    from peer: String, _ forwardedFor: [String], client: String, trusted: [String] = ["10.0.0.1", "10.0.0.2"],
    isProxied: Bool = true, own: String = "10.0.0.9", tls: TLSFiles? = nil
  ) -> Finding {
    let url = PublicURL(isSecure: isProxied, host: "a.example", port: isProxied ? 443 : 8080)
    var settings = GatewaySettings.test(publicURL: url)
    settings.trustedProxies = trusted.compactMap(AddressBlock.init)
    settings.listen = ListenAddress(host: "0.0.0.0", port: 8080)
    settings.tls = tls
    let report = ForwardingReport(peer: peer, forwardedFor: forwardedFor, client: client, origin: "\(url)")
    return Judgement.proxies(settings, Judgement.Forwarding(report: report) { $0 == own })
  }

  @Test func aProxyThatNamesItsClientIsGood() {
    let claimed = ForwardingProbe.claimed
    for forwardedFor in [["10.0.0.9"], ["\(claimed), 10.0.0.9"], [claimed, "10.0.0.9", "10.0.0.2"]] {
      let finding = probed(from: "10.0.0.1", forwardedFor, client: "10.0.0.9")
      #expect(finding.state == .ok && finding.message.contains("had no effect"), "\(finding)")
    }
    let ignored = probed(from: "10.0.0.9", [claimed], client: "10.0.0.9", trusted: [], isProxied: false)
    #expect(ignored.state == .ok && ignored.message.hasPrefix("X-Forwarded-For is ignored"))
  }

  /// Attack: a client sends a new address with each guess, because a proxy passes the header on.
  @Test func aProxyThatPassesTheHeaderOnFails() {
    let claimed = ForwardingProbe.claimed
    let alone = probed(from: "10.0.0.1", [claimed], client: claimed)
    #expect(alone.state == .failed && alone.message.contains("the proxy at 10.0.0.1 passes X-Forwarded-For on"))
    let outer = probed(from: "10.0.0.1", ["\(claimed), 10.0.0.2"], client: claimed)
    #expect(outer.state == .failed && outer.message.contains("the proxy at 10.0.0.2 passes X-Forwarded-For on"))
    let plain = probed(from: "10.0.0.1", [claimed], client: claimed, isProxied: false)
    #expect(plain.state == .failed, "the peer is not this machine, so it is a proxy")
  }

  /// A doctor on a machine that is itself a trusted proxy can say nothing about clients.
  @Test func aTrustedMachineIsNotTakenForAClient() {
    let claimed = ForwardingProbe.claimed
    let behind = probed(from: "10.0.0.1", ["\(claimed), 10.0.0.2"], client: claimed, own: "10.0.0.2")
    #expect(behind.state == .ok && behind.message.contains("only a doctor on another machine"))
    let direct = probed(from: "10.0.0.2", [claimed], client: claimed, isProxied: false, own: "10.0.0.2")
    #expect(direct.state == .ok && direct.message.contains("only a doctor on another machine"))
    #expect(probed(from: "10.0.0.2", [claimed], client: claimed, own: "10.0.0.2").state == .failed, "a proxy is needed")
    let tls = TLSFiles(certificate: "a.pem", key: "a.key")
    let socket = probed(from: "10.0.0.2", [claimed], client: claimed, own: "10.0.0.2", tls: tls)
    #expect(socket.state == .ok, "a socket of systemd has another port than `listen`")
  }

  @Test func aProxyWhoseClientsCountAsOneFails() {
    let claimed = ForwardingProbe.claimed
    for (forwardedFor, isProxied) in [([claimed], true), (["\(claimed), 10.0.0.9"], false), ([], false)] {
      let unnamed = probed(from: "10.0.0.7", forwardedFor, client: "10.0.0.7", isProxied: isProxied)
      #expect(unnamed.state == .failed && unnamed.fix == #"Add "10.0.0.7" to trusted_proxies if it is your proxy."#)
    }
    let silent = probed(from: "10.0.0.1", [], client: "10.0.0.1")
    #expect(silent.state == .failed && silent.message.contains("sends no X-Forwarded-For"))
    let garbage = probed(from: "10.0.0.1", ["\(claimed), 10.0.0.9:5123"], client: "10.0.0.1")
    #expect(garbage.state == .failed && garbage.message.contains("10.0.0.9:5123, which is not an address"))
  }

  /// The gateway reads the header from the right, and no further than the client.
  @Test func whatIsLeftOfTheClientHasNoEffect() {
    let finding = probed(
      from: "10.0.0.1", ["\(ForwardingProbe.claimed), unknown, 10.0.0.9, 10.0.0.2"], client: "10.0.0.9")
    #expect(finding.state == .ok, "\(finding)")
  }

  /// The last of two proxies replaces what the first one has written.
  @Test func aProxyThatCountsAsTheClientGetsAWarning() {
    let finding = probed(from: "10.0.0.1", ["10.0.0.2"], client: "10.0.0.1")
    #expect(finding.state == .warning && finding.message.contains("the proxy at 10.0.0.1,"), "\(finding)")
    #expect(finding.message.contains("names only proxies (10.0.0.2)"))
    let own = probed(from: "10.0.0.1", ["10.0.0.2"], client: "10.0.0.1", own: "10.0.0.2")
    #expect(own.state == .ok, "the doctor runs on the first proxy")
  }

  @Test func aProxyThatChangesTheOriginGetsAWarning() {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "a.example", port: 443))
    settings.trustedProxies = ["10.0.0.1"].compactMap(AddressBlock.init)
    let report = ForwardingReport(
      peer: "10.0.0.1", forwardedFor: ["10.0.0.9"], client: "10.0.0.9", origin: "http://a.example")
    let finding = Judgement.proxies(settings, Judgement.Forwarding(report: report) { _ in false })
    #expect(finding.state == .warning)
    #expect(finding.message == "A request to https://a.example arrives as one to http://a.example.")
  }

  /// The connection comes from the client that the header of the PROXY protocol states.
  @Test func aPROXYHeaderNamesTheClient() {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "a.example", port: 443))
    settings.trustedProxies = ["10.0.0.1"].compactMap(AddressBlock.init)
    settings.takesProxyProtocol = true
    settings.listen = ListenAddress(host: "0.0.0.0", port: 443)
    func finding(_ origin: String, _ forwardedFor: String = ForwardingProbe.claimed) -> Finding {
      let report = ForwardingReport(
        peer: "203.0.113.9", forwardedFor: [forwardedFor], client: "203.0.113.9", origin: origin)
      return Judgement.proxies(settings, Judgement.Forwarding(report: report) { _ in false })
    }
    let good = finding("https://a.example")
    #expect(good.state == .ok && good.message.contains("came from 203.0.113.9"))
    let ended = finding("http://a.example")
    #expect(ended.state == .failed && ended.fix?.contains("`tls`") == true, "the proxy ends TLS")
    let other = finding("https://a.example", "\(ForwardingProbe.claimed), 203.0.113.7")
    #expect(other.state == .failed && other.message.contains("trusted_proxies does not name"))
    #expect(Judgement.proxies(settings).message.hasPrefix("A PROXY protocol header is trusted only from 10.0.0.1/32"))
  }

  private func probe(_ routes: [(host: String?, path: [PathPattern.Segment], isOpen: Bool)]) -> HostProbe? {
    let all = routes.map { route in
      Route(
        host: route.host, path: PathPattern(text: "", segments: route.path), methods: nil,
        upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)], isOpen: route.isOpen, flow: "login",
        requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
        location: SourceLocation(file: "routes.lua", line: 1))
    }
    return HostProbe(
      RouteTable(routes: all), publicURL: PublicURL(isSecure: true, host: "auth.example", port: 443))
  }

  @Test func theHostProbeAsksForAClosedPageOfAnotherHost() {
    let name = { PathPattern.Segment.glob(Array($0.utf8)) } as (String) -> PathPattern.Segment
    #expect(probe([(nil, [.anySegments], false)]) == HostProbe(host: HostProbe.otherHost, path: "/"))
    #expect(
      probe([("app.example", [name("a b"), name("*.txt"), .anySegments], false)])
        == HostProbe(host: "app.example", path: "/a%20b/x.txt"))
    #expect(
      probe([(nil, [name("open"), .anySegments], true), (nil, [name("open")], false), (nil, [.anySegments], false)])
        == HostProbe(host: HostProbe.otherHost, path: "/"), "the first closed route is behind an open one")
    #expect(probe([("auth.example", [.anySegments], false)]) == nil)
    #expect(probe([(nil, [.anySegments], true)]) == nil)
    let url = PublicURL(isSecure: true, host: "auth.example", port: 8443)
    #expect(
      HostProbe(host: "app.example", path: "/x").head(for: url).hasPrefix(
        "GET https://auth.example:8443/x HTTP/1.1\r\nHost: app.example\r\n"))
    #expect(HostProbe(host: "app.example", path: "/x").head(for: url).hasSuffix("close\r\n\r\n"))
  }

  /// Attack: the proxy sends a request to the services of the host in its target, and the gateway judges its Host.
  @Test func aProxyThatPassesAnotherHostOnFails() {
    let probe = HostProbe(host: "app.example", path: "/x")
    for location in [
      "https://auth.example/auth/login?flow=a&return_to=https%3A%2F%2Fapp.example%2Fx",
      "https://auth.example/auth/login?return_to=http%3A%2F%2Fapp.example%3A8000%2Fx",
      "https://app.example/auth/handoff?return_to=%2Fx",
    ] {
      let head = "HTTP/1.1 303 See Other\r\nServer: nginx\r\nLOCATION: \(location)\r\nConnection: close"
      #expect(probe.isBelieved(in: head), "\(location)")
    }
    for head in [
      "HTTP/1.1 400 Bad Request", "HTTP/1.1 302 Found\r\nLocation: /auth/login?return_to=%2Fx",
      "HTTP/1.1 302 Found\r\nLocation: https://auth.example/auth/login?return_to=https%3A%2F%2Fauth.example%2Fx",
    ] {
      #expect(!probe.isBelieved(in: head), "\(head)")
    }
    let settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example", port: 443))
    let failed = Judgement.judgedHost(of: probe, isBelieved: true, settings)
    #expect(failed.state == .failed && failed.message.contains("`Host: app.example` is judged as one for app.example"))
    #expect(Judgement.judgedHost(of: probe, isBelieved: false, settings).state == .ok)
    let silent = Judgement.judgedHostNotTried("nothing answered")
    #expect(silent.state == .ok && silent.message.contains("was not tried: nothing answered"))
  }

  @Test func namesAreJudged() {
    let url = PublicURL(isSecure: true, host: "a.example", port: 443)
    #expect(Judgement.name(url, addresses: []).state == .failed)
    #expect(Judgement.name(url, addresses: ["127.0.1.1"]).state == .warning)
    #expect(Judgement.name(url, addresses: ["192.0.2.1"]).state == .ok)
  }

  @Test func datesAreRead() {
    #expect(Examination.date("Sun, 06 Nov 1994 08:49:37 GMT")?.timeIntervalSince1970 == 784_111_777)
    #expect(Examination.date("yesterday") == nil)
  }
}
