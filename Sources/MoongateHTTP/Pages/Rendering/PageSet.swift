import Crypto
import HTTPTypes
import MoongateCore
import MoongateSDK
import Mustache

/// The templates, words and assets of one generation: the built-in files with the operator's overrides.
struct PageSet: Sendable {
  /// A file that pages link to. The version in its path changes with the content of all assets, so browsers may cache
  /// it forever.
  struct Asset: Sendable {
    let type: String
    let bytes: [UInt8]
    /// The content as gzip; nil if it is hardly shorter.
    let packed: [UInt8]?

    init(type: String, bytes: [UInt8]) {
      self.type = type
      self.bytes = bytes
      packed = Gzip.pack(bytes)
    }
  }

  /// The inputs of the set.
  private let overrides: [PageFile]
  private let brand: Brand
  private let offered: [String]

  let library: MustacheLibrary
  /// The names of the templates of `error_pages` in the library, such as `errors/403`.
  let errorTemplates: Set<String>
  /// The offered languages in the operator's order. The first is the default. Never empty.
  let languages: [Words]
  private let assets: [String: Asset]
  /// A hash of all assets.
  let version: String
  /// The address of the operator's logo; nil: the built-in one.
  let logo: String?
  /// The origin of a logo on another site.
  let logoOrigin: String?
  /// Whether there is a stylesheet with the brand's colour.
  let hasBrandStyle: Bool
  /// The problems of the operator's files. Built-in files replace files with problems.
  let problems: [ConfigurationProblem]

  /// `/auth/assets/VERSION`.
  var base: String { "/auth/assets/\(version)" }

  /// Whether a set from these inputs would be the same.
  func isMade(of overrides: [PageFile], brand: Brand, languages: [String]) -> Bool {
    self.overrides == overrides && self.brand == brand && offered == languages
  }

  func asset(_ name: String) -> Asset? { assets[name] }

  /// The embedded templates and assets.
  static let builtIn: [(name: String, bytes: [UInt8])] = [
    ("account.mustache", PackageResources.account_mustache), ("alert.mustache", PackageResources.alert_mustache),
    ("app.mustache", PackageResources.app_mustache), ("ceremony.mustache", PackageResources.ceremony_mustache),
    ("choose.mustache", PackageResources.choose_mustache),
    ("code.mustache", PackageResources.code_mustache), ("contact.mustache", PackageResources.contact_mustache),
    ("delete.mustache", PackageResources.delete_mustache), ("device.mustache", PackageResources.device_mustache),
    ("layout.mustache", PackageResources.layout_mustache),
    ("leave.mustache", PackageResources.leave_mustache), ("login.mustache", PackageResources.login_mustache),
    ("logout.mustache", PackageResources.logout_mustache), ("message.mustache", PackageResources.message_mustache),
    ("outbox.mustache", PackageResources.outbox_mustache), ("password.mustache", PackageResources.password_mustache),
    ("pin.mustache", PackageResources.pin_mustache), ("post.mustache", PackageResources.post_mustache),
    ("shown.mustache", PackageResources.shown_mustache), ("site.mustache", PackageResources.site_mustache),
    ("step.mustache", PackageResources.step_mustache),
    ("token.mustache", PackageResources.token_mustache), ("wait.mustache", PackageResources.wait_mustache),
    ("logo.mustache", PackageResources.logo_mustache),
    ("style.css", PackageResources.style_css), ("icon.svg", PackageResources.icon_svg),
    ("page.js", PackageResources.page_js), ("say.js", PackageResources.say_js), ("form.js", PackageResources.form_js),
    ("clock.js", PackageResources.clock_js), ("code.js", PackageResources.code_js),
    ("ceremony.js", PackageResources.ceremony_js), ("dialog.js", PackageResources.dialog_js),
    ("events.js", PackageResources.events_js), ("phone.js", PackageResources.phone_js),
    ("countries.js", PackageResources.countries_js),
    ("pad.js", PackageResources.pad_js), ("times.js", PackageResources.times_js),
    ("outbox.js", PackageResources.outbox_js),
    ("wait.js", PackageResources.wait_js), ("eye.js", PackageResources.eye_js), ("keep.js", PackageResources.keep_js),
    ("boxes.js", PackageResources.boxes_js), ("typed.js", PackageResources.typed_js),
    ("languages.mustache", PackageResources.languages_mustache),
  ]

  private static let types: KeyValuePairs<String, String> = [
    "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
    "png": "image/png", "jpg": "image/jpeg",
    "jpeg": "image/jpeg", "webp": "image/webp",
  ]

  /// - Parameter offered: the tags of the offered languages; empty: English, Hindi and the languages of the overrides.
  init(_ overrides: [PageFile], brand: Brand, languages offered: [String] = []) {
    self.overrides = overrides
    self.brand = brand
    self.offered = offered
    var (files, added, problems) = Self.merge(overrides.filter(\.folder.isEmpty))
    languages = Self.languages(added, offered) { problems.append($0.problem($1, $2)) }
    let errors = Self.errorTemplates(overrides) { problems.append($0.problem($1, $2)) }
    self.problems = problems
    errorTemplates = Set(errors.map(\.name))
    var library = MustacheLibrary()
    for (name, bytes) in files where name.hasSuffix(".mustache") {
      // Invalid templates were removed above. A test covers the built-in ones.
      try? library.register(String(decoding: bytes, as: UTF8.self), named: String(name.dropLast(9)))
    }
    for (name, text) in errors { try? library.register(text, named: name) }
    self.library = library

    var assets = Self.assets(of: files, languages, brand)
    hasBrandStyle = assets["brand.css"] != nil
    var picture: String?
    if let file = brand.logoFile, let suffix = file.name.split(separator: ".").last?.lowercased(),
      let type = Self.types.first(where: { $0.key == suffix })?.value
    {
      picture = "brand-logo.\(suffix)"
      assets["brand-logo.\(suffix)"] = Asset(type: type, bytes: file.bytes)
    }
    self.assets = assets

    var hash = SHA256()
    for (name, asset) in assets.sorted(by: { $0.key < $1.key }) {
      hash.update(data: Array("\(name) \(asset.bytes.count)\n".utf8))
      hash.update(data: asset.bytes)
    }
    version = Base64URL.encode(Array(hash.finalize()).prefix(9))
    logo =
      picture.map { [version] in "/auth/assets/\(version)/\($0)" }
      ?? brand.logo.flatMap { $0.hasPrefix("https://") ? $0 : nil }
    logoOrigin = picture == nil ? logo.map { "https://" + $0.dropFirst(8).prefix { $0 != "/" } } : nil
  }

  /// The built-in files with the operator's valid overrides, the operator's languages, and the problems of the
  /// overrides.
  private static func merge(_ overrides: [PageFile])
    -> (files: [String: [UInt8]], languages: [PageFile], problems: [ConfigurationProblem])
  {
    var problems: [ConfigurationProblem] = []
    var files = Dictionary(builtIn.map { ($0.name, $0.bytes) }) { first, _ in first }
    var added: [PageFile] = []
    for file in overrides {
      let suffix = file.name.split(separator: ".").last.map(String.init) ?? ""
      if suffix == "words" {
        added.append(file)
      } else if suffix == "mustache", files[file.name] != nil {
        let faults = faults(of: file.bytes, for: String(file.name.dropLast(9)))
        problems += faults.map { file.problem($0.line, $0.message) }
        if faults.isEmpty { files[file.name] = file.bytes }
      } else if ["css", "js", "svg"].contains(suffix), files[file.name] != nil {
        files[file.name] = file.bytes
      } else if ["svg", "png", "jpg", "jpeg", "webp"].contains(suffix) {
        files[file.name] = file.bytes
      } else {
        let names = builtIn.map(\.name).filter { $0.hasSuffix("." + suffix) }
        problems.append(
          file.problem(
            0,
            "unknown file"
              + (names.isEmpty ? "" : "; available: \(names.sorted().joined(separator: ", "))")))
      }
    }
    for name in overrides.isEmpty ? [] : TemplateTag.endless(in: files) {
      guard let file = overrides.first(where: { $0.name == name }) else { continue }
      problems.append(file.problem(0, "includes itself, directly or through other templates"))
      files[name] = builtIn.first { $0.name == name }?.bytes
    }
    return (files, added, problems)
  }

  /// The valid templates of `error_pages`.
  private static func errorTemplates(_ files: [PageFile], _ problem: (PageFile, Int, String) -> Void)
    -> [(name: String, text: String)]
  {
    files.filter { !$0.folder.isEmpty && $0.name.hasSuffix(".mustache") }.compactMap { file in
      let faults = faults(ofErrorTemplate: file.bytes)
      for fault in faults { problem(file, fault.line, fault.message) }
      return faults.isEmpty
        ? (String(file.name.dropLast(9)), String(decoding: file.bytes, as: UTF8.self)) : nil
    }
  }

  /// The template for refusals with the status, in the folder of `error_pages`: its own, or that for all others; nil if
  /// there is neither.
  func errorTemplate(in folder: String, status: String) -> String? {
    ["\(folder)/\(status)", "\(folder)/error"].first(where: errorTemplates.contains)
  }

  /// The files that browsers load: those with a known media type, the scripts with each language's words, and the
  /// stylesheet with the brand's colour.
  private static func assets(of files: [String: [UInt8]], _ languages: [Words], _ brand: Brand) -> [String: Asset] {
    var assets: [String: Asset] = [:]
    for (name, bytes) in files {
      guard let suffix = name.split(separator: ".").last,
        let type = types.first(where: { $0.key == suffix })?.value
      else { continue }
      assets[name] = Asset(type: type, bytes: bytes)
    }
    for words in languages {
      assets["words-\(words.tag).js"] = Asset(type: "text/javascript; charset=utf-8", bytes: words.script)
    }
    if let colour = brand.primary, colour.lowercased() != "#0d7377", let brand = BrandColour(colour) {
      assets["brand.css"] = Asset(type: "text/css; charset=utf-8", bytes: Array(brand.stylesheet.utf8))
    }
    return assets
  }

  /// The problems of built-in templates. A test asserts that this is empty.
  static let faults: [String] = builtIn.filter { $0.name.hasSuffix(".mustache") }.flatMap { file in
    faults(of: file.bytes, for: String(file.name.dropLast(9))).map { "\(file.name):\($0.line): \($0.message)" }
  }

  /// The templates that a template can include.
  private static let templates = Set(
    builtIn.map(\.name).filter { $0.hasSuffix(".mustache") }.map { String($0.dropLast(9)) })
  /// The words that a template can use.
  private static let names = Set(
    Words(tag: "en", base: nil, String(decoding: PackageResources.en_words, as: UTF8.self), known: nil) { _, _ in }
      .texts.keys)

  /// The problems of a template: syntax errors, or else unknown names, which Mustache would silently render as nothing.
  /// - Parameter name: the built-in template that it replaces.
  private static func faults(of template: [UInt8], for name: String) -> [(line: Int, message: String)] {
    faults(of: template, PageTemplate.names(in: name))
  }

  private static func faults(of template: [UInt8], _ shape: ModelShape) -> [(line: Int, message: String)] {
    guard let text = String(validating: template, as: UTF8.self) else { return [(0, "is not UTF-8")] }
    do {
      _ = try MustacheTemplate(string: text)
    } catch let error as MustacheTemplate.ParserError {
      return [(error.context.lineNumber, sentence(error.error))]
    } catch {
      return [(0, "cannot be read: \(error)")]
    }
    return TemplateNames(templates: templates, words: names, shape: shape).missing(in: TemplateTag.all(in: text))
  }

  /// The maximum size of a template of `error_pages`, in bytes. Attack: a flood of refused requests gets a page for
  /// each.
  private static let largestErrorTemplate = 64 * 1024

  private static func faults(ofErrorTemplate bytes: [UInt8]) -> [(line: Int, message: String)] {
    guard bytes.count <= largestErrorTemplate else {
      return [(0, "is larger than \(largestErrorTemplate / 1024) KiB")]
    }
    let faults = faults(of: bytes, ModelShape(of: ErrorModel.self).merging(PageTemplate.frame))
    guard faults.isEmpty else { return faults }
    // Attack: the sentence of a policy repeats a part of the request, such as its path, with tags of the attacker.
    return TemplateTag.unescaped(in: String(decoding: bytes, as: UTF8.self)).map { line in
      (line, "this tag turns escaping off: write {{name}}")
    }
  }

  private static func sentence(_ error: any Error) -> String {
    switch error as? MustacheTemplate.Error {
    case .sectionCloseNameIncorrect: "the closing tag of this section does not match its opening tag"
    case .expectedSectionEnd: "a section is not closed"
    case .unfinishedName: "a tag has no end: `}}` is missing"
    default: "this cannot be read as Mustache: \(error)"
    }
  }

  private static func languages(_ files: [PageFile], _ offered: [String], _ problem: (PageFile, Int, String) -> Void)
    -> [Words]
  {
    var english = Words(tag: "en", base: nil, String(decoding: PackageResources.en_words, as: UTF8.self), known: nil) {
      _, _ in
    }
    let known = Set(english.texts.keys)
    if let file = files.first(where: { $0.name == "en.words" }) {
      english = Words(tag: "en", base: english, String(decoding: file.bytes, as: UTF8.self), known: known) {
        problem(file, $0, $1)
      }
    }
    func shipped(_ tag: String) -> Words? {
      ShippedWords.text(of: tag).map { Words(tag: tag, base: english, $0, known: nil) { _, _ in } }
    }
    var all = ["en": english]
    var order = ShippedWords.files.map(\.tag)
    for file in files where file.name != "en.words" {
      let tag = String(file.name.dropLast(6))
      guard isTag(tag) else {
        problem(file, 0, "must be named after its language, such as fr.words")
        continue
      }
      all[tag] = Words(
        tag: tag, base: shipped(tag) ?? english, String(decoding: file.bytes, as: UTF8.self), known: known
      ) {
        problem(file, $0, $1)
      }
      if !order.contains(tag) { order.append(tag) }
    }
    let languages = (offered.isEmpty ? order : offered).compactMap { all[$0] ?? shipped($0) }
    return languages.isEmpty ? [english] : languages
  }

  /// Whether the text has the form of a language tag (BCP 47).
  static func isTag(_ text: String) -> Bool { text.wholeMatch(of: /[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*/) != nil }
}

extension PageFile {
  /// - Parameter line: the line; 0 for the whole file.
  fileprivate func problem(_ line: Int, _ message: String) -> ConfigurationProblem {
    ConfigurationProblem(location: SourceLocation(file: path, line: line), path: "", message: message)
  }
}
