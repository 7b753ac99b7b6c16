/// The templates of pages.
package enum PageTemplate: String, CaseIterable {
  case account, app, choose, code, contact, delete, device, leave, login, logout, message, outbox, password, pin, post,
    step, token, wait

  /// The type of the template's model.
  var model: any PageModel.Type {
    switch self {
    case .account: AccountModel.self
    case .app: AppModel.self
    case .choose: ChooseModel.self
    case .code: CodeModel.self
    case .contact: ContactModel.self
    case .delete: DeleteModel.self
    case .device: DeviceModel.self
    case .leave: LeaveModel.self
    case .login: SignInModel.self
    case .logout: LogoutModel.self
    case .message: MessageModel.self
    case .outbox: OutboxModel.self
    case .password: PasswordModel.self
    case .pin: PINModel.self
    case .post: PostModel.self
    case .step: StepModel.self
    case .token: TokenModel.self
    case .wait: WaitModel.self
    }
  }
}

/// The model of a template. It is never decoded from data: its compiler-generated `Decodable` conformance provides its
/// member names (`ModelShape`), with which operators' templates are checked.
package protocol PageModel: Decodable {
  static var template: PageTemplate { get }
  /// Whether a page of a sign-in may be shown in frames of other sites (`Exchange.frames`).
  static var isForFrames: Bool { get }
}

extension PageModel {
  package static var isForFrames: Bool { false }
}
