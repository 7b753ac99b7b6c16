import Foundation
import MoongateSDK
import Testing

/// Everything about a provider is in its own module: the gateway's sources name none of them.
@Suite struct ProviderNamesTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Names that can only mean a provider, and positions in which a word can only be a provider's name.
  private static let naming = [
    #"\b(phone_otp|google_oauth|totp|passkey|chat_code)\b"#,
    #"(?i)\b\w*google\w*|done_pin"#,
    #"'(pin|password|email_code)'|\["(pin|email_code)"\]"#,
    #"(rawValue:|rawValue ==|ProviderName =|case|provider:|provider ==|nil,|\[ProviderName\] = \[)\s*"(pin|password|email_code)""#,
  ]

  /// The words to search for first: most lines contain none of them.
  private static let words = [
    "phone_otp", "google", "Google", "totp", "passkey", "chat_code", "done_pin", "\"pin\"", "\"password\"",
    "\"email_code\"", "'pin'", "'password'",
    "'email_code'",
  ]

  /// Files that may name providers: the list of compiled-in providers, the calls of the first apps, whose contract says
  /// so, the demonstration, and the list of public mail providers.
  private static let allowed = [
    "Sources/MoongateProgram/Providers.swift", "Sources/MoongateAppAPI/", "Sources/MoongateSDK/IdentityMapping.swift",
    "Sources/DemoGoogle/", "Sources/demo-service/",
  ]

  @Test func sourcesNameNoProvider() throws {
    var found: [String] = []
    let sources = Self.root.appendingPathComponent("Sources")
    let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
    var count = 0
    for case let file as URL in files
    where ["swift", "c", "h", "mustache", "js", "css", "words"].contains(file.pathExtension) {
      let path = String(file.path.dropFirst(Self.root.path.count + 1))
      if Self.allowed.contains(where: path.hasPrefix) { continue }
      count += 1
      let source = try String(contentsOf: file, encoding: .utf8)
      guard Self.words.contains(where: source.contains) else { continue }
      for (index, line) in source.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        let text = line.trimmingCharacters(in: .whitespaces)
        guard Self.words.contains(where: { line.contains($0) }), !Self.isExample(text) else { continue }
        if Self.naming.contains(where: { text.range(of: $0, options: .regularExpression) != nil }) {
          found.append("\(path):\(index + 1): \(text)")
        }
      }
    }
    #expect(count > 300)
    #expect(found == [])
  }

  /// A comment, a help text, or a message with an example.
  private static func isExample(_ line: String) -> Bool {
    ["//", "/*", "*"].contains(where: line.hasPrefix) || line.contains("as in ") || line.contains("(help: ")
      || ["otpauth://totp/", "TOTPRecipe", "totp_of", ".totp(let recipe)", "such as `", "example: ", "let example = "]
        .contains(where: line.contains)
  }

  @Test(arguments: [
    #"case "pin": "/auth/pin""#, #"if provider.rawValue == "password" {"#,
    #"private static let google: ProviderName = "google_oauth""#,
    #"record("login_google_started");"#, #"done_pin_set = Passcode saved."#, #"let google = mount()"#,
    #"steps.begin(flow, nil, "email_code", [:])"#,
    #"try rows.run("DELETE FROM provider_record WHERE provider = 'password'")"#,
  ])
  func checkDetectsProviderNames(_ line: String) {
    #expect(!Self.isExample(line) && Self.naming.contains { line.range(of: $0, options: .regularExpression) != nil })
  }

  /// All files of a provider are in its folder.
  @Test(arguments: ["EmailCode", "LDAP", "OpenID", "PIN", "Passkey", "Password", "PhoneOTP", "TOTP"])
  func providerFolderHasAllFiles(_ name: String) throws {
    let folder = Self.root.appendingPathComponent("Plugins/\(name)")
    for file in ["README.md", "policy.lua", "words/hi.words", "Tests", "\(name).swift"] {
      #expect(FileManager.default.fileExists(atPath: folder.appendingPathComponent(file).path), "\(name)/\(file)")
    }
  }

  /// Each provider has a file for every shipped language of the pages, with the same texts.
  @Test(arguments: ["ChatCode", "EmailCode", "LDAP", "OpenID", "PIN", "Passkey", "Password", "PhoneOTP", "TOTP"])
  func aProviderSpeaksEveryLanguage(
    _ name: String
  )
    throws
  {
    let pages = Self.root.appendingPathComponent("Sources/MoongateHTTP/Pages/Templates")
    let files = try FileManager.default.contentsOfDirectory(atPath: pages.path).filter {
      $0.hasSuffix(".words") && $0 != "en.words"
    }
    #expect(files.count >= 1)
    let words = Self.root.appendingPathComponent("Plugins/\(name)/words")
    let texts = try files.sorted().map { file in
      (file, StepWords.translations(in: Array(try Data(contentsOf: words.appendingPathComponent(file)))))
    }
    let all = Set(texts.flatMap(\.1.keys))
    for (file, translations) in texts {
      #expect(all.subtracting(translations.keys).sorted() == [], "\(name)/words/\(file) lacks these")
      for (english, said) in translations {
        let braces = { (text: String) in text.matches(of: /\{\w+\}/).map { String($0.0) }.sorted() }
        #expect(braces(english) == braces(said), "\(name)/words/\(file): \(english)")
      }
    }
    let folder = Self.root.appendingPathComponent("Plugins/\(name)")
    let sources = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    guard !sources.isEmpty else { return }
    let swift = try sources.map { try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }.joined()
    #expect(swift.contains("PackageResources.translations"), "nothing in \(name) reads its words")
  }

  /// Adding a provider changes its folder, its target, and the list.
  @Test(arguments: ["EmailCode", "LDAP", "OpenID", "PIN", "Passkey", "Password", "PhoneOTP", "TOTP"])
  func theProgramNamesAProviderInItsListOnly(
    _ name: String
  )
    throws
  {
    let sources = Self.root.appendingPathComponent("Sources")
    let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
    var naming: [String] = []
    for case let file as URL in files where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      if text.range(of: "\\bimport \(name)\\b|\\b\(name)\\(\\)", options: .regularExpression) != nil {
        naming.append(String(file.path.dropFirst(Self.root.path.count + 1)))
      }
    }
    #expect(naming == ["Sources/MoongateProgram/Providers.swift"])
  }
}
