/// The templates of pages.
enum PageTemplate: String, CaseIterable {
  case account, choose, code, contact, delete, leave, login, logout, message, outbox, password, pin, step, token, wait

  /// The type of the template's model.
  var model: any PageModel.Type {
    switch self {
    case .account: AccountPage.Model.self
    case .choose: ChoosePage.Model.self
    case .code: CodeModel.self
    case .contact: ContactPage.Model.self
    case .delete: AccountEndPage.Model.self
    case .leave: LeavePage.self
    case .login: SignInModel.self
    case .logout: LogoutPage.Model.self
    case .message: MessagePage.self
    case .outbox: OutboxCalls.Model.self
    case .password: PasswordForm.Model.self
    case .pin: PINPage.Model.self
    case .step: StepModel.self
    case .token: TokenPage.Model.self
    case .wait: WaitModel.self
    }
  }

  /// The names that a built-in template can use besides the words: for a page, its model and the layout; for an
  /// included template, those of all pages.
  static func names(in template: String) -> ModelShape {
    let own = Self(rawValue: template).map { [$0] } ?? allCases
    return own.map { ModelShape(of: $0.model) }.reduce(
      ModelShape(members: ["frame": ModelShape(of: PageRenderer.Frame.self)])
    ) { $0.merging($1) }
  }
}

/// The model of a template. It is never decoded from data: its compiler-generated `Decodable` conformance provides its
/// member names (`ModelShape`), with which operators' templates are checked.
protocol PageModel: Decodable {
  static var template: PageTemplate { get }
}
