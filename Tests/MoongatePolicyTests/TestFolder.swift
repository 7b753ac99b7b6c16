import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// A provider that only has a descriptor.
struct DescribedProvider: WellKnownPublisher {
  let descriptor: ProviderDescriptor

  func document(_ name: String, of site: PublicSite) -> String? { nil }
}

extension DescribedProvider: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer { .accepted() }
}

extension DescribedProvider: Rechecking {
  func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    .confirmed(known.identity)
  }
}

/// A configuration folder with a small valid configuration.
struct TestFolder {
  let scratch: ScratchFolder

  static let gateway = """
    return gateway {
      public_url = "http://localhost:8080",
      region = "IN",
      providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } },
    }
    """
  static let routes = """
    return routes {
      { path = "/assets/**", to = "http://127.0.0.1:3000", allow = true },
      { path = "/**", to = "http://127.0.0.1:3000" },
    }
    """
  static let flow = """
    return flow "login" {
      account = "existing",
      steps = { { "phone_otp" } },
    }
    """

  /// The purpose of a flow that is named like a shipped one, as its first fields in Lua; empty for others, which sign
  /// people in.
  static func purpose(of flow: String) -> String {
    let purpose = flow == "register" ? .register(setting: nil) : FlowPurpose.usual(of: flow, steps: [.test("password")])
    guard purpose != .signIn else { return "" }
    var fields = "purpose = \"\(purpose.kind.rawValue)\", "
    if let provider = purpose.provider { fields += "provider = \"\(provider)\", " }
    if case .verify(let kind) = purpose { fields += "identifier = \"\(kind.rawValue)\", " }
    if let kind = purpose.newIdentifier { fields += "identifier = \"\(kind.rawValue)\", " }
    return fields
  }

  /// - Parameters:
  /// - files: replace the default files; nil removes one.
  /// - programs: executable files.
  init(_ files: [String: String?] = [:], programs: [String] = []) throws {
    scratch = try ScratchFolder()
    let all: [String: String?] = [
      "gateway.lua": Self.gateway, "routes.lua": Self.routes, "flows/login.lua": Self.flow,
      "policies/phone_otp.lua": "return policy \"phone_otp\" {}",
      "policies/email_code.lua": "return policy \"email_code\" {}",
    ]
    for (name, text) in all.merging(files, uniquingKeysWith: { $1 }) {
      if let text { try scratch.write(text, to: name) }
    }
    for name in programs {
      try scratch.write("#!/bin/sh\n", to: name)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: scratch.path(name))
    }
  }

  func load(
    _ providers: [ProviderDescriptor] = Self.providers, environment: [String: String] = [:],
    programs: ProgramLoading? = nil
  ) -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    ConfigurationLoader(providers: providers.map(DescribedProvider.init), environment: environment, programs: programs)
      .load(folder: scratch.path)
  }

  /// The problems as `check` prints them.
  func problems(environment: [String: String] = [:]) -> [String] {
    switch load(environment: environment) {
    case .success: []
    case .failure(let refused): refused.problems.map(\.description)
    }
  }

  func generation() throws -> any PolicyGeneration {
    switch load() {
    case .success(let generation): return generation
    case .failure(let refused): throw Refused(problems: refused.problems.map(\.description))
    }
  }

  struct Refused: Error, CustomStringConvertible {
    let problems: [String]
    var description: String { problems.joined(separator: "\n") }
  }

  /// The root of the repository.
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path

  /// The declarations of PhoneOTP without the plugin, and an email provider.
  static let providers: [ProviderDescriptor] = {
    let text = (try? String(contentsOfFile: root + "/Plugins/PhoneOTP/policy.lua", encoding: .utf8)) ?? ""
    return [
      ProviderDescriptor(
        name: ProviderName(test: "phone_otp"), beginFields: [], submitFields: [],
        settings: [
          SettingField(name: "sms", kind: .messages(.sms), isRequired: true, help: "how SMS leave, as in outbox()")
        ],
        policy: PolicySource(file: "Plugins/PhoneOTP/policy.lua", text: text), identifierKinds: [.phone],
        facts: [
          FactField(name: "country", kind: .text, help: "the number's country in two letters"),
          FactField(name: "type", kind: .text, help: "what kind of number it is"),
        ]),
      ProviderDescriptor(
        name: ProviderName(test: "email_code"), beginFields: [], submitFields: [],
        settings: [
          SettingField(name: "mail", kind: .messages(.mail), isRequired: true, help: "how mail leaves, as in outbox()"),
          SettingField(name: "sender", kind: .text, isRequired: false, help: "the address that mail comes from"),
          SettingField(name: "api_key", kind: .secret, isRequired: false, help: "the key, from env or file"),
        ],
        policy: PolicySource(
          file: "Plugins/EmailCode/policy.lua",
          text: """
            return policy "email_code" {
              code = { length = 6, alphabet = "digits", ttl = "15m" },
              limits = {
                send = { on = "send", per = "email", max = 4, window = "15m" },
                verify = { on = "verify", per = "email", max = 5, window = "24h", lock = "15m" },
              },
              unknown_account = "conceal",
              message = "{code} is your code",
            }
            """), identifierKinds: [.email], facts: [.emailDomain]),
    ] + ["pin", "password", "google_oauth", "totp"].map(named)
  }()

  /// A provider that these folders name but do not configure.
  private static func named(_ name: ProviderName) -> ProviderDescriptor {
    ProviderDescriptor(
      name: name, beginFields: [], submitFields: [], settings: [],
      policy: PolicySource(
        file: "\(name)/policy.lua",
        text:
          "return policy \"\(name)\" { limits = { verify = { on = \"verify\", per = \"flow\", max = 5, window = \"1h\" } } }"
      ),
      identifierKinds: [])
  }
}

extension Facts {
  static func test(_ change: (inout Facts) -> Void = { _ in }) -> Facts {
    var facts = Facts(
      now: ManualClock.start, client: ClientFacts(address: ClientAddress(bytes: [203, 0, 113, 7]) ?? .unspecified))
    change(&facts)
    return facts
  }
}
