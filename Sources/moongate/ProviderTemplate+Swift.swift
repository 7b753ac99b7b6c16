import Foundation
import MoongateSDK

// A Swift package of one provider: it depends on MoongateSDK, and has a small main of its own that lists the provider beside the shipped ones.

extension ProviderTemplate {
  /// - Throws: a sentence where Moongate's sources are not found.
  static func swift(_ new: NewProvider) throws(StartProblem) -> ProviderTemplate {
    let source = try MoongateSource(new.moongate)
    let fill = { (text: String) in
      text.replacing("@NAME@", with: new.name.rawValue).replacing("@TYPE@", with: new.typeName).replacing("@TITLE@", with: new.title)
        .replacing("@PACKAGE@", with: new.name.rawValue.replacing("_", with: "-")).replacing("@DEPENDENCY@", with: source.dependency)
        .replacing("@CONFIG@", with: source.configuration)
    }
    let files = [
      "Package.swift": package, "README.md": new.shape == .code ? readmeOfCode : readmeOfFull, ".gitignore": ".build/\n",
      "Sources/\(new.typeName)/\(new.typeName).swift": new.shape == .code ? codeProvider : fullProvider,
      "Sources/\(new.typeName)/policy.lua": new.shape == .code ? codePolicy : fullPolicy, "Sources/gateway/main.swift": main,
      "Tests/\(new.typeName)Tests/ConformanceTests.swift": tests,
    ]
    return ProviderTemplate(
      files: files.mapValues(fill),
      steps: [
        ("swift test", "runs the conformance suite against it"),
        ("swift run gateway provider test \(new.name)", "prints what the suite says, rule by rule"),
        ("swift run gateway serve --config …", "serves with it, once gateway.lua and a flow name it"),
      ])
  }

  private static let package = """
    // swift-tools-version: 6.2
    import PackageDescription

    let package = Package(
      name: "@PACKAGE@",
      dependencies: [@DEPENDENCY@],
      targets: [
        // Sees the SDK and nothing else of Moongate.
        .target(
          name: "@TYPE@", dependencies: [.product(name: "MoongateSDK", package: "moongate")], resources: [.embedInCode("policy.lua")]),
        .testTarget(
          name: "@TYPE@Tests",
          dependencies: [
            "@TYPE@", .product(name: "MoongateSDK", package: "moongate"), .product(name: "MoongateConformance", package: "moongate"),
          ]),
        // Moongate itself, with this provider beside the shipped ones.
        .executableTarget(name: "gateway", dependencies: ["@TYPE@", .product(name: "MoongateCommand", package: "moongate")]),
      ],
      swiftLanguageModes: [.v6]
    )

    """

  private static let main = """
    import MoongateCommand
    import @TYPE@

    await Moongate.run(providers: Moongate.shipped + [@TYPE@()])

    """

  private static let tests = """
    import @TYPE@
    import MoongateConformance
    import MoongateSDK
    import Testing

    @Suite struct ConformanceTests {
      /// Every rule that a provider has to hold. Tell the suite more of yours by changing the subject before it runs.
      @Test func holdsTheSuite() async {
        let provider = @TYPE@()
        let subject = ConformanceSubject(of: provider.descriptor)
        let report = await Conformance.run(provider, subject)
        for finding in report.findings { Issue.record("\\(finding)") }
      }

      @Test func declaresItself() {
        #expect(@TYPE@().descriptor.name.rawValue == "@NAME@")
        #expect(@TYPE@().descriptor.mistakes == [])
      }
    }

    """

  private static let codeProvider = """
    import MoongateSDK

    /// Proves an email address by a code that is sent to it. Moongate makes, counts, compares and expires the codes.
    public struct @TYPE@: CodeProvider {
      public let descriptor = ProviderDescriptor(
        name: "@NAME@",
        beginFields: [InputField(name: "email", kind: .email)],
        submitFields: [InputField(name: "code", kind: .digits)],
        settings: [
          // To send by a site of your own: a text "url" and a secret "token" here, and tools.web.send(…) in deliver.
          SettingField(name: "mail", kind: .messages(.mail), isRequired: true, help: "How its messages leave: outbox() keeps them for the demo.")
        ],
        policy: PolicySource(file: "Sources/@TYPE@/policy.lua", text: String(decoding: PackageResources.policy_lua, as: UTF8.self)),
        identifierKinds: [.email],
        facts: [.emailDomain],
        words: StepWords(title: "@TITLE@", instruction: "We send a code to your address.", labels: ["email": "Email address", "code": "Code"]))

      public init() {}

      /// Reads whom the code is for. One person, one spelling: limits count by the identifier's value.
      public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

      /// Sends the code. A fault that is thrown is told to the operator, and the person is not charged.
      public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
        try await tools.send(
          Message(channel: .mail, to: identifier.value, subject: "Your \\(code.service) code", text: code.text, code: code.code))
      }
    }

    """

  private static let fullProvider = """
    import MoongateSDK

    /// Proves a secret phrase that the account has chosen. Moongate counts the tries before it asks, and keeps the record sealed.
    public struct @TYPE@: FullProvider {
      private static let phrase = InputField(name: "phrase", kind: .password)

      public let descriptor = ProviderDescriptor(
        name: "@NAME@", beginFields: [], submitFields: [phrase], settings: [],
        policy: PolicySource(file: "Sources/@TYPE@/policy.lua", text: String(decoding: PackageResources.policy_lua, as: UTF8.self)),
        identifierKinds: [], hashesSecrets: true,
        outcomes: [
          Outcome("wrong_phrase", "This is not your phrase. Try again."),
          // Says nothing of a secret, so the try is given back.
          Outcome("no_phrase", "You have not chosen a phrase yet.", isFailure: false),
          Outcome(.alreadySet, "You have chosen a phrase already.", isFailure: false),
        ],
        words: StepWords(title: "@TITLE@", instruction: "Type the phrase that you have chosen.", labels: ["phrase": "Phrase"]))

      public init() {}

      /// What cannot be judged at all is said here: 422, and not counted.
      public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
        let typed = try input.text(Self.phrase.name)
        guard (12...200).contains(typed.utf8.count) else {
          throw InputProblem(field: Self.phrase.name, reason: .invalidInput, detail: "A phrase has at least 12 characters.")
        }
      }

      /// Opens the step. In the flow @NAME@_set the purpose is `set`, in @NAME@_disable `disable`, elsewhere `prove`.
      public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
        Self.obstacle(step) ?? .ask([Self.phrase], state: [])
      }

      /// Why the step cannot be taken, whatever is typed.
      private static func obstacle(_ step: StepContext) -> StepAnswer? {
        let isThere = step.account?.record != nil
        if step.purpose != .set { return isThere ? nil : .refused("no_phrase") }
        // A session that was left open must not choose another phrase. Who forgot theirs proves something else first, in the flow @NAME@_reset.
        return isThere && step.flow != "@NAME@_reset" ? .refused(.alreadySet) : nil
      }

      /// Judges. A refusal is a value; what is thrown is a fault, answered 503 and never a pass.
      public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
        guard let hasher = step.tools.hasher else { throw Fault.noHasher }
        let typed = Array(try input.text(Self.phrase.name).utf8)
        if let obstacle = Self.obstacle(step) { return obstacle }
        // Of two flows that choose one at once, one completes.
        if step.purpose == .set { return .proved(Proof(record: .replaceOnce(Array(try await hasher.hash(typed).utf8)))) }
        guard let record = step.account?.record else { return .refused("no_phrase") }
        guard case .right(let rehashed) = try await hasher.verify(typed, against: String(decoding: record, as: UTF8.self)) else {
          return .refused("wrong_phrase")
        }
        switch step.purpose {
        case .disable: return .proved(Proof(record: .remove))
        default: return .proved(Proof(record: rehashed.map { .replace(Array($0.utf8)) } ?? .keep))
        }
      }

      enum Fault: Error { case noHasher }
    }

    """

  private static let readmeHead = """
    # @NAME@

    A provider for Moongate. `Sources/@TYPE@/@TYPE@.swift` is the provider, `policy.lua` beside it its default policy, and
    `Sources/gateway/main.swift` is Moongate with it beside the shipped providers.

        swift test                                  # the conformance suite
        swift run gateway provider test @NAME@      # the same, rule by rule

    ## To sign in with it

    Copy Moongate's `config/` (@CONFIG@) and change three files:


    """

  private static let readmeOfCode =
    readmeHead + """
      - `gateway.lua`: `providers = { …, @NAME@ = { mail = outbox() } }`
      - `flows/login.lua`: put `"@NAME@"` into `any_of { … }`
      - `policies/@NAME@.lua`: `return policy "@NAME@" {}` to keep the defaults. Where `moongate check` then says that all ways in together are
        above your `risk_budget`, longer codes: `return policy "@NAME@" { code = { length = 8 } }`

      Then `swift run gateway check --config config` and `swift run gateway serve --config config`. The codes are at
      http://127.0.0.1:9901/outbox.

      """

  private static let readmeOfFull =
    readmeHead + """
      - `gateway.lua`: `providers = { …, @NAME@ = {} }`
      - `flows/@NAME@_set.lua`: `return flow "@NAME@_set" { account = "existing", steps = { { "@NAME@" } } }`, where somebody who is
        signed in chooses a phrase; and `{ "@NAME@" }` as a step of `flows/step_up.lua`, where it is asked for
      - `flows/@NAME@_disable.lua`, written like @NAME@_set: one that is set is not set again, so who wants another turns it off first, by typing it
      - `policies/@NAME@.lua`: `return policy "@NAME@" {}` to keep the defaults, or what you want otherwise

      Then `swift run gateway check --config config` and `swift run gateway serve --config config`.

      """
}

/// Where a new package gets Moongate from.
struct MoongateSource {
  /// As Package.swift names it.
  let dependency: String
  /// Where its `config/` is, for people.
  let configuration: String

  /// - Parameter named: a folder or a git address; nil: the sources that this program was built from.
  /// - Throws: a sentence where there are none.
  init(_ named: String?) throws(StartProblem) {
    if let named, named.contains("://") || named.hasPrefix("git@") {
      guard !named.contains("\""), !named.contains("\\") else { throw StartProblem("\(named) is no git address.", status: .couldNotRun) }
      dependency = ".package(url: \"\(named)\", branch: \"main\")"
      configuration = named
      return
    }
    let start = named ?? Bundle.main.executablePath ?? "."
    var folder = URL(filePath: start).standardizedFileURL.resolvingSymlinksInPath()
    // Of a folder that was named only it itself counts.
    while !Self.isSource(folder) {
      guard named == nil, folder.pathComponents.count > 1 else {
        throw StartProblem(
          named.map { "\($0) has none of Moongate's sources: name their folder, or a git address, by --moongate." }
            ?? "This program was not built from Moongate's sources here: say where they are by --moongate FOLDER or --moongate https://….",
          status: .couldNotRun)
      }
      folder.deleteLastPathComponent()
    }
    let path = folder.path(percentEncoded: false)
    let clean = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard !clean.contains("\""), !clean.contains("\\") else { throw StartProblem("\(clean) has quotes in its path.", status: .couldNotRun) }
    dependency = ".package(name: \"moongate\", path: \"\(clean)\")"
    configuration = "\(clean)/config"
  }

  private static func isSource(_ folder: URL) -> Bool {
    guard let text = try? String(contentsOf: folder.appending(path: "Package.swift"), encoding: .utf8) else { return false }
    return text.contains("name: \"moongate\",") && text.contains("MoongateSDK")
  }
}
