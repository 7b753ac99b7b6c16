import MoongateCore
import MoongateSDK

// The fields that a route can do without, each with one reader. A new one is declared in `TableShape.route` and
// `Route`, and read here.
extension RouteReader {
  /// Reads the fields into the route.
  func readOptionalFields(_ reader: TableReader, into route: inout Route) {
    let identity = IdentityReader(claims: claims, secrets: secrets, problems: problems)
    route.rewrite.strip = readStrip(reader, route.path)
    route.hostHeader = readHostHeader(reader)
    route.encoded = readEncoded(reader)
    route.identity = identity.read(reader)
    route.bearer = readBearer(reader)
    route.responseHeaders = readResponseHeaders(reader)
    route.retry = readRetry(reader)
    route.balance = reader.choice("balance", UpstreamBalance.self) ?? .first
    route.health = readHealth(reader)
    route.rate = readRate(reader)
    route.frames = readFrames(reader)
    route.errorPages = readErrorPages(reader)
  }

  // MARK: the path and the host

  /// Reads `strip`, which must be the beginning of all paths that the route matches.
  private func readStrip(_ reader: TableReader, _ pattern: PathPattern) -> String {
    guard let (text, node) = explicitText(reader, "strip") else { return "" }
    let path = reader.path("strip")
    // Services and browsers read it in X-Forwarded-Prefix and Location, where other characters have two spellings.
    guard text.wholeMatch(of: /(\/[A-Za-z0-9._~!$&'()+,=:@\-]+)+/) != nil else {
      problems.add(
        node.location, path,
        "\"\(text)\" is not a beginning of paths, such as \"/wiki\": whole segments of ASCII without *, % and ;, and no / at the end"
      )
      return ""
    }
    let segments = text.dropFirst().split(separator: "/").map { PathPattern.Segment.glob(Array($0.utf8)) }
    // A pattern that could not be read is reported already.
    guard pattern.segments.isEmpty || pattern.segments.starts(with: segments) else {
      problems.add(
        node.location, path,
        "\"\(text)\" is not the beginning of all paths that \"\(pattern.text)\" matches: write \(Self.advice(text, pattern))"
      )
      return ""
    }
    return text
  }

  /// What to write in place of a `strip` that does not fit the pattern.
  private static func advice(_ strip: String, _ pattern: PathPattern) -> String {
    let literal = pattern.segments.prefix {
      if case .glob(let bytes) = $0 { !bytes.isEmpty && !bytes.contains(UInt8(ascii: "*")) } else { false }
    }
    let beginning = pattern.text.split(separator: "/").prefix(literal.count).map { "/\($0)" }.joined()
    return (beginning.isEmpty ? "" : "strip = \"\(beginning)\", or ") + "path = \"\(strip)/**\""
  }

  private func readHostHeader(_ reader: TableReader) -> ServiceHost {
    guard let (text, node) = explicitText(reader, "host_header") else { return .kept }
    let words: [String: ServiceHost] = ["keep": .kept, "upstream": .upstream]
    if let word = words[text] { return word }
    let path = reader.path("host_header")
    guard let host = HostName(text), host.authority == text else {
      let meant = HostName(text).map { "; did you mean `\($0.authority)`?" } ?? ""
      problems.add(
        node.location, path,
        "\"\(text)\" is not \"keep\", \"upstream\" or a host in lower case, such as \"wiki.internal\"\(meant)")
      return .kept
    }
    if let word = Suggestion.nearest(to: text, among: words.keys) {
      problems.warn(node.location, path, "the service receives \"\(text)\" as its host; did you mean \"\(word)\"?")
    }
    return .named(host.authority)
  }

  private func readEncoded(_ reader: TableReader) -> EncodedPathBytes {
    guard let node = reader.explicitValue("encoded") else { return [] }
    let path = reader.path("encoded")
    let words = choices(node, path, EncodedPathWord.self)
    return words.reduce(into: []) { $0.formUnion($1.bytes) }
  }

  // MARK: headers

  private func readBearer(_ reader: TableReader) -> String? {
    guard let (id, node) = explicitText(reader, "bearer") else { return nil }
    let path = reader.path("bearer")
    guard let apps else { return id }
    guard let app = apps[id] else {
      problems.add(
        node.location, path,
        "apps.lua defines no app \"\(id)\"\(Suggestion.phrase(for: id, among: apps.apps.map(\.id)))")
      return nil
    }
    if app.accessToken == .opaque {
      problems.add(
        node.location, path,
        "only the gateway can read the access tokens of the app \"\(id)\": set access_token = \"jwt\" and `audience` there"
      )
    }
    return id
  }

  private func readResponseHeaders(_ reader: TableReader) -> [(name: String, value: String?)] {
    guard let node = reader.explicitValue("response_headers"),
      let table = TableReader(node, nil, path: reader.path("response_headers"), problems: problems)
    else { return [] }
    return table.names.compactMap { name in
      guard let node = table.explicitValue(name) else { return nil }
      func refuse(_ why: String) -> (name: String, value: String?)? {
        problems.add(node.location, table.path(name), why)
        return nil
      }
      var value: String?
      switch node.value {
      case .flag(false): break
      case .text(let text): value = text
      default: return refuse("must be a text, or false to remove the header, not \(node.value.described)")
      }
      guard HeaderRules.isName(name) else {
        problems.add(node.location, table.path, "\"\(name)\" is not a valid header name")
        return nil
      }
      if let problem = HeaderRules.problem(ofResponse: name, isSet: value != nil) { return refuse(problem) }
      guard HeaderRules.isValue(value ?? "") else { return refuse(HeaderRules.valueRule) }
      return (name, value)
    }
  }

  // MARK: upstreams

  private func readRetry(_ reader: TableReader) -> RetryRule? {
    guard let table = table(reader, "retry", .routeRetry) else { return nil }
    let words = table.take("on").map { choices($0, table.path("on"), RetryWord.self) }
    guard let words, let times = table.whole("times", in: 1...5) else { return nil }
    return RetryRule(
      onConnect: words.contains(.connect), statuses: Set(words.compactMap { Int($0.rawValue) }), times: times)
  }

  private func readHealth(_ reader: TableReader) -> HealthCheck? {
    guard let table = table(reader, "health", .routeHealth) else { return nil }
    let node = table.take("path")
    let interval = table.take("every").flatMap {
      bounded($0, table.path("every"), in: .seconds(1)...(.seconds(3_600)), "from \"1s\" to \"1h\"")
    }
    guard let node, let text = Field.text(node, table.path("path"), problems) else { return nil }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard UpstreamReader.isPlain(String(parts[0])),
      text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "#") })
    else {
      problems.add(
        node.location, table.path("path"),
        "\"\(text)\" is not the path of a request, such as \"/healthz\" or \"/status?full=0\"")
      return nil
    }
    return interval.map { HealthCheck(path: text, interval: $0) }
  }

  /// Reads `{ "100/s", per = "account" }`.
  private func readRate(_ reader: TableReader) -> RouteRate? {
    guard let node = reader.explicitValue("rate") else { return nil }
    let path = reader.path("rate")
    let example = "{ \"100/s\", per = \"account\" }"
    guard case .table = node.value else {
      problems.add(node.location, path, "must be a table, as in \(example), not \(node.value.described)")
      return nil
    }
    guard let table = TableReader(node, .routeRate, path: path, problems: problems, allowsItems: true) else {
      return nil
    }
    let subject = table.choice("per", RouteRate.Subject.self)
    guard table.items.count == 1 else {
      problems.add(node.location, path, "must have one rate, as in \(example)")
      return nil
    }
    guard let text = Field.text(table.items[0], path, problems), let subject else { return nil }
    guard let (count, window) = Self.rate(text) else {
      problems.add(
        table.items[0].location, path,
        "\"\(text)\" is not a rate: write a number and a time, such as \"100/s\", \"1000/m\" or \"5000/10m\", at most \"1d\""
      )
      return nil
    }
    return RouteRate(count: count, window: window, subject: subject)
  }

  private static func rate(_ text: String) -> (count: Int, window: Duration)? {
    guard let match = text.wholeMatch(of: /([0-9]{1,7})\/([0-9a-z]{1,12})/), let count = Int(match.1), count > 0
    else { return nil }
    let time = String(match.2)
    guard let window = Field.duration(["s", "m", "h", "d"].contains(time) ? "1\(time)" : time),
      (Duration.seconds(1)...(.seconds(86_400))).contains(window)
    else { return nil }
    return (count, window)
  }

  // MARK: pages

  private func readFrames(_ reader: TableReader) -> [String] {
    let path = reader.path("frames")
    guard let node = reader.explicitValue("frames"), let texts = Field.texts(node, path, problems) else { return [] }
    if node.isEmptyTable { problems.add(node.location, path, "is empty: name a site, or leave it out") }
    // Browsers keep no cookie of a frame without https (RFC 6265bis, SameSite=None requires Secure).
    if let own = gateway?.publicURL, !own.isSecure, !own.isLoopback {
      problems.add(node.location, path, "no user can sign in within a frame: public_url must be https for that")
    }
    return texts.enumerated().compactMap { index, item in
      // Attack: a page over http, which anybody on the way can change, frames the service and takes clicks.
      guard let origin = PublicURL(parsing: item.text), origin.isSecure || origin.isLoopback else {
        problems.add(
          item.node.location, "\(path)[\(index + 1)]",
          "\"\(item.text)\" is not an https origin, such as \"https://portal.example.com\": scheme, host and port only")
        return nil
      }
      return origin.description
    }
  }

  private func readErrorPages(_ reader: TableReader) -> String? {
    guard let (text, node) = explicitText(reader, "error_pages") else { return nil }
    let path = reader.path("error_pages")
    guard text.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9_\-]{0,47}/) != nil else {
      problems.add(node.location, path, "\"\(text)\" is not the name of a folder in pages/, such as \"errors\"")
      return nil
    }
    let templates = errorPages.filter { $0.folder == text }
    if templates.isEmpty {
      problems.add(
        node.location, path, "pages/\(text)/ has no template: write error.mustache, or 403.mustache for one status")
    }
    for file in templates
    where file.name.dropFirst(text.count + 1).wholeMatch(of: /(error|[45][0-9]{2})\.mustache/) == nil {
      problems.add(
        SourceLocation(file: file.path, line: 0), "",
        "is never shown: name it error.mustache, or after a status from 400 to 599, such as 403.mustache")
    }
    return text
  }

  // MARK: values

  /// A text that the table sets.
  private func explicitText(_ reader: TableReader, _ field: String) -> (text: String, node: LuaNode)? {
    guard let node = reader.explicitValue(field), let text = Field.text(node, reader.path(field), problems) else {
      return nil
    }
    return (text, node)
  }

  private func table(_ reader: TableReader, _ field: String, _ shape: TableShape) -> TableReader? {
    reader.explicitValue(field).flatMap { TableReader($0, shape, path: reader.path(field), problems: problems) }
  }

  /// Reads a list of words, of which there must be one.
  private func choices<Word: CaseIterable & RawRepresentable<String>>(
    _ node: LuaNode, _ path: String, _: Word.Type
  ) -> [Word] {
    let names = Word.allCases.map(\.rawValue)
    guard let items = Field.texts(node, path, problems) else { return [] }
    if node.isEmptyTable {
      problems.add(node.location, path, "is empty: name one or several of \(Suggestion.list(names)), or leave it out")
    }
    return items.enumerated().compactMap { Field.choice($1.node, "\(path)[\($0 + 1)]", problems, Word.self) }
  }

  private func bounded(_ node: LuaNode, _ path: String, in range: ClosedRange<Duration>, _ words: String) -> Duration? {
    guard let duration = Field.duration(node, path, problems) else { return nil }
    if range.contains(duration) { return duration }
    problems.add(node.location, path, "must be \(words), not \"\(duration.asWritten)\"")
    return nil
  }
}
