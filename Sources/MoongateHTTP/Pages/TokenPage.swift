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
          return page(TokenModel(form: nil, secret: made.secret.reveal(), routes: Self.routes(exchange)), exchange)
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
      return try exchange.redirectToSignIn(returnTo: Self.path)
    }
    guard let address = StepUpRedirect.address(after: refusal, backTo: Self.path) else { throw refusal }
    return exchange.redirect(to: address)
  }

  private func form(_ exchange: Exchange, name: String?, days: Int?, refusal: Refusal?) -> Response {
    let words = pages.words(exchange)
    let options = Self.days.map { count in
      TokenModel.Option(
        value: String(count), label: words.count(count, "days"), isChosen: count == (days ?? Self.usual))
    }
    let problem = refusal.map {
      $0.field == "name" ? words[name == nil ? "token_name_missing" : "token_name_refused"] : words.sentence(of: $0)
    }
    let form = TokenModel.Form(name: name, options: options, problem: problem, nameIsInvalid: refusal?.field == "name")
    return page(TokenModel(form: form, secret: nil, routes: Self.routes(exchange)), refusal: refusal, exchange)
  }

  private func page(_ model: TokenModel, refusal: Refusal? = nil, _ exchange: Exchange) -> Response {
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

  /// The tokens of the account; nil if no route accepts tokens and the account has none.
  func tokens(_ words: Words, _ exchange: Exchange) async -> AccountModel.Tokens? {
    let routes = TokenPage.routes(exchange)
    // The page works without them.
    guard let caller = try? await driver.caller(exchange) else { return nil }
    let all = (try? await driver.engine.personalTokens(client: caller).get()) ?? []
    guard !routes.isEmpty || !all.isEmpty else { return nil }
    let now = driver.engine.now
    let items = all.map { token in
      AccountModel.Token(
        id: token.id, name: token.name, expires: token.expiresAt?.text, isOver: token.isExpired(at: now),
        used: token.lastUsedAt?.text,
        from: token.lastUsedFrom, label: "\(words["remove_item"]): \(token.name)")
    }
    return AccountModel.Tokens(items: items, hasItems: !items.isEmpty, routes: routes, hasRoutes: !routes.isEmpty)
  }

  /// Revokes a token of the user.
  func revokeToken(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard let id = form["token"] else { throw exchange.refusal(.badRequest) }
    switch await driver.engine.revokeToken(id, client: try await driver.caller(exchange)) {
    case .success: return exchange.redirect(to: PagePath.account(done: "token_revoked"))
    case .failure(let refusal):
      // It was already revoked in another tab.
      guard refusal.code == .notFound else { throw refusal }
      return exchange.redirect(to: PagePath.account(done: "gone"))
    }
  }
}
