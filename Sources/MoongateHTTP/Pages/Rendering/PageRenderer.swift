import HTTPTypes
import Hummingbird
import Logging
import MoongateCore
import MoongateSDK
import Mustache
import Synchronization

/// Renders pages from templates, a layout, a stylesheet and small scripts, which are part of the program, with the
/// overrides of the operator's `pages/`. Every page works without scripts.
package final class PageRenderer: Sendable {
  /// The names that templates can use: words as `w`, the layout as `frame`, and the page's own model.
  private struct Root: MustacheParent {
    let words: Words
    private let frame: [String: Any]
    private let fields: [String: Any]

    init(words: Words, frame: PageFrame, model: Any) {
      self.words = words
      self.frame = Self.fields(of: frame)
      fields = Self.fields(of: model)
    }

    /// All members at once, including nested ones, because a mirror for each lookup would dominate the cost of a page.
    /// Nil values are left out.
    private static func fields(of model: Any) -> [String: Any] {
      var fields: [String: Any] = [:]
      for child in Mirror(reflecting: model).children {
        if let name = child.label, let value = value(of: child.value) { fields[name] = value }
      }
      return fields
    }

    private static func value(of part: Any) -> Any? {
      if let text = part as? String { return escapable(text) }
      if part is Bool { return part }
      let mirror = Mirror(reflecting: part)
      return switch mirror.displayStyle {
      case .optional: mirror.children.first.flatMap { value(of: $0.value) }
      case .collection: mirror.children.compactMap { value(of: $0.value) }
      case .struct: fields(of: part)
      default: part
      }
    }

    /// The text in a form that Mustache escapes completely.
    ///
    /// Attack: Mustache compares whole characters. `<` after U+0600, or `"` before a combining accent, is a part of
    /// another character and would stay as it is, so that a link puts tags on a page.
    private static func escapable(_ text: String) -> String {
      let special: Set<Unicode.Scalar> = ["<", ">", "&", "\"", "'"]
      guard text.utf8.contains(where: { $0 >= 0x80 }),
        text.contains(where: { $0.unicodeScalars.count > 1 && $0.unicodeScalars.contains(where: special.contains) })
      else { return text }
      var scalars = String.UnicodeScalarView()
      for character in text {
        let isMixed =
          character.unicodeScalars.count > 1 && character.unicodeScalars.contains(where: special.contains)
        scalars += character.unicodeScalars.filter { !isMixed || special.contains($0) }
      }
      return String(scalars)
    }

    func child(named name: String) -> Any? {
      switch name {
      case "w": words
      case "frame": frame
      default: fields[name]
      }
    }
  }

  /// The sets of the latest generations, newest last. Open pages may still request assets of an earlier one.
  private let made = Mutex<[(generation: String, set: PageSet)]>([])
  private static let most = 4
  private let logger: Logger
  private let events: String?

  /// - Parameter events: where the scripts of pages report what only the browser knows; nil: they do not.
  /// - Throws: if a built-in template cannot be parsed. A test covers this.
  package init(logger: Logger, events: String? = nil) throws {
    self.logger = logger
    self.events = events
    let own = PageSet.faults
    if let fault = own.first { throw BrokenPage(problem: fault) }
  }

  /// A built-in page that cannot be rendered.
  private struct BrokenPage: Error {
    let problem: String
  }

  /// The problems of an operator's `pages/`, and of the languages in gateway.lua.
  package static func problems(of files: [PageFile], gateway: GatewaySettings? = nil) -> [ConfigurationProblem] {
    let languages = gateway.map { unknownLanguages($0, files) } ?? []
    guard !files.isEmpty else { return languages }
    let set = PageSet(files, brand: Brand())
    return set.problems + set.errorTemplates.sorted().compactMap { problem(ofErrorTemplate: $0, in: set) } + languages
  }

  /// The problem of a template of `error_pages` that shows nothing, or too much.
  private static func problem(ofErrorTemplate name: String, in set: PageSet) -> ConfigurationProblem? {
    let frame = PageFrame(
      title: ErrorModel.sample.title, service: "Wallet", language: "en", direction: "ltr", base: set.base,
      hasBrandStyle: false, logo: nil, app: nil, support: nil, terms: nil, privacy: nil, hasLegal: false, languages: [],
      languageName: "English", hasChoice: false, hasMenu: false, hasScript: false, events: nil, kind: errorKind)
    let root = Root(words: set.languages[0], frame: frame, model: ErrorModel.sample)
    guard errorText(name, root, set) == nil else { return nil }
    return ConfigurationProblem(
      location: SourceLocation(file: "pages/\(name).mustache", line: 0), path: "",
      message: "shows nothing, or more than \(largestErrorPage / 1024) KiB")
  }

  /// The tags of the built-in languages.
  package static let shippedLanguages = ShippedWords.files.map(\.tag)

  /// Reports languages that are neither built in nor in the files.
  private static func unknownLanguages(_ gateway: GatewaySettings, _ files: [PageFile]) -> [ConfigurationProblem] {
    let shipped = shippedLanguages
    return gateway.languages.filter { tag in !shipped.contains(tag) && !files.contains { $0.name == tag + ".words" } }
      .map { tag in
        ConfigurationProblem(
          location: gateway.locations["languages"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "languages",
          message:
            "no translation for \"\(tag)\": add pages/\(tag).words, or choose from \(shipped.joined(separator: ", "))"
        )
      }
  }

  func set(of generation: any PolicyGeneration) -> PageSet {
    made.withLock { made in
      if let known = made.last(where: { $0.generation == generation.id }) { return known.set }
      let brand = generation.gateway.brand
      let languages = generation.gateway.languages
      let set =
        made.last { $0.set.isMade(of: generation.pages, brand: brand, languages: languages) }?.set
        ?? PageSet(generation.pages, brand: brand, languages: languages)
      made.append((generation.id, set))
      if made.count > Self.most { made.removeFirst() }
      return set
    }
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.asset, .get, "/auth/assets/{}/{}") { [self] exchange throws(Refusal) in
        let (version, name) = (exchange.parameters[0], exchange.parameters[1])
        let current = set(of: exchange.generation)
        let kept = made.withLock { made in made.last { $0.set.version == version }?.set }
        // A page of a forgotten generation gets the current assets, but must not cache them under the old name.
        guard let asset = (kept ?? current).asset(name) else { throw exchange.refusal(.notFound) }
        let packed = Gzip.isAccepted(exchange.request.headers[values: .acceptEncoding]) ? asset.packed : nil
        var response = Response.plain(.ok, type: asset.type, packed ?? asset.bytes)
        if packed != nil { response.headers[.contentEncoding] = "gzip" }
        response.headers[.vary] = "Accept-Encoding"
        if kept != nil { response.headers[.cacheControl] = "public, max-age=31536000, immutable" }
        // An operator's picture that is opened as a page must not run scripts.
        response.headers.set("Content-Security-Policy", to: "default-src 'none'; style-src 'unsafe-inline'; sandbox")
        return response
      }
    ]
  }

  /// The words in the language of the request.
  package func words(_ exchange: Exchange) -> Words {
    words(exchange.request, set(of: exchange.generation)).withTranslations(
      of: exchange.pages.compactMap(\.descriptor.words))
  }

  func words(_ request: Request, _ set: PageSet) -> Words {
    LanguageChoice.choose(request, chosen: Self.chosen(request), among: set.languages) ?? set.languages[0]
  }

  /// The parameter with the language that an app asks for.
  package static let appLanguage = "app_language"

  private static func chosen(_ request: Request) -> String? {
    let fields = query(request)
    return fields?["language"] ?? fields?[appLanguage]
  }

  private static func query(_ request: Request) -> FormFields? {
    let target = (request.head.path ?? "").utf8
    guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return nil }
    return FormFields(target[target.index(after: mark)...])
  }

  /// A page with its headers. More than five parameters: most are options with defaults.
  /// - Parameters:
  /// - model: the values for the template, which escapes text.
  /// - provider: the words of the page's provider, which override those of the page.
  /// - kind: the page's kind for scripts and the stylesheet, if it is not the template's name.
  /// - refusal: the refusal that the page shows. The page has its status and its headers.
  /// - status: the status of a page without a refusal.
  /// - address: the address of the page in another language; nil: that of the request.
  /// - isTypedInto: whether the page has a form `typed` that its path shows again in another language
  ///   (`Exchange.isSwitch`). Input is sent in the form's body, never in a URL, which browsers and proxies store.
  package func page<Model: PageModel>(
    _ model: Model, title: String, of provider: StepWords? = nil, kind: String? = nil, refusal: Refusal? = nil,
    status: HTTPResponse.Status = .ok, at address: String? = nil, isTypedInto: Bool = false, _ exchange: Exchange
  ) -> Response {
    page(
      model, title: { _ in title }, of: provider, kind: kind, refusal: refusal, status: status, at: address,
      isTypedInto: isTypedInto, for: exchange.receivingApp, in: Model.isForFrames ? exchange.frames : [],
      exchange.request, exchange.generation)
  }

  /// More than five parameters: most are options with defaults.
  /// - Parameters:
  ///   - app: the app that receives the result of the page's flow.
  ///   - frames: the origins of the sites that may show the page in a frame.
  func page<Model: PageModel>(
    _ model: Model, title: (Words) -> String, of provider: StepWords? = nil, kind: String? = nil,
    refusal: Refusal? = nil, status: HTTPResponse.Status = .ok, at address: String? = nil, isTypedInto: Bool = false,
    for app: ReceivingApp? = nil, in frames: [String] = [], _ request: Request, _ generation: any PolicyGeneration
  ) -> Response {
    let template = Model.template.rawValue
    let set = set(of: generation)
    let words = words(request, set).withTranslations(of: provider)
    let frame = frame(
      title(words), words, set, generation.gateway,
      languages: languages(set, words, at: address ?? request.head.path ?? "/", isTypedInto),
      kind: kind ?? template, for: app)
    let text = text(template, Root(words: words, frame: frame, model: model), set)
    var response = Response.plain(
      refusal?.code.httpStatus ?? status, type: "text/html; charset=utf-8", Array(text.utf8))
    let isAnswer = Model.template == .post
    response.restrictPage(Self.policy(generation, images: set.logoOrigin, for: app, isAnswer: isAnswer), in: frames)
    response.headers.set("Cross-Origin-Opener-Policy", to: "same-origin")
    response.headers.set("Vary", to: "Cookie, Accept, Accept-Language")
    response.headers[.contentLanguage] = words.tag
    if Self.chosen(request) == words.tag {
      let isByUser = Self.query(request)?["language"] != nil
      let isSecure = generation.gateway.publicURL.isSecure
      response.setCookies([LanguageChoice.keep(words, isByUser: isByUser, isSecure: isSecure)])
    }
    if let refusal { response.addRefusalHeaders(refusal) }
    return response
  }

  /// The page as text, for the proxy, which writes its own headers and allows no scripts.
  func html<Model: PageModel>(
    _ model: Model, title: (Words) -> String, in words: Words, generation: any PolicyGeneration
  ) -> String {
    let template = Model.template.rawValue
    let set = set(of: generation)
    let frame = frame(title(words), words, set, generation.gateway, languages: [], hasScript: false, kind: template)
    return text(template, Root(words: words, frame: frame, model: model), set)
  }

  /// A refusal by a template of `error_pages`, for the proxy.
  /// - Parameter folder: the folder of the templates.
  /// - Returns: nil if no template of the folder is for the status, or if it shows nothing or too much.
  func html(_ model: ErrorModel, in folder: String, _ words: Words, generation: any PolicyGeneration) -> String? {
    let set = set(of: generation)
    guard let template = set.errorTemplate(in: folder, status: model.status) else { return nil }
    let frame = frame(
      model.title, words, set, generation.gateway, languages: [], hasScript: false, kind: Self.errorKind)
    if let text = Self.errorText(template, Root(words: words, frame: frame, model: model), set) { return text }
    logger.error(
      "a template of error_pages shows nothing or too much; using the built-in page", metadata: ["page": "\(template)"])
    return nil
  }

  /// The kind of these pages for the stylesheet.
  private static let errorKind = PageTemplate.message.rawValue
  /// The maximum size of such a page, in bytes.
  private static let largestErrorPage = 256 * 1024

  private static func errorText(_ template: String, _ root: Root, _ set: PageSet) -> String? {
    guard let text = set.library.render(root, withTemplate: template), text.utf8.count <= largestErrorPage,
      text.contains(where: { !$0.isWhitespace })
    else { return nil }
    return text
  }

  /// The built-in pages.
  private static let own = PageSet([], brand: Brand())

  /// An operator's template that renders only white space is replaced by the built-in one, so that users never see a
  /// blank page.
  private func text(_ template: String, _ root: Root, _ set: PageSet) -> String {
    if let text = set.library.render(root, withTemplate: template), text.contains(where: { !$0.isWhitespace }) {
      return text
    }
    logger.error("a template of pages/ is empty; using the built-in template", metadata: ["page": "\(template)"])
    return Self.own.library.render(root, withTemplate: template) ?? ""
  }

  /// More than five parameters: the members of the frame that differ between pages.
  private func frame(
    _ title: String, _ words: Words, _ set: PageSet, _ gateway: GatewaySettings, languages: [PageFrame.Language],
    hasScript: Bool = true, kind: String, for app: ReceivingApp? = nil
  ) -> PageFrame {
    PageFrame(
      title: title, service: gateway.brand.name ?? gateway.service, language: words.tag, direction: words.direction,
      base: set.base,
      hasBrandStyle: set.hasBrandStyle, logo: set.logo, app: app.map { words.text("app_for", ["app": $0.name]) },
      support: gateway.brand.support, terms: gateway.brand.terms,
      privacy: gateway.brand.privacy, hasLegal: gateway.brand.terms != nil || gateway.brand.privacy != nil,
      languages: languages,
      languageName: words.language, hasChoice: languages.count > 1, hasMenu: languages.count > Self.maxPerRow,
      hasScript: hasScript, events: hasScript ? events : nil, kind: kind)
  }

  /// The maximum number of languages in a row at the bottom of a page. More languages are shown as a menu.
  private static let maxPerRow = 3

  /// The query parameters that links to other languages keep.
  private static let carried = [
    "id", "flow", "with", "phone", "region", "return_to", "done", "refused", "item", "offer", "app", "request",
    "user_code",
  ]

  /// The same page in each language. Only the error page keeps `code`: elsewhere, `code` comes from another site, and
  /// links must not repeat it. Requests of apps are kept whole.
  private func languages(_ set: PageSet, _ current: Words, at address: String, _ isTypedInto: Bool) -> [PageFrame
    .Language]
  {
    let target = address.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let fields = target.count < 2 ? [] : target[1].split(separator: "&").map(String.init)
    let isError = target[0] == PagePath.error
    let isOfApp = target[0].hasPrefix(PagePath.openID)
    let kept = fields.filter { field in
      if isOfApp { return !["language=", Self.appLanguage + "="].contains(where: field.hasPrefix) }
      if isError, field.hasPrefix("code=") { return RefusalCode(reserved: String(field.dropFirst(5))) != nil }
      return (Self.carried + (isError ? ["decision"] : [])).contains { field.hasPrefix($0 + "=") }
    }
    return set.languages.map { words in
      PageFrame.Language(
        tag: words.tag, name: words.language,
        address: "\(target[0])?" + (kept + ["language=\(words.tag)"]).joined(separator: "&"),
        isCurrent: words.tag == current.tag, takesForm: isTypedInto)
    }
  }

  /// The policy that protects a page from injected markup.
  ///
  /// `form-action` lists the possible targets after a sign-in, because browsers also apply it to redirects of a form
  /// (Content Security Policy Level 3, section 6.4.1).
  /// - Parameters:
  ///   - app: the app that receives the result of the page's flow. Only pages of such a flow lead there.
  ///   - isAnswer: whether the page posts the answer to the app, which may redirect to any site of its own.
  private static func policy(
    _ generation: any PolicyGeneration, images: String?, for app: ReceivingApp? = nil, isAnswer: Bool = false
  ) -> String {
    let gateway = generation.gateway
    let targets = RedirectTargets(
      publicURL: gateway.publicURL, redirectHosts: gateway.redirectHosts, routes: generation.routes)
    let receivers = (app.map { [$0.receiver] } ?? []) + (isAnswer ? ["https:"] : [])
    let actions = (["'self'"] + targets.allowedOrigins + receivers).joined(separator: " ")
    let pictures = (["'self'"] + (images.map { [$0] } ?? [])).joined(separator: " ")
    return
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src \(pictures); connect-src 'self'; form-action \(actions); base-uri 'none'"
  }
}
