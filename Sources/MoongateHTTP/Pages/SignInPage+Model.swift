import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

extension SignInPage {
  /// - Parameter status: the status of a page without a refusal.
  func page(
    _ form: SignInForm, _ exchange: Exchange, refusal: Refusal? = nil, status: HTTPResponse.Status = .ok
  ) -> Response {
    let words = pages.words(exchange)
    let isLogin = kind == .login
    let identifier = identifierLabel(form, exchange)
    let name = isLogin ? "login" : "register"
    let (heading, subtitle) = titles(form, identifier)
    let here = kind.path
    let address = exchange.keepingOffer(
      FormFields.address(
        here,
        [
          "id": form.id, "with": parameter(form.method, here, form, exchange), "flow": form.flow,
          "return_to": form.returnTo, "refused": form.refused,
          "by": form.refusedBy, OfferedPage.exposure: form.exposed,
        ]))
    let (methods, forms) = methodLinks(form, words, exchange)
    let forgotten =
      form.method == .email && isOffered(.reset, form.flow, exchange)
      ? self.address(of: .reset, here, form, exchange) : nil
    let other = otherLink(name, form, words, exchange)
    let last = form.method == .reset ? nil : lastProvider(form.flow, exchange)
    let (sites, lastSites) = siteButtons(form, last, words, exchange)
    let (ceremonies, lastCeremonies) = self.ceremonies(form, last, words, exchange)
    let model = SignInModel(
      heading: words[heading], subtitle: words[subtitle], action: here, isLogin: isLogin,
      isPhone: form.method == .phone, isEmail: form.method == .email,
      isAddress: form.method == .code || form.method == .reset, way: form.method.rawValue, id: form.id, flow: form.flow,
      returnTo: form.returnTo,
      phone: form.shownPhone, region: form.region ?? exchange.gateway.region,
      callingCode: exchange.callingCode(form.region ?? exchange.gateway.region), email: form.email,
      firstName: form.firstName,
      lastName: form.lastName, offersRemember: offersRemembering(form, exchange), isRemembered: form.isRemembered,
      hasNames: !isLogin && form.method == .email, identifierLabel: words[identifier],
      takesName: identifier != "email", code: form.code, problem: form.problem,
      isCalm: form.isCalm,
      phoneIsInvalid: form.invalid == "phone",
      emailIsInvalid: form.invalid == "email" || form.invalid == InputField.userName.name,
      passwordIsInvalid: form.invalid == "password",
      wait: form.wait, waitLabel: words[form.waitsForCode ? "resend_in" : "try_again_in"],
      button: words[
        form.method == .phone
          ? "send_otp" : form.method == .email ? (isLogin ? "log_in" : "create_account") : "send_code"],
      sites: sites, hasSites: !sites.isEmpty, ceremonies: ceremonies,
      hasCeremonies: !(ceremonies + lastCeremonies).isEmpty,
      isLast: last != nil && lastMethod(form.flow, exchange) == form.method, lastSites: lastSites,
      lastCeremonies: lastCeremonies, ways: methods, forms: forms,
      forgotten: forgotten,
      offer: form.offersOther ? other : nil, other: form.method == .reset ? nil : other,
      isArrival: form.isArrival,
      stressesSupport: form.stressesSupport)
    let title = form.method == .reset || form.method == .code ? words[heading] : words[name + "_page"]
    return pages.page(
      model, title: title, kind: name, refusal: refusal, status: status, at: address, isTypedInto: true, exchange)
  }

  /// The link to the page of registration or sign-in, whichever this is not; nil if that page offers nothing.
  /// - Parameter name: what the names of its words begin with.
  private func otherLink(_ name: String, _ form: SignInForm, _ words: Words, _ exchange: Exchange) -> SignInModel.Link?
  {
    let isLogin = kind == .login
    let isOffered =
      isLogin
      ? exchange.generation.registers && SignInPage(.register, driver, pages).offersAnything(nil, exchange)
      : exchange.generation.flows[FlowPurpose.signIn.usualName] != nil
    guard isOffered else { return nil }
    return SignInModel.Link(
      label: words[name + "_other"],
      address: address(
        of: form.method == .email || form.method == .code ? .email : nil,
        isLogin ? PagePath.register : PagePath.signIn, form, exchange),
      question: words[name + "_question"])
  }

  /// The words of the heading and of the sentence below it.
  private func titles(_ form: SignInForm, _ identifier: String) -> (heading: String, subtitle: String) {
    switch form.method {
    case .reset where form.exposed != nil: ("exposed_title", "exposed_subtitle")
    case .reset where form.isSignedIn: ("reset_code_title", "reset_subtitle")
    case .reset: ("reset_title", "reset_subtitle")
    case .code: ("code_title", "code_subtitle")
    case .email where kind != .login:
      ("register_title", identifier == "email" ? "register_email_subtitle" : "register_name_subtitle")
    default: kind == .login ? ("login_title", "login_subtitle") : ("register_title", "register_subtitle")
    }
  }

  /// The word for what the field of the page takes: an email address, a user name, or either.
  func identifierLabel(_ form: SignInForm, _ exchange: Exchange) -> String {
    guard form.method == .email, let provider = entry(.email, form.flow, exchange)?.provider, provider.takes(.name)
    else { return "email" }
    return provider.takes(.email) ? "name_or_email" : "user_name"
  }

  /// The parameter `with` of an address for a method. The default method needs none, unless another one is remembered.
  private func parameter(_ method: SignInMethod?, _ path: String, _ form: SignInForm, _ exchange: Exchange) -> String? {
    guard method == nil || method == .phone else { return method?.rawValue }
    guard path == Kind.login.path, let last = SignInPage(.login, driver, pages).lastMethod(form.flow, exchange) else {
      return nil
    }
    return last == .phone ? nil : SignInMethod.phone.rawValue
  }

  /// The address of a method on the sign-in or registration page, with the typed phone number.
  private func address(of method: SignInMethod?, _ path: String, _ form: SignInForm, _ exchange: Exchange) -> String {
    let phone = form.method == .phone ? form.shownPhone : nil
    return FormFields.address(
      path,
      [
        "with": parameter(method, path, form, exchange), "phone": phone,
        // A number without its country could belong to another person in the default country, who would receive the
        // code.
        "region": phone == nil ? nil : form.region, "flow": form.flow, "return_to": form.returnTo,
      ])
  }

  /// The links to other sign-in methods: as links, and as buttons that submit the typed address.
  private func methodLinks(_ form: SignInForm, _ words: Words, _ exchange: Exchange)
    -> (methods: [SignInModel.Link], forms: [SignInModel.Link])
  {
    var methods: [SignInModel.Link] = []
    let offer = { (method: SignInMethod, label: String) in
      if method != form.method, isOffered(method, form.flow, exchange) {
        methods.append(SignInModel.Link(label: words[label], address: address(of: method, kind.path, form, exchange)))
      }
    }
    var forms: [SignInModel.Link] = []
    switch form.method {
    case .phone:
      let takesName = entry(.email, form.flow, exchange)?.provider.takes(.name) ?? false
      offer(.email, takesName ? "use_password" : "use_email")
    case .email:
      if isOffered(.code, form.flow, exchange) {
        forms.append(
          SignInModel.Link(label: words["use_code"], address: address(of: .code, kind.path, form, exchange)))
      }
      offer(.phone, "use_phone")
    case .code, .reset:
      offer(.email, "remembered")
      offer(.phone, "use_phone")
    }
    if form.method != .reset {
      for other in links(form.flow, exchange) {
        let address = ProviderPage.stepAddress(form.flow ?? defaultFlow, with: other.name, returnTo: form.returnTo)
        methods.append(
          SignInModel.Link(
            label: other.linkLabel(words) ?? words.text("use_other", ["name": other.shortName(words)]), address: address
          ))
      }
    }
    if form.isSignedIn {
      methods = [
        form.skip.map { SignInModel.Link(label: words["skip"], address: $0) }
          ?? SignInModel.Link(label: words["cancel"], address: NextPage.back(form.returnTo))
      ]
    }
    return (methods, forms)
  }

  /// The buttons of other sites: those after the form, and the last used one.
  private func siteButtons(_ form: SignInForm, _ last: ProviderName?, _ words: Words, _ exchange: Exchange)
    -> (others: [SiteButton], last: [SiteButton])
  {
    if form.method == .reset { return ([], []) }
    let all = sites(form.flow, exchange).map { page in
      var button = SiteButton(page, words)
      button.isLast = page.name == last
      return button
    }
    return (all.filter { !$0.isLast }, all.filter(\.isLast))
  }

  /// The ceremonies: those after the form, and the last used one.
  private func ceremonies(_ form: SignInForm, _ last: ProviderName?, _ words: Words, _ exchange: Exchange)
    -> (others: [SignInCeremony], last: [SignInCeremony])
  {
    if form.method == .reset { return ([], []) }
    let flow = form.flow ?? defaultFlow
    let all = exchange.offered(first: flow).filter(isCeremony).map { page in
      let own = words.withTranslations(of: page.descriptor.words)
      return SignInCeremony(
        flow: flow, provider: page.name.rawValue, label: page.ceremonyButton.map(own.translated) ?? page.title(words),
        returnTo: form.returnTo,
        cancelled: own["ceremony_cancelled"], failed: own["ceremony_failed"], isLast: page.name == last)
    }
    return (all.filter { !$0.isLast }, all.filter(\.isLast))
  }
}

extension SiteButton {
  init(_ page: ProviderPage, _ words: Words) {
    provider = page.name.rawValue
    label = words.withTranslations(of: page.descriptor.words).translated(page.siteButton ?? page.title(words))
    if case .button(_, let icon, _)? = page.descriptor.entrance { self.icon = icon } else { icon = nil }
  }
}
