import MoongateSDK
import Testing

@testable import Passkey

/// Settings that would never match what browsers and devices send.
@Suite struct SettingFormsTests {
  private static let app = "android:apk-key-hash:sjYxqUM11Op8oHJuOdbrsCqtvYvbKHhQoKBlt28dLec"
  private static let keytool =
    "B2:36:31:A9:43:35:D4:EA:7C:A0:72:6E:39:D6:EB:B0:2A:AD:BD:8B:DB:28:78:50:A0:A0:65:B7:6F:1D:2D:E7"

  @Test(arguments: [
    "https://app.example.com", "https://app.example.com:8443", "http://localhost:3000", "http://app.localhost",
    "https://xn--bcher-kva.example", "https://[2001:db8::1]", app,
  ])
  func rightOriginsAreTaken(text: String) { #expect(SettingForms.origin(text) == nil) }

  @Test(arguments: [
    ("\(app)=", app),
    ("android:apk-key-hash:sjYxqUM11Op8oHJuOdbrsCqtvYvbKHhQoKBlt28dLe+=", "write android:apk-key-hash:"),
    (keytool, app), (keytool.lowercased(), app), ("SHA256: \(keytool)", app), ("android:apk-key-hash:\(keytool)", app),
    (keytool.replacing(":", with: ""), app), ("sjYxqUM11Op8oHJuOdbrsCqtvYvbKHhQoKBlt28dLec=", app),
    ("B2:36:31:A9:43:35:D4:EA:7C:A0:72:6E:39:D6:EB:B0:2A:AD:BD:8B", "SHA-1"),
    ("android:apk-key-hash:x", "43 characters"), ("android:com.example.app", "43 characters"),
    ("https://app.example.com/", "write https://app.example.com"),
    ("https://app.example.com/sign-in?x=1#y", "write https://app.example.com"),
    ("HTTPS://App.Example.COM:443", "write https://app.example.com"),
    ("https://bücher.example", "write https://xn--bcher-kva.example"),
    ("https://*.example.com", "no wildcards"),
    ("app.example.com", "not an origin"), ("*", "not an origin"), ("", "not an origin"),
    ("http://app.example.com", "must begin with https://"), ("ftp://app.example.com", "not an origin"),
  ])
  func wrongOriginsNameTheRightForm(text: String, sentence: String) {
    #expect(SettingForms.origin(text)?.contains(sentence) ?? false, "\(SettingForms.origin(text) ?? "taken")")
  }

  @Test(arguments: [
    ("auth.example.com", true), ("example.com", true), ("com", false), ("Example.com", false), ("other.example", false),
    ("https://example.com", false), ("example.com:443", false), ("ample.com", false), ("", false),
  ])
  func theDomainIsThatOfTheSite(text: String, isRight: Bool) {
    #expect((SettingForms.rpID(text, of: "https://auth.example.com:8443") == nil) == isRight)
    #expect(SettingForms.rpID(text, of: nil) == nil, "what cannot be compared is not refused")
  }

  @Test(
    arguments: [
      ("d548826e-79b4-db40-a3d8-11116f7e8349", nil), ("D548826E-79B4-DB40-A3D8-11116F7E8349", nil),
      ("d548826e79b4db40a3d811116f7e8349", "write d548826e-79b4-db40-a3d8-11116f7e8349"),
      ("{d548826e-79b4-db40-a3d8-11116f7e8349}", "write d548826e-79b4-db40-a3d8-11116f7e8349"),
      ("Bitwarden", "is not a model"), ("", "is not a model"),
    ] as [(String, String?)])
  func modelsAreUUIDs(text: String, sentence: String?) {
    let mistake = SettingForms.aaguid(text)
    #expect(sentence.map { mistake?.contains($0) ?? false } ?? (mistake == nil), "\(mistake ?? "taken")")
  }
}
