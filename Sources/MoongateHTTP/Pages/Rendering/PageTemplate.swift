/// The pages, by their templates.
enum PageTemplate: String, CaseIterable {
  case account, choose, code, contact, delete, leave, login, logout, message, outbox, password, pin, step, token, wait

  /// What is shown by it.
  var model: any PageModel.Type {
    switch self {
    case .account: AccountPage.Model.self
    case .choose: ChoosePage.Model.self
    case .code: CodeModel.self
    case .contact: ContactPage.Model.self
    case .delete: AccountEndPage.Model.self
    case .leave: LeavePage.self
    case .login: EntranceModel.self
    case .logout: LogoutPage.Model.self
    case .message: MessagePage.self
    case .outbox: OutboxCalls.Model.self
    case .password: PasswordForm.Model.self
    case .pin: PadPage.Model.self
    case .step: StepModel.self
    case .token: TokenPage.Model.self
    case .wait: WaitModel.self
    }
  }

  /// What can be named in a template of ours, beside the words: on a page its own and the frame's; in what pages
  /// include, that of all of them.
  static func names(in template: String) -> ModelShape {
    let own = Self(rawValue: template).map { [$0] } ?? allCases
    return own.map { ModelShape(of: $0.model) }.reduce(
      ModelShape(members: ["frame": ModelShape(of: PageRenderer.Frame.self)])
    ) { $0.merging($1) }
  }
}

/// What a template shows. It is decoded from nothing ever: by its `Decodable`, which the compiler writes, its names are
/// known without one of it (`ModelShape`), so that a template of an operator's can be held against them.
protocol PageModel: Decodable {
  static var template: PageTemplate { get }
}
