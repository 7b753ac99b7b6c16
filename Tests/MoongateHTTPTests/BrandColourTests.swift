import Testing

@testable import MoongateHTTP

/// The page colours derived from `brand.primary`.
@Suite struct BrandColourTests {
  @Test(
    "buttons have the brand's colour and readable text",
    arguments: [
      ("#ffd400", "#1e1e1e"), ("#1a3c8f", "#ffffff"), ("#808080", "#000000"), ("#ffffff", "#1e1e1e"),
      ("#000000", "#ffffff"),
    ])
  func buttonTextIsReadable(_ colour: String, _ text: String) throws {
    let stylesheet = try #require(BrandColour(colour)).stylesheet
    #expect(stylesheet.contains("--primary:\(colour);--on-primary:\(text);"))
    #expect(stylesheet.contains("color-mix(in srgb,var(--primary)"))
  }
}
