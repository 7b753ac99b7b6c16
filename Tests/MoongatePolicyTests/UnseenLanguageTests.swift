import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Translations of a provider into languages that the pages do not have.
@Suite struct UnseenLanguageTests {
  private func warnings(_ tags: [String], pages: [String: String] = [:], languages: String? = nil) throws -> [String] {
    var phone = try #require(TestFolder.providers.first { $0.name == "phone_otp" })
    phone.words = StepWords(
      title: "Code by SMS", translations: Dictionary(uniqueKeysWithValues: tags.map { ($0, ["Code by SMS": "…"]) }))
    let providers = [phone] + TestFolder.providers.filter { $0.name != "phone_otp" }
    var files = pages.mapValues(Optional.some)
    if let languages {
      files["gateway.lua"] = TestFolder.gateway.replacing(
        "providers = {", with: "languages = \(languages),\n  providers = {")
    }
    let folder = try TestFolder(files)
    let loader = ConfigurationLoader(
      providers: providers.map(DescribedProvider.init), environment: [:], languages: ["en", "hi"])
    return try loader.load(folder: folder.scratch.path).get().warnings.map(\.description).filter {
      $0.contains("a translation to")
    }
  }

  @Test func languageWithoutPagesGivesAWarning() throws {
    let found = try warnings(["hn", "hi", "hi-IN"])
    #expect(found.count == 1)
    #expect(
      found.first?.contains(
        "providers.phone_otp: its words have a translation to \"hn\", which the pages do not have, so it is never shown: the pages are in en, hi; "
          + "pages/hn.words adds one") == true, "\(found)")
    #expect(found.first?.hasPrefix("gateway.lua:") == true)
  }

  /// The operator selects the languages of the pages.
  @Test func theLanguagesOfTheGatewayAreNamed() throws {
    #expect(try warnings(["hi"], languages: #"{ "en" }"#).isEmpty)
    let found = try warnings(["hn"], languages: #"{ "en" }"#)
    #expect(
      found.first?.contains(
        "so it is never shown: `languages` has en of the pages in en, hi; pages/hn.words adds one, and `languages` has to name it"
      ) == true,
      "\(found)")
  }

  @Test func operatorsLanguageGivesNoWarning() throws {
    #expect(try warnings(["fr"], pages: ["pages/fr.words": "sign_in = Connexion\n"]).isEmpty)
  }
}
