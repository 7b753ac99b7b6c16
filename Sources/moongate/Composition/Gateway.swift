import Foundation
import Hummingbird
import Logging
import MoongateAppAPI
import MoongateApps
import MoongateCore
import MoongateDelivery
import MoongateHTTP
import MoongatePolicy
import MoongateProgram
import MoongateProxy
import MoongateSDK
import MoongateStore
import NIOCore
import NIOPosix
import ServiceLifecycle
import UnixSignals

/// The composition root of `moongate serve`: the only type that knows all parts.
struct Gateway {
  /// The time that open connections get after SIGTERM or after an upgrade.
  private let drain: Duration
  private let replacement: Replacement
  private let services: [any Service]
  private let store: any SQLStore
  private let proxy: Proxy
  private let web: SiteClient
  private let programs: ProviderProcessManager
  private let logger: Logger

  /// More than five parameters and 60 lines: creates every part of the gateway, in the order of dependencies.
  /// Loads the configuration and opens the store. Does not listen yet.
  /// - Throws: an error for the operator.
  init(
    folder path: String, listenAddresses: ListenAddresses, metrics: MetricRegistry, notifier: ServiceNotifier = .none,
    predecessor: Predecessor? = nil,
    spans: SpanQueue = SpanQueue(), logger: Logger
  ) async throws(StartProblem) {
    self.logger = logger
    let files = OpenFiles.raiseLimit()
    let registry = try Providers.registry()
    let programs = ProviderProcessManager(readers: Providers.readers, logger: logger)
    self.programs = programs
    let folder = ConfigurationFolder(
      path: path, providers: registry, programs: programs.loading(), listenAddresses: listenAddresses)
    let watcher = ConfigurationWatcher(folder: path, also: { programs.watched })
    if let first = folder.generation() { try LocalProviders.makeSecrets(for: first.gateway) }
    let generation = try await Self.load(folder)
    let settings = generation.gateway
    let listen = listenAddresses.listen ?? settings.listen
    let admin = listenAddresses.admin ?? settings.admin
    for warning in generation.warnings.map(\.description) + listenAddresses.differences(from: settings) {
      logger.warning("\(warning)")
    }

    let key = try MasterKey(settings.key)
    let opened = try await Self.open(settings.store, for: key, logger: logger)
    let (store, clock) = (opened.store, opened.clock)
    let random = SystemRandom()
    let generations = ActiveGeneration(generation, at: clock.now())
    spans.isOpen = settings.tracing != nil
    let signIns = SignInMetrics()
    let audit = AuditTrail(store: store, logger: logger, signIns: signIns, generations: generations)
    store.memory.places.use(generations)
    store.memory.recorded.subscribe { signIns.note($0) }
    let securityLog = SecurityLog(logger: Logger(label: "security"))
    store.memory.recorded.subscribe { securityLog.note($0) }
    let policyFaults = FoldedLog<LoggedPolicyFault>(logger: logger, clock: clock)
    let outbox = Outbox(clock: clock)
    let web = SiteClient()
    let appAPI =
      settings.appAPI
      ? AppAPI(store: store, keys: key.keys, clock: clock, audit: audit, providers: registry, logger: logger) : nil
    let apps = Apps(
      store: store, generations: generations, providers: registry, keys: key.keys, clock: clock, random: random,
      signing: SigningKeys(key.keys, store: store, at: clock.now()), audit: audit)
    let openID = OpenIDProvider(apps: apps, store: store, keys: key.keys, web: web, clock: clock, random: random)
    let pages: PageRenderer
    do { pages = try PageRenderer(logger: logger, events: appAPI?.events) } catch {
      throw StartProblem("The hosted pages of this program are invalid: \(error)")
    }
    let deliveries = Deliveries(outbox: outbox, clock: clock, random: random, web: web, logger: logger)
    let hashing = HashingPool(keys: key.keys, random: random)
    let shadow = PolicyShadow(generations: generations, keys: key.keys, random: random, makeStore: TemporaryStore.make)
    let engine = FlowEngine(
      store: store, generations: generations, providers: registry, delivery: CountedDeliveries(base: deliveries),
      web: web, hashing: hashing,
      clock: clock, random: random, keys: key.keys, audit: audit, logger: logger,
      policyFaults: policyFaults, shadow: shadow, languages: pages, sharesFlows: settings.store.isShared)
    let watch = SessionWatch(store: store, logger: logger)
    let pause = PollInterval()
    opened.listen { pause.end() }
    let tls = try PublicServer.tls(settings.tls)
    let reload = ConfigurationReload(
      folder: folder, generations: generations, tls: tls, programs: programs,
      gate: ReloadGate(store: store, audit: audit, providers: registry, clock: clock),
      shadowing: Shadowing(shadow: shadow, providers: registry, programs: programs, listenAddresses: listenAddresses),
      clock: clock,
      random: random, audit: audit,
      notifier: notifier, logger: logger)
    let accessLog = try Self.accessLog()
    let mostConnections = OpenFiles.connections(within: files)
    if mostConnections < settings.connectionLimits.connections {
      logger.warning(
        "at most \(mostConnections) connections are accepted, not \(settings.connectionLimits.connections) as `limits.connections` says: this process may open only \(files ?? 0) files. Raise LimitNOFILE in the unit, or `ulimit -n`"
      )
    }
    let proxy = Proxy(
      ProxyDependencies(
        generation: generations, sessions: SessionDirectory(store: store, clock: clock), watch: watch, activity: store,
        keys: key.keys,
        clock: clock, random: random, audit: audit, logger: logger, policyFaults: policyFaults, providers: registry,
        tokens: AccessTokenDirectory(
          store: store, generations: generations, keys: key.keys, clock: clock, random: random, logger: logger),
        apps: apps, spans: spans, shadow: shadow, mostConnections: mostConnections),
      accessLog: accessLog,
      page: { refusal, visitor, languages in
        pages.html(for: refusal, to: visitor, languages: languages, generation: generations.current)
      },
      errorPage: { pages.html(for: $0, generation: generations.current) })
    store.memory.committed.subscribe { changes in await proxy.forget(changes) }
    let listeners = (listen: ListenerHandle(), admin: ListenerHandle())
    let upgrading = Upgrading(
      Upgrading.Parts(
        listeners: listeners, engine: engine, proxy: proxy, outbox: outbox, audit: audit, clock: clock, random: random,
        notifier: notifier,
        logger: logger, isStoreShared: settings.store.isShared), predecessor: predecessor)
    do throws(StoreFault) { try await upgrading.prepare() } catch {
      throw StartProblem("The store cannot be read: \(error)")
    }
    let turn = predecessor.map { TakeOver($0, watch: watch, outbox: outbox) }
    let eventLoops = MultiThreadedEventLoopGroup.singleton
    let server = PublicServer.builder(proxy: proxy, tls: tls)
    let heartbeat = Heartbeat(
      store: store, generations: generations, keys: key.keys, address: listen, clock: clock, random: random)
    let auditSending = AuditSending(
      store: store, generations: generations, web: web, clock: clock, holder: heartbeat.id,
      logger: Logger(label: "audit"))
    let readiness = Readiness(
      publicURL: settings.publicURL, listen: listen, admin: admin, generation: generation.id, notifier: notifier,
      predecessor: predecessor,
      logger: logger)
    let added: [(any AddedCalls)?] = [appAPI, openID]
    let publicApplication = PublicApplication(
      engine: engine, store: store, generations: generations, providers: registry, clock: clock, random: random,
      keys: key.keys, audit: audit,
      keySet: { proxy.keySet }, pages: pages, adding: added.compactMap(\.self), server: server,
      bodies: BodyReader(timeLimit: nil), forwardingFaults: proxy.forwardingFaults, eventLoops: eventLoops,
      logger: logger)
    let adminApplication = AdminApplication(
      store: store,
      accounts: AccountAdministration(store: store, providers: registry, keys: key.keys, clock: clock, random: random),
      tokens: ServiceTokens(store: store, keys: key.keys, clock: clock, random: random), generations: generations,
      audit: audit, clock: clock, random: random, pages: pages, address: admin,
      forwardingFaults: proxy.forwardingFaults, eventLoops: eventLoops, logger: logger,
      nodes: { heartbeat.nodes ?? [] }, values: { PolicyValues($0, providers: registry) },
      reload: { await reload.reload(isForced: $0)?.problems ?? [] },
      outbox: { outbox.entries.map(OutboxEntry.init) },
      resetFactor: { provider, account, identity, client throws(StoreFault) in
        try await engine.resetFactor(provider, of: account, by: identity, client: client)
      },
      sendInvitation: { wanted, language, administration, client throws(StoreFault) in
        try await engine.sendInvitation(wanted, in: language, by: administration, client: client)
      },
      suggestion: { Suggestion.phrase(for: $0, among: $1) },
      shadow: ShadowControl(
        status: { shadow.status }, begin: { await reload.beginShadow(of: $0, by: $1)?.problems ?? [] },
        promote: { await reload.promote(isForced: $0)?.problems ?? [] }, end: { shadow.end() }),
      upgrade: { await upgrading.upgrade(within: $0) },
      isEnding: { readiness.isEnding },
      metrics: {
        let flows =
          signIns.families + engine.sendMetrics.families + engine.providerMetrics.families + apps.metrics.families
        let parts =
          metrics.families + heartbeat.families + auditSending.families + deliveries.families + hashing.families
          + shadow.families
          + spans.families + (tls?.families ?? [])
        return await proxy.metrics() + flows + parts + opened.families() + [BuildMetrics.family]
      })
    self.store = store
    self.proxy = proxy
    drain = settings.drain
    replacement = Replacement(upgrading: upgrading)
    self.web = web
    // Services shut down in reverse order: first no new requests are accepted, then everything that requests need
    // stops.
    var services: [any Service] = [
      Background { await audit.run(clock: clock) },
      Background {
        await engine.probeSites()
        await Background.idle()
      },
      Background {
        await Background.idle()
        shadow.end()
      },
      Background {
        while !Task.isCancelled {
          policyFaults.logSuppressed()
          proxy.logSuppressedFailures()
          try? await Task.sleep(for: .seconds(5))
        }
      },
      Background { await DedicatedThread.run(at: nil) { await watch.run { pause.block(for: $0) } } },
      heartbeat,
      PruneLoop(store: store, clock: clock, logger: logger),
      FlowEviction(store: store, generations: generations, clock: clock, logger: logger),
      auditSending,
      TraceSending(
        spans: spans, generations: generations, web: web, clock: clock, instance: heartbeat.id,
        logger: Logger(label: "tracing")),
      MaintenanceLoop(
        maintenance: Maintenance(engine, holder: heartbeat.id, jitter: { Double.random(in: 0..<1) }),
        rechecks: IdentityRechecks(engine)),
      UnverifiedAccountsLoop(store: store, generations: generations, clock: clock, random: random, logger: logger),
      AppKeysLoop(apps: apps, generations: generations, clock: clock, logger: logger),
      AppNoticesLoop(notices: AppNotices(apps: apps, web: web, logger: logger), logger: logger),
      AccessTokenLoop(sweep: AccessTokenSweep(store: store, clock: clock, random: random), logger: logger),
      FileReload(reload: reload, watcher: watcher),
      SignalReload(reload: reload, accessLog: accessLog, notifier: notifier, logger: logger),
      Background { await upgrading.followPredecessors() },
      SignalUpgrade(upgrading: upgrading, audit: audit, clock: clock, random: random),
      CertificateReload(reload: reload), GeoReload(generations: generations, logger: logger),
      KeyReload(settings.key, keys: key.keys, logger: logger),
    ]
    services +=
      [Watchdog(eventLoops: eventLoops, notifier: notifier, logger: logger)].compactMap(\.self) as [any Service]
    services += [
      Listener(
        name: "admin", address: admin, inherited: listenAddresses.sockets.admin, application: adminApplication,
        handle: listeners.admin, turn: turn
      ) {
        readiness.isListening(.admin)
      },
      Listener(
        name: "listen", address: listen, inherited: listenAddresses.sockets.listen, application: publicApplication,
        handle: listeners.listen, turn: turn
      ) {
        readiness.isListening(.gateway)
      },
      ShutdownNotice { readiness.end() },
    ]
    self.services = services
  }

  /// Runs until SIGTERM or SIGINT.
  /// - Throws: an error if a listener fails or a required service ends.
  func run() async throws {
    let all = services.map { ServiceGroupConfiguration.ServiceConfiguration(byType: $0) }
    let end = ServiceGroupConfiguration.ServiceConfiguration(byType: replacement, onSuccess: .gracefullyShutdownGroup)
    var configuration = ServiceGroupConfiguration(
      services: all + [end], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    configuration.maximumGracefulShutdownDuration = drain
    try await ServiceGroup(configuration: configuration).run()
    await proxy.flushActivity()
    await web.end()
    await programs.end()
    await proxy.endAccessLog()
    try? store.close()
    logger.notice("ended")
  }

  private static func load(_ folder: ConfigurationFolder) async throws(StartProblem) -> any PolicyGeneration {
    switch await folder.load() {
    case .success(let generation): return generation
    case .failure(let refused):
      let list = refused.problems.map { "\n  \($0)" }.joined()
      let count = "\(refused.problems.count) problem\(refused.problems.count == 1 ? "" : "s")"
      throw StartProblem("Not started: the configuration in \(folder.path) has \(count).\(list)")
    }
  }

  private static func accessLog() throws(StartProblem) -> AccessLog? {
    guard let target = AccessLog.Target(ProcessInfo.processInfo.environment["MOONGATE_ACCESS_LOG"]) else { return nil }
    do throws(AccessLog.Problem) { return try AccessLog(target) } catch {
      throw StartProblem(error.description, status: .couldNotRun)
    }
  }

  private static func open(_ location: StoreLocation, for key: MasterKey, logger: Logger) async throws(StartProblem)
    -> OpenedStore
  {
    do {
      return try await OpenedStore.forServing(location, key.keys, logger: logger)
    } catch {
      // Remove a key that was just created for a store of another key: it opens nothing and would hide that the right
      // key is lost.
      key.undo()
      throw StartProblem(sentence(for: error, madeKey: key.madeFile))
    }
  }

  /// - Parameter madeKey: the key file that this start created; nil if it existed.
  static func sentence(for error: any Error, madeKey: String?) -> String {
    if let madeKey, case StoreRefusal.otherKey(let store)? = error as? StoreRefusal {
      return "The key file \(madeKey) is missing, and the store \(store) was made with it. "
        + "Restore the key file from your copy, or name another store in gateway.lua."
    }
    return error is StoreFault ? "The store cannot be read: \(error)" : "\(error)"
  }
}

extension OutboxEntry {
  /// An outbox message in the format of the admin listener.
  init(_ entry: Outbox.Entry) {
    self.init(
      id: String(entry.id), at: entry.at, channel: entry.message.channel.rawValue, to: entry.message.to,
      subject: entry.message.subject,
      text: entry.message.text, code: entry.message.code)
  }
}
