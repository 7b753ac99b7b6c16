import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/account/tokens`: the user creates a personal token, which is shown once.
struct TokenPage: Sendable {
  static let path = "/auth/account/tokens"
  /// The available lifetimes in days, and the default.
  private static let days = [7, 30, 90, 365]
  private static let usual = 90

  let driver: FlowDriver
  let pages: PageRenderer

  struct Option: Decodable {
    let value: String
    let label: String
    let isChosen: Bool
  }

  /// The form for a new token.
  struct Form: Decodable {
    let name: String?
    let options: [Option]
    let problem: String?
    let nameIsInvalid: Bool
  }

  struct Model: PageModel {
    static let template = PageTemplate.token
    let form: Form?
    /// The token itself, which is shown only here.
    let secret: String?
    /// The routes that accept the token.
    let routes: [String]
    var stressesSupport = false
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.path) { exchange throws(Refusal) in
        let client = try await driver.caller(exchange)
        if case .failure(let refusal) = await driver.engine.mayMakeToken(client: client) {
          return try redirect(after: refusal, exchange)
        }
        return form(exchange, name: nil, days: nil, refusal: nil)
      },
      Endpoint(.page, .post, Self.path) { exchange throws(Refusal) in
        let fields = try await exchange.form()
        let (name, days) = (fields["name"], fields["expires"].flatMap(Int.init))
        if try exchange.isSwitch { return form(exchange, name: name, days: days, refusal: nil) }
        guard let days, Self.days.contains(days) else { throw exchange.refusal(.badRequest) }
        let client = try await driver.caller(exchange)
        switch await driver.engine.makeToken(named: name ?? "", for: .seconds(Int64(days) * 86_400), client: client) {
        case .success(let made):
          return page(Model(form: nil, secret: made.secret.reveal(), routes: Self.routes(exchange)), exchange)
        case .failure(let refusal):
          guard [.invalidInput, .denied].contains(refusal.code) else { return try redirect(after: refusal, exchange) }
          exchange.log(refusal)
          return form(exchange, name: name, days: days, refusal: refusal)
        }
      },
    ]
  }

  /// Redirects users who have to sign in, or need a recent proof, and back here.
  private func redirect(after refusal: Refusal, _ exchange: Exchange) throws(Refusal) -> Response {
    if refusal.code == .unauthenticated {
      return exchange.redirect(to: FormFields.address("/auth/login", ["return_to": Self.path]))
    }
    guard let address = StepUpRedirect.address(after: refusal, backTo: Self.path) else { throw refusal }
    return exchange.redirect(to: address)
  }

  private func form(_ exchange: Exchange, name: String?, days: Int?, refusal: Refusal?) -> Response {
    let words = pages.words(exchange)
    let options = Self.days.map { count in
      Option(
        value: String(count), label: words.count(count, "days"), isChosen: count == (days ?? Self.usual))
    }
    let problem = refusal.map {
      $0.field == "name" ? words[name == nil ? "token_name_missing" : "token_name_refused"] : words.sentence(of: $0)
    }
    let form = Form(name: name, options: options, problem: problem, nameIsInvalid: refusal?.field == "name")
    return page(Model(form: form, secret: nil, routes: Self.routes(exchange)), refusal: refusal, exchange)
  }

  private func page(_ model: Model, refusal: Refusal? = nil, _ exchange: Exchange) -> Response {
    pages.page(
      model, title: pages.words(exchange)["token_new"], refusal: refusal, at: Self.path, isTypedInto: model.form != nil,
      exchange)
  }

  /// The routes that accept personal tokens, for display.
  static func routes(_ exchange: Exchange) -> [String] {
    var seen: Set<String> = []
    return exchange.generation.personalTokenRoutes.map { ($0.host ?? "") + $0.path.text }.filter {
      seen.insert($0).inserted
    }
  }
}

extension AccountPage {
  /// A personal token of the user.
  struct Token: Decodable {
    let id: String
    let name: String
    let expires: String?
    let isOver: Bool
    let used: String?
    let from: String?
    /// For screen readers: the label of the row's button.
    let label: String
  }

  struct Tokens: Decodable {
    let items: [Token]
    let hasItems: Bool
    /// The routes that accept them.
    let routes: [String]
    let hasRoutes: Bool
  }

  /// The tokens of the account; nil if no route accepts tokens and the account has none.
  func tokens(_ words: Words, _ exchange: Exchange) async -> Tokens? {
    let routes = TokenPage.routes(exchange)
    // The page works without them.
    guard let caller = try? await driver.caller(exchange) else { return nil }
    let all = (try? await driver.engine.personalTokens(client: caller).get()) ?? []
    guard !routes.isEmpty || !all.isEmpty else { return nil }
    let now = driver.engine.now
    let items = all.map { token in
      Token(
        id: token.id, name: token.name, expires: token.expiresAt?.text, isOver: token.isExpired(at: now),
        used: token.lastUsedAt?.text,
        from: token.lastUsedFrom, label: "\(words["remove_item"]): \(token.name)")
    }
    return Tokens(items: items, hasItems: !items.isEmpty, routes: routes, hasRoutes: !routes.isEmpty)
  }

  /// Revokes a token of the user.
  func revokeToken(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard let id = form["token"] else { throw exchange.refusal(.badRequest) }
    switch await driver.engine.revokeToken(id, client: try await driver.caller(exchange)) {
    case .success: return exchange.redirect(to: "/auth/account?done=token_revoked")
    case .failure(let refusal):
      // It was already revoked in another tab.
      guard refusal.code == .notFound else { throw refusal }
      return exchange.redirect(to: "/auth/account?done=gone")
    }
  }
}
