import MoongateSDK

/// Verifies a phone number with a code sent by SMS.
///
/// The provider parses and formats phone numbers and writes the SMS. The core handles codes, attempts, timers and
/// accounts.
public struct PhoneOTP: CodeProvider, IdentifierFormatting {
  /// `begin` takes `phone` and `region`. The settings in gateway.lua select how SMS are sent.
  public let descriptor: ProviderDescriptor

  /// The kind of identifier.
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
          name: "sms", kind: .messages(.sms), isRequired: true,
          help: "How SMS are sent: outbox() keeps them for the demo."
        )
      ],
      policy: PolicySource(file: "Plugins/PhoneOTP/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/PhoneOTP/flows/change_phone.lua", bytes: PackageResources.change_phone_lua)
      ],
      cases: PolicySource(file: "Plugins/PhoneOTP/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [.phone],
      facts: [
        FactField(name: "country", kind: .text, help: "the two-letter code of the number's country"),
        FactField(name: "type", kind: .text, help: "the kind of number: mobile, fixed, voip or unknown"),
      ],
      words: StepWords(
        title: "Your phone number", name: "Code by SMS", instruction: "We send a code to it by SMS.",
        labels: ["phone": "Phone number", "region": "Country", "code": "Code"],
        translations: PackageResources.translations),
      presentation: .codeEntry, entrance: .field(kind: .phone, priority: 100), page: "verify", role: .provesIdentifier)
  }

  /// Reads `phone`, with the client's `region` or that of the gateway.
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
    guard region != nil || typed.digits.hasPrefix("+") else {
      throw InputProblem(
        field: "region", reason: .invalidInput,
        detail: "Please enter the number with + and its country code, or choose a country.")
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

  /// Sends the SMS. The domain-bound line is its last line, so that phones fill in the code only on our page.
  public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
  {
    try await tools.send(
      Message(channel: .sms, to: identifier.value, text: code.text + "\n" + code.domainBoundLine, code: code.code))
  }

  /// Formats a number while it is typed. An invalid number is returned unchanged; `begin` reports the problem.
  public func draft(_ typed: String, region: String) -> IdentifierDraft {
    let region = NumberingPlan.Region(region)
    guard region != nil || typed.hasPrefix("+"), let number = try? TypedNumber(typed) else {
      return IdentifierDraft(formatted: typed, canonical: nil, isValid: false)
    }
    let read = try? NumberingPlan.read(number, in: region)
    return IdentifierDraft(
      formatted: NumberingPlan.format(number, in: region) ?? typed, canonical: read?.e164,
      isValid: read?.isValid ?? false)
  }

  public func knows(region: String) -> Bool { NumberingPlan.Region(region) != nil }

  /// The calling code of the country.
  public func callingCode(region: String) -> String? { NumberingPlan.Region(region).map { "+\($0.callingCode)" } }

  /// The country that the client names, or the default country of the gateway; nil without either.
  private static func region(of input: ProviderInput) throws(InputProblem) -> NumberingPlan.Region? {
    if let text = try input.optionalText("region") {
      guard let region = NumberingPlan.Region(text) else {
        throw InputProblem(
          field: "region", reason: .invalidInput,
          detail: "Please choose a country: \"region\" is two letters, such as IN.")
      }
      return region
    }
    return NumberingPlan.Region(input.defaultRegion)
  }
}
