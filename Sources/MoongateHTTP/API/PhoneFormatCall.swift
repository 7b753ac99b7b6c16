import Hummingbird
import MoongateCore
import MoongateSDK

/// `GET /api/auth/phone/format`: formats a phone number while the user types it.
struct PhoneFormatCall: Sendable {
  let providers: ProviderRegistry
  /// For translations. `language` in the query selects the language, as on pages.
  let pages: PageRenderer

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .phoneFormat) { exchange throws(Refusal) in
        guard let formatter = providers.formatter(for: .phone) else { throw exchange.refusal(.notFound) }
        let query = try exchange.query()
        guard var input = query["input"] else {
          throw exchange.refusal(.invalidInput, detail: "input is missing.", field: "input")
        }
        // In a query, `+` means a space. A leading space is therefore a `+` that was not percent-encoded.
        if input.hasPrefix(" ") { input = "+" + input.dropFirst() }
        let region = query["region"] ?? exchange.gateway.region
        guard formatter.knows(region: region) || region.isEmpty && input.hasPrefix("+") else {
          throw exchange.refusal(
            .invalidInput, detail: "region must be the two letters of a country, such as IN.", field: "region")
        }
        let draft = formatter.draft(input, region: region)
        return .json(
          .members([
            "formatted": .text(draft.formatted), "e164": .optional(draft.canonical), "valid": .flag(draft.isValid),
            "problem": .optional(
              draft.canonical == nil ? problem(input, region).map { pages.words(exchange).translated($0) } : nil),
          ]))
      }
    ]
  }

  /// The country codes whose numbers are known; empty if no provider reads phone numbers.
  static func regions(of providers: ProviderRegistry) -> [String] {
    guard let formatter = providers.formatter(for: .phone) else { return [] }
    let letters = (UInt8(ascii: "A")...UInt8(ascii: "Z")).map { String(UnicodeScalar($0)) }
    return letters.flatMap { first in letters.map { first + $0 } }.filter { formatter.knows(region: $0) }
  }

  /// The message that the user would see for this input.
  private func problem(_ input: String, _ region: String) -> String? {
    let typed = ProviderInput(fields: ["phone": .text(input), "region": .text(region)], defaultRegion: region)
    for provider in providers.all where provider.descriptor.identifierKinds.contains(.phone) {
      guard let code = provider as? any CodeProvider else { continue }
      do throws(InputProblem) { _ = try code.readIdentifier(typed) } catch { return error.detail }
    }
    return nil
  }
}
