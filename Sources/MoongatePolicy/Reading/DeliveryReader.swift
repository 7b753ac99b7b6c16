import MoongateCore
import MoongateSDK

/// Reads `outbox()`, `smtp { … }`, `webhook { … }` and `twilio { … }`.
struct DeliveryReader {
  /// The configuration folder, the base of relative paths.
  let folder: String
  let secrets: SecretReader
  /// Nil if it cannot be read.
  let publicURL: PublicURL?
  let problems: Problems

  /// - Parameter channel: the channel of the messages.
  func read(_ node: LuaNode, _ path: String, for channel: MessageChannel) -> DeliverySettings? {
    guard case .tagged(let name, let arguments) = node.value, ["outbox", "smtp", "webhook", "twilio"].contains(name)
    else {
      problems.add(
        node.location, path,
        "must be a delivery method, as in outbox(), smtp { … }, webhook { … } or twilio { … }, not \(node.value.described)"
      )
      return nil
    }
    if name == "outbox" { return outbox(node, arguments.first, path, for: channel) }
    guard let body = arguments.first else { return nil }
    switch (name, channel) {
    case ("smtp", .mail): return smtp(body, path).map { .smtp($0) }
    case ("twilio", .sms): return twilio(body, path).map { .twilio($0) }
    case ("webhook", _): return webhook(body, path).map { .webhook($0) }
    case ("smtp", _):
      problems.add(node.location, path, "smtp sends mail, not SMS; use webhook { … }, twilio { … } or outbox()")
    default: problems.add(node.location, path, "\(name) sends SMS, not mail; use smtp { … }, webhook { … } or outbox()")
    }
    return nil
  }

  /// Attack: the demo's outbox in a gateway that is reachable by other users. No user receives a code, and anyone who
  /// can reach the admin listener can read all codes.
  private func outbox(_ node: LuaNode, _ body: LuaNode?, _ path: String, for channel: MessageChannel)
    -> DeliverySettings?
  {
    let before = problems.all.count
    let isAllowed =
      body.flatMap { TableReader($0, .outbox, path: path, problems: problems) }?.flag("allow_public") ?? false
    guard problems.all.count == before else { return nil }
    guard let publicURL, !publicURL.isLoopback else { return .outbox }
    let what = "sends nothing and shows every code on the admin listener, and public_url is \(publicURL)"
    guard isAllowed else {
      let others = channel == .mail ? "smtp { … } or webhook { … }" : "webhook { … } or twilio { … }"
      problems.addUnsafe(
        node.location, path, "outbox() \(what): use \(others), or for a test outbox { allow_public = true }")
      return .outbox
    }
    problems.warn(node.location, path, "outbox \(what): for tests only")
    return .outbox
  }

  // MARK: mail

  private func smtp(_ node: LuaNode, _ path: String) -> SMTPSettings? {
    let before = problems.all.count
    guard let reader = TableReader(node, .smtp, path: path, problems: problems) else { return nil }
    let server = reader.take("url").flatMap { readServer($0, reader.path("url")) }
    let from = reader.take("from").flatMap { readSender($0, reader.path("from")) }
    let user = reader.take("user").flatMap { textOrSecret($0, reader.path("user")) }
    let password = reader.take("password").flatMap { secret($0, reader.path("password")) }
    for (said, other) in [("user", "password"), ("password", "user")] {
      if let node = reader.explicitValue(said), reader.explicitValue(other) == nil {
        problems.add(node.location, reader.path(said), "requires \(other), which is missing")
      }
    }
    var authority: String?
    if let node = reader.take("ca"), let file = Field.text(node, reader.path("ca"), problems) {
      let resolved = file.hasPrefix("/") ? file : "\(folder)/\(file)"
      if case .failure(let failure) = secrets.files.read(resolved, named: file) {
        problems.add(node.location, reader.path("ca"), "\(file): \(failure.sentence)")
      }
      authority = resolved
    }
    let starttls = reader.explicitValue("starttls").flatMap { node in
      Field.flag(node, reader.path("starttls"), problems).map { (node, $0) }
    }
    if let server, server.isImplicit, let (node, _) = starttls {
      problems.add(
        node.location, reader.path("starttls"),
        "applies only to smtp://; smtps:// always uses TLS")
    }
    let helo = reader.take("helo").map { readHelo($0, reader.path("helo")) } ?? publicURL?.host
    guard problems.all.count == before, let server, let from else { return nil }
    let isLocal = Loopback.contains(server.host)
    let isRequired = starttls?.1 ?? !isLocal
    if !server.isImplicit, !isRequired, !isLocal, let (node, _) = starttls {
      problems.warn(
        node.location, reader.path("starttls"), "codes would be sent unencrypted: leave it out, or use smtps://")
    }
    return SMTPSettings(
      host: server.host, port: server.port, encryption: server.isImplicit ? .implicit : isRequired ? .required : .none,
      from: from, user: user,
      password: password, authority: authority, helo: SMTPSettings.helo(for: helo ?? "localhost"))
  }

  /// Reads a host name, or an address with or without the brackets of a literal (RFC 5321 section 4.1.3).
  private func readHelo(_ node: LuaNode, _ path: String) -> String? {
    guard let text = Field.text(node, path, problems) else { return nil }
    let bare = IPAddressBytes.withoutBrackets(text)
    let address = bare.hasPrefix("IPv6:") ? String(bare.dropFirst(5)) : bare
    if IPAddressBytes.parseV4(address.utf8) != nil || IPAddressBytes.parseV6(address.utf8) != nil { return address }
    if let host = HostName(text), host.port == nil { return host.name }
    problems.add(
      node.location, path,
      "\"\(text)\" is not the name of a host, such as \"auth.example.com\", and not an address, such as \"[192.0.2.1]\""
    )
    return nil
  }

  private func readServer(_ node: LuaNode, _ path: String) -> (host: String, port: Int, isImplicit: Bool)? {
    guard let text = Field.text(node, path, problems) else { return nil }
    let isImplicit = text.hasPrefix("smtps://")
    guard isImplicit || text.hasPrefix("smtp://"), let host = HostName(String(text.dropFirst(isImplicit ? 8 : 7)))
    else {
      problems.add(
        node.location, path,
        "\"\(text)\" is not a mail server URL; write \"smtps://mail.example.com\", or \"smtp://mail.example.com:587\" for STARTTLS"
      )
      return nil
    }
    return (host.name, host.port ?? (isImplicit ? 465 : 587), isImplicit)
  }

  private func readSender(_ node: LuaNode, _ path: String) -> MailSender? {
    guard let text = Field.text(node, path, problems) else { return nil }
    if let sender = MailSender(text) { return sender }
    problems.add(
      node.location, path,
      "\"\(text)\" is not a valid sender; write \"no-reply@example.com\" or \"Moongate <no-reply@example.com>\"")
    return nil
  }

  // MARK: SMS

  private func webhook(_ node: LuaNode, _ path: String) -> WebhookSettings? {
    let before = problems.all.count
    guard let reader = TableReader(node, .webhook, path: path, problems: problems) else { return nil }
    let url = reader.take("url").flatMap { site($0, reader.path("url")) }
    let headers = headers(of: reader)
    guard problems.all.count == before, let url else { return nil }
    return WebhookSettings(url: url, headers: headers)
  }

  /// Headers that belong to the connection, or that the gateway writes for each request.
  private static let framing: [StaticString] = HopByHopHeaders.names + ["host", "content-type", "content-length"]

  /// Additional headers of requests to the URL.
  func headers(of reader: TableReader) -> [WebhookSettings.Header] {
    var headers: [WebhookSettings.Header] = []
    if let node = reader.take("headers"),
      let table = TableReader(node, nil, path: reader.path("headers"), problems: problems)
    {
      for name in table.names {
        guard let node = table.take(name) else { continue }
        let isToken =
          !name.isEmpty
          && name.utf8.allSatisfy { (0x21...0x7e).contains($0) && !"\"(),/:;<=>?@[\\]{}".utf8.contains($0) }
        if !isToken || Self.framing.contains(where: { $0.description == name.lowercased() }) {
          problems.add(node.location, table.path(name), "is not a header that can be set here")
        } else if let value = textOrSecret(node, table.path(name)) {
          headers.append(WebhookSettings.Header(name: name, value: value))
        }
      }
    }
    return headers
  }

  private func twilio(_ node: LuaNode, _ path: String) -> TwilioSettings? {
    let before = problems.all.count
    guard let reader = TableReader(node, .twilio, path: path, problems: problems) else { return nil }
    let account = reader.take("account_sid").flatMap { node -> String? in
      guard let text = textOrSecret(node, reader.path("account_sid"))?.reveal() else { return nil }
      if TwilioSettings.isAccountSID(text) { return text }
      problems.add(node.location, reader.path("account_sid"), "is not a Twilio account SID: AC and 32 characters")
      return nil
    }
    let token = reader.take("auth_token").flatMap { secret($0, reader.path("auth_token")) }
    let from = reader.take("from").flatMap { node -> String? in
      guard let text = Field.text(node, reader.path("from"), problems) else { return nil }
      if text.wholeMatch(of: /\+[0-9]{3,15}|MG[0-9A-Za-z]{2,62}|[0-9A-Za-z ]{1,11}/) != nil { return text }
      problems.add(
        node.location, reader.path("from"),
        "\"\(text)\" is not a valid sender: use a number such as \"+15550100\", a name of at most 11 letters, or MG…")
      return nil
    }
    let url = reader.take("url").flatMap { site($0, reader.path("url")) }
    guard problems.all.count == before, let account, let token, let from, let url else { return nil }
    return TwilioSettings(
      url: url.hasSuffix("/") ? String(url.dropLast()) : url, account: account, token: token, from: from)
  }

  // MARK: helpers

  /// The URL of another site. A URL that sends plain text over a network causes a warning.
  /// - Parameter what: the content of the requests, for messages.
  func site(_ node: LuaNode, _ path: String, carrying what: String = "codes") -> String? {
    guard let text = Field.text(node, path, problems) else { return nil }
    guard let origin = WebAddress(text)?.origin,
      text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && !"\"#<>\\^`{|}".utf8.contains($0) })
    else {
      problems.add(node.location, path, "\"\(text)\" is not a valid URL, such as \"https://sms.example.com/send\"")
      return nil
    }
    if !origin.isSecure, !Loopback.contains(origin.host) {
      problems.warn(node.location, path, "\(what) would be sent unencrypted: use https outside this machine")
    }
    return text
  }

  private func textOrSecret(_ node: LuaNode, _ path: String) -> SecretText? {
    if case .text = node.value {
      return Field.text(node, path, problems).flatMap { oneLine(SecretText($0), node, path) }
    }
    return secret(node, path)
  }

  private func secret(_ node: LuaNode, _ path: String) -> SecretText? {
    secrets.read(node, path, problems).flatMap { oneLine($0, node, path) }
  }

  private func oneLine(_ secret: SecretText, _ node: LuaNode, _ path: String) -> SecretText? {
    if secret.reveal().unicodeScalars.allSatisfy({ $0.value >= 32 && $0.value != 127 }) { return secret }
    problems.add(node.location, path, "must be one line without control characters")
    return nil
  }
}
