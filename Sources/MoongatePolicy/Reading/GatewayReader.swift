import MoongateCore
import MoongateSDK

/// Reads gateway.lua.
struct GatewayReader {
  /// The configuration folder, the base of relative paths.
  let folder: String
  let catalog: ProviderCatalog
  let secrets: SecretReader
  let problems: Problems

  func read(_ node: LuaNode) -> GatewaySettings? {
    let before = problems.all.count
    guard let reader = TableReader(node, .gateway, path: "", problems: problems) else { return nil }
    let listen = address(reader, "listen")
    let admin = readAdmin(reader)
    let publicURL = reader.take("public_url").flatMap { origin($0, "public_url") }
    let tls = readTLS(reader)
    let store = readStore(reader)
    let key = readKey(reader)
    let region = readRegion(reader)
    let trusted = blocks(reader)
    let takesProxyProtocol = readProxyProtocol(reader, trusted)
    let answersCredentials = reader.flag("forward_auth_credentials")
    let redirectHosts = authorities(reader)
    let domains = DomainReader(problems: problems).read(reader, publicURL)
    let service = reader.text("service")
    let brand = readBrand(reader)
    let languages = readLanguages(reader)
    let risk = readRiskBudget(reader)
    let providers = readProviders(reader, publicURL)
    let limits = readLimits(reader)
    let origins = readOrigins(reader)
    let hsts = readHSTS(reader)
    let appAPI = reader.flag("app_api")
    let audit = reader.take("audit").map {
      AuditReader(folder: folder, secrets: secrets, problems: problems).read($0, "audit")
    }
    let tracing = reader.explicitValue("tracing").flatMap {
      TracingReader(folder: folder, secrets: secrets, problems: problems).read($0, "tracing")
    }
    let drain = readDrain(reader)
    let gate = reader.take("gate").flatMap { GateReader(problems: problems).read($0) }
    if let publicURL, !publicURL.isSecure, !publicURL.isLoopback, let node = reader.explicitValue("public_url") {
      problems.warn(
        node.location, "public_url", "codes, PINs and cookies would be sent unencrypted: use https outside this machine"
      )
    }
    guard problems.all.count == before, let listen, let admin, let publicURL, let store, let key, let region,
      let service, let limits
    else {
      return nil
    }
    var settings = GatewaySettings(
      listen: listen, admin: admin.address, publicURL: publicURL, tls: tls, store: store, key: key, region: region,
      trustedProxies: trusted,
      redirectHosts: redirectHosts, cookieDomain: domains.own, service: service, brand: brand, riskBudget: risk,
      providers: providers,
      connectionLimits: limits, corsOrigins: origins, adminToken: admin.token, hsts: hsts,
      locations: Self.locations(node))
    (settings.takesProxyProtocol, settings.answersCredentials) = (takesProxyProtocol, answersCredentials ?? false)
    settings.languages = languages
    settings.domains = domains.all
    settings.adminTokens = admin.tokens
    settings.audit = audit ?? []
    settings.tracing = tracing
    settings.gate = gate
    settings.drain = drain
    settings.appAPI = appAPI ?? false
    GeoReader(folder: folder, problems: problems).read(reader, into: &settings)
    return settings
  }

  /// The locations of all settings, up to three levels deep.
  private static func locations(_ node: LuaNode, _ path: String = "", depth: Int = 3) -> [String: SourceLocation] {
    var all: [String: SourceLocation] = path.isEmpty ? [:] : [path: node.location]
    guard depth > 0, case .table(let table) = node.value else { return all }
    for (name, field) in table.fields {
      all.merge(locations(field, path.isEmpty ? name : "\(path).\(name)", depth: depth - 1)) { first, _ in first }
    }
    return all
  }

  // MARK: addresses

  func address(_ reader: TableReader, _ name: String) -> ListenAddress? {
    guard let node = reader.take(name), let text = Field.text(node, reader.path(name), problems) else { return nil }
    guard let address = ListenAddress(text) else {
      problems.add(
        node.location, reader.path(name),
        "\"\(text)\" is not a valid listen address, such as \"127.0.0.1:8080\" or \"[::1]:8080\"")
      return nil
    }
    return address
  }

  /// Reads `https://host:port` without a path.
  func origin(_ node: LuaNode, _ path: String) -> PublicURL? {
    guard let text = Field.text(node, path, problems) else { return nil }
    guard let url = PublicURL(parsing: text) else {
      problems.add(
        node.location, path,
        "\"\(text)\" is not an origin, such as \"https://auth.example.com\": scheme, host and port only"
      )
      return nil
    }
    return url
  }

  private func blocks(_ reader: TableReader) -> [AddressBlock] {
    guard let node = reader.take("trusted_proxies"), let texts = Field.texts(node, "trusted_proxies", problems) else {
      return []
    }
    return texts.enumerated().compactMap { index, item in
      if let block = AddressBlock(item.text) { return block }
      problems.add(
        item.node.location, "trusted_proxies[\(index + 1)]",
        "\"\(item.text)\" is not an address block, such as \"127.0.0.1/32\" or \"10.0.0.0/8\"")
      return nil
    }
  }

  /// Attack: a client that sends a PROXY header itself claims any address. Only trusted proxies may send one.
  private func readProxyProtocol(_ reader: TableReader, _ trusted: [AddressBlock]) -> Bool {
    guard reader.flag("proxy_protocol") ?? false else { return false }
    if reader.explicitValue("trusted_proxies") == nil {
      problems.add(
        reader.location(of: ["proxy_protocol"]), "proxy_protocol",
        "requires `trusted_proxies`, the addresses of the proxies that send the header")
    } else if let wide = trusted.first(where: \.isWide) {
      problems.warn(
        reader.location(of: ["proxy_protocol"]), "proxy_protocol",
        "trusted_proxies has \(wide): every machine there can claim to be any client. Name only the addresses of your own proxies"
      )
    }
    return true
  }

  private func authorities(_ reader: TableReader) -> [String] {
    guard let node = reader.take("redirect_hosts"), let texts = Field.texts(node, "redirect_hosts", problems) else {
      return []
    }
    return texts.enumerated().compactMap { index, item in
      if let host = HostName(item.text) { return host.authority }
      problems.add(
        item.node.location, "redirect_hosts[\(index + 1)]",
        "\"\(item.text)\" is not a host, such as \"app.example.com\" or \"app.example.com:8443\"")
      return nil
    }
  }

  private func readOrigins(_ reader: TableReader) -> [String] {
    guard let node = reader.take("cors_origins"), let texts = Field.texts(node, "cors_origins", problems) else {
      return []
    }
    return texts.enumerated().compactMap { index, item in origin(item.node, "cors_origins[\(index + 1)]")?.description }
  }

  // MARK: files and stores

  func resolved(_ path: String) -> String { path.hasPrefix("/") ? path : "\(folder)/\(path)" }

  private func readTLS(_ reader: TableReader) -> TLSFiles? {
    guard let node = reader.take("tls"), let tls = TableReader(node, .tls, path: "tls", problems: problems) else {
      return nil
    }
    var files: [String] = []
    for name in ["cert", "key"] {
      guard let node = tls.take(name), let path = Field.text(node, "tls.\(name)", problems) else { continue }
      switch ConfigurationFiles.read(resolved(path)) {
      case .success:
        files.append(resolved(path))
        if name == "key", FilePermissions.isOpenToOthers(resolved(path)) {
          problems.warn(
            node.location, "tls.key",
            "\(path): every user of this machine may read it. Run: chmod 600 \(resolved(path))")
        }
      case .failure(let failure): problems.add(node.location, "tls.\(name)", "\(path): \(failure.sentence)")
      }
    }
    return files.count == 2 ? TLSFiles(certificate: files[0], key: files[1]) : nil
  }

  private func readStore(_ reader: TableReader) -> StoreLocation? {
    guard let node = reader.take("store") else { return nil }
    if case .tagged = node.value { return secrets.read(node, "store", problems).map { .postgres(url: $0.reveal()) } }
    guard let text = Field.text(node, "store", problems) else { return nil }
    if text == "sqlite::memory:" { return .sqlite(path: ":memory:") }
    if text.hasPrefix("sqlite:"), text.count > 7 { return .sqlite(path: resolved(String(text.dropFirst(7)))) }
    if text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") { return .postgres(url: text) }
    problems.add(
      node.location, "store", "\"\(text)\" is not a store; write \"sqlite:data/moongate.db\" or \"postgres://…\"")
    return nil
  }

  private func readKey(_ reader: TableReader) -> KeyLocation? {
    guard let node = reader.take("key") else { return nil }
    // A key file may be missing: the gateway creates it at the first start, and `check` creates nothing.
    if case .tagged("file", let arguments) = node.value, case .text(let path)? = arguments.first?.value {
      return .file(path: resolved(path))
    }
    if case .tagged("credential", let arguments) = node.value, case .text(let name)? = arguments.first?.value {
      return secrets.credentialFile(name, node.location, "key", problems).map { .credential(path: $0) }
    }
    return secrets.read(node, "key", problems).map { .value($0) }
  }

  // MARK: other settings

  /// The country of numbers without a country code; empty if the file names none. nil with a problem if it is invalid.
  private func readRegion(_ reader: TableReader) -> String? {
    guard let node = reader.explicitValue("region") else { return "" }
    guard let text = Field.text(node, "region", problems) else { return nil }
    if CountryCode.contains(text) { return text }
    problems.add(
      node.location, "region",
      "\"\(text)\" is not a country code of two capital letters (ISO 3166-1)"
        + (CountryCode.suggestion(for: text).map { "; did you mean `\($0)`?" } ?? ", such as \"IN\""))
    return nil
  }

  private func readBrand(_ reader: TableReader) -> Brand {
    guard let node = reader.take("brand"), let table = TableReader(node, .brand, path: "brand", problems: problems)
    else { return Brand() }
    var brand = Brand(
      name: table.text("name"), logo: table.text("logo"), primary: table.text("primary"),
      support: table.text("support"),
      terms: table.text("terms"), privacy: table.text("privacy"))
    if let primary = brand.primary, primary.wholeMatch(of: /#[0-9A-Fa-f]{6}/) == nil,
      let node = table.explicitValue("primary")
    {
      problems.add(node.location, "brand.primary", "\"\(primary)\" is not a colour, such as \"#0D7377\"")
    }
    if let logo = brand.logo, !logo.hasPrefix("https://"), let node = table.explicitValue("logo") {
      brand.logoFile = readLogo(logo, node)
    }
    // Pages show it as a link: javascript: would run there.
    if let support = brand.support, !["mailto:", "https://", "tel:"].contains(where: support.hasPrefix),
      let node = table.explicitValue("support")
    {
      problems.add(node.location, "brand.support", "\"\(support)\" must begin with mailto:, https:// or tel:")
    }
    for (name, link) in [("terms", brand.terms), ("privacy", brand.privacy)] {
      guard let link, !link.hasPrefix("https://"), let node = table.explicitValue(name) else { continue }
      problems.add(node.location, "brand.\(name)", "\"\(link)\" must begin with https://")
    }
    return brand
  }

  private func readDrain(_ reader: TableReader) -> Duration {
    let usual = GatewaySettings.usualDrain
    guard let node = reader.take("drain"), let drain = Field.duration(node, "drain", problems) else { return usual }
    if GatewaySettings.drains.contains(drain) { return drain }
    let extreme = drain < GatewaySettings.drains.lowerBound ? "too short" : "too long"
    problems.add(node.location, "drain", "\"\(drain.asWritten)\" is \(extreme): from \"1s\" to \"1h\"")
    return usual
  }

  private func readLanguages(_ reader: TableReader) -> [String] {
    guard let node = reader.take("languages"), let texts = Field.texts(node, "languages", problems) else { return [] }
    var tags: [String] = []
    for (index, item) in texts.enumerated() {
      let path = "languages[\(index + 1)]"
      if item.text.wholeMatch(of: /[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*/) == nil {
        problems.add(item.node.location, path, "\"\(item.text)\" is not a language, such as \"en\" or \"pt-BR\"")
      } else if tags.contains(item.text) {
        problems.add(item.node.location, path, "\"\(item.text)\" is listed twice")
      } else {
        tags.append(item.text)
      }
    }
    if texts.isEmpty {
      problems.add(node.location, "languages", "is empty: name at least one language, or leave it out")
    }
    return tags
  }

  private func readLogo(_ logo: String, _ node: LuaNode) -> PageFile? {
    let name = String(logo.split(separator: "/").last ?? "")
    guard [".svg", ".png", ".jpg", ".jpeg", ".webp"].contains(where: name.lowercased().hasSuffix), !logo.contains("://")
    else {
      problems.add(
        node.location, "brand.logo",
        "\"\(logo)\" is not an image: use a .svg, .png, .jpg or .webp file, or an https:// URL")
      return nil
    }
    switch secrets.files.read(resolved(logo), named: logo) {
    case .success(let bytes): return PageFile(name: name, bytes: bytes)
    case .failure(let failure):
      problems.add(node.location, "brand.logo", "\(logo): \(failure.sentence)")
      return nil
    }
  }

  private func readRiskBudget(_ reader: TableReader) -> Double? {
    guard let node = reader.take("risk_budget"), let text = Field.text(node, "risk_budget", problems)
    else { return nil }
    guard let match = text.wholeMatch(of: /([0-9]{1,3}(?:\.[0-9]{1,9})?)% per ([0-9a-z]+)/),
      let percent = Double(match.1),
      let span = Field.duration(String(match.2)), percent > 0, percent <= 100, span >= .seconds(3600)
    else {
      problems.add(node.location, "risk_budget", "\"\(text)\" is not a risk budget; write \"0.1% per 30d\"")
      return nil
    }
    return min(1, percent / 100 * (2_592_000 / Double(span.components.seconds)))
  }

  private func readLimits(_ reader: TableReader) -> ConnectionLimits? {
    let node = reader.take("limits") ?? LuaNode(value: .table(LuaTable()), location: reader.location)
    guard let table = TableReader(node, .connectionLimits, path: "limits", problems: problems),
      let connections = table.whole("connections", in: 1...10_000_000)
    else { return nil }
    var limits = ConnectionLimits()
    limits.connections = connections
    if let node = table.take("flows"),
      let flows = TableReader(node, .flowLimits, path: "limits.flows", problems: problems)
    {
      limits.flows.count = flows.whole("count", in: 1_000...10_000_000) ?? limits.flows.count
      limits.flows.bytes = flows.size("bytes", in: (1 << 20)...(1 << 40)) ?? limits.flows.bytes
    }
    if let node = table.take("per_ip"),
      let each = TableReader(node, .addressLimits, path: "limits.per_ip", problems: problems)
    {
      limits.connectionsPerAddress = each.whole("connections", in: 1...10_000_000)
      if let node = each.take("requests"), let text = Field.text(node, "limits.per_ip.requests", problems) {
        if let match = text.wholeMatch(of: /([0-9]{1,7})\/s/), let rate = Int(match.1), rate > 0 {
          limits.requestsPerSecondPerAddress = rate
        } else {
          problems.add(node.location, "limits.per_ip.requests", "\"\(text)\" is not a rate; write \"100/s\"")
        }
      }
    }
    limits.bodyRate = BodyRateReader(problems: problems).read(table, standard: .standard)
    return limits
  }

  // MARK: providers

  /// The names under `providers`, even if the rest of the file is invalid; nil if they cannot be determined, so that
  /// one mistake is not reported again for every flow.
  static func configured(_ node: LuaNode, _ catalog: ProviderCatalog) -> Set<ProviderName>? {
    guard case .table(let table) = node.value, case .table(let providers)? = table.fields["providers"]?.value else {
      return nil
    }
    let names = providers.fields.keys.map { catalog.descriptor($0)?.name }
    return names.contains { $0 == nil } ? nil : Set(names.compactMap(\.self))
  }

  private func readProviders(_ reader: TableReader, _ publicURL: PublicURL?) -> [ProviderName: ProviderSettings] {
    guard let node = reader.take("providers"), let table = TableReader(node, nil, path: "providers", problems: problems)
    else { return [:] }
    var all: [ProviderName: ProviderSettings] = [:]
    for name in table.names {
      guard let node = table.take(name), !catalog.broken.contains(name) else { continue }
      guard let descriptor = catalog.descriptor(name) else {
        problems.add(
          node.location, "providers.\(name)",
          "unknown provider `\(name)`\(Suggestion.phrase(for: name, among: catalog.descriptors.map(\.name.rawValue)))"
        )
        continue
      }
      guard descriptor.canBeConfigured else {
        problems.add(
          node.location, "providers.\(name)",
          "`\(name)` is a kind of provider: give the entry a name of its own, as in work = \(name) { … }")
        continue
      }
      let settings = ProviderSettingsReader(folder: folder, secrets: secrets, publicURL: publicURL, problems: problems)
      if let settings = settings.read(ExecReader.settings(node, types: catalog.types), descriptor) {
        all[descriptor.name] = settings
      }
    }
    return all
  }
}
