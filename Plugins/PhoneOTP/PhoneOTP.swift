import MoongateSDK

/// Proves a phone number by a code sent to it.
///
/// It owns what a number is: reading any spelling into one E.164, formatting while it is typed, and the SMS. Codes,
/// tries, timers and accounts are the core's.
public struct PhoneOTP: CodeProvider, IdentifierFormatting {
  /// What it declares: `begin` takes `phone` and `region`; gateway.lua says how SMS leave.
  public let descriptor: ProviderDescriptor

  /// What its words are in other languages; each is a file of `words/`.
  private static let translations: [(tag: String, file: [UInt8])] = [
    ("hi", PackageResources.hi_words), ("ar", PackageResources.ar_words), ("bn", PackageResources.bn_words),
    ("de", PackageResources.de_words),
    ("es", PackageResources.es_words), ("fr", PackageResources.fr_words), ("pt", PackageResources.pt_words),
    ("ta", PackageResources.ta_words),
    ("te", PackageResources.te_words),
  ]

  /// The kind of identifier that it reads and formats.
  public let identifierKind = IdentifierKind.phone

  public init() {
    descriptor = ProviderDescriptor(
      name: "phone_otp",
      beginFields: [
        InputField(name: "phone", kind: .phone), InputField(name: "region", kind: .region, isRequired: false),
      ],
      submitFields: [InputField(name: "code", kind: .digits)],
      settings: [
        SettingField(
          name: "sms", kind: .messages(.sms), isRequired: true, help: "How SMS leave: outbox() keeps them for the demo."
        )
      ],
      policy: PolicySource(file: "Plugins/PhoneOTP/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/PhoneOTP/flows/change_phone.lua", bytes: PackageResources.change_phone_lua)
      ],
      cases: PolicySource(file: "Plugins/PhoneOTP/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [.phone],
      facts: [
        FactField(name: "country", kind: .text, help: "the number's country in two letters"),
        FactField(name: "type", kind: .text, help: "what kind of number it is: mobile, fixed, voip or unknown"),
      ],
      words: StepWords(
        title: "Your phone number", name: "Code by SMS", instruction: "We send a code to it by SMS.",
        labels: ["phone": "Phone number", "region": "Country", "code": "Code"], translations: Self.translations),
      presentation: .codeEntry, entrance: .field(kind: .phone, priority: 100), page: "verify", role: .provesIdentifier)
  }

  /// Reads `phone`, by the client's `region` or else the gateway's.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    let region = try Self.region(of: input)
    let typed: TypedNumber
    do {
      typed = try TypedNumber(try input.text("phone"))
    } catch let problem as InputProblem {
      throw problem
    } catch {
      throw NumberSentence.problem(error as? TypedNumber.Problem, region: region)
    }
    do {
      let number = try NumberingPlan.read(typed, in: region)
      return Identifier(
        kind: .phone, value: number.e164, display: number.international,
        attributes: ["country": number.country, "type": number.type.rawValue])
    } catch {
      throw NumberSentence.problem(error, typed: typed, region: region)
    }
  }

  /// Sends the SMS. The domain-bound line stands alone at its end, so that phones fill the code in on our page only.
  public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
  {
    try await tools.send(
      Message(channel: .sms, to: identifier.value, text: code.text + "\n" + code.domainBoundLine, code: code.code))
  }

  /// Formats a number while it is typed. What is no number stays as it was typed: the server judges it at `begin`.
  public func draft(_ typed: String, region: String) -> IdentifierDraft {
    guard let region = NumberingPlan.Region(region), let number = try? TypedNumber(typed) else {
      return IdentifierDraft(formatted: typed, canonical: nil, isValid: false)
    }
    let read = try? NumberingPlan.read(number, in: region)
    return IdentifierDraft(
      formatted: NumberingPlan.format(number, in: region) ?? typed, canonical: read?.e164,
      isValid: read?.isValid ?? false)
  }

  public func knows(region: String) -> Bool { NumberingPlan.Region(region) != nil }

  /// The country's calling code.
  public func callingCode(region: String) -> String? { NumberingPlan.Region(region).map { "+\($0.callingCode)" } }

  private static func region(of input: ProviderInput) throws(InputProblem) -> NumberingPlan.Region {
    if let text = try input.optionalText("region") {
      guard let region = NumberingPlan.Region(text) else {
        throw InputProblem(
          field: "region", reason: .invalidInput,
          detail: "Please choose a country: \"region\" is two letters, such as IN.")
      }
      return region
    }
    guard let region = NumberingPlan.Region(input.defaultRegion) else {
      throw InputProblem(field: "region", reason: .invalidInput, detail: "Please choose a country.")
    }
    return region
  }
}
