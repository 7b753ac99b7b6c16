import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `credential "name"`: secrets that systemd provides in the folder `CREDENTIALS_DIRECTORY`.
@Suite struct CredentialTests {
  private let credentials: ScratchFolder

  init() throws { credentials = try ScratchFolder() }

  private func folder(_ setting: String) throws -> TestFolder {
    try TestFolder([
      "gateway.lua": """
      return gateway {
        public_url = "http://localhost:8080",
        region = "IN",
        \(setting)
        providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } },
      }
      """
    ])
  }

  private func problems(_ setting: String, isThere: Bool = true) throws -> [String] {
    try folder(setting).problems(environment: isThere ? ["CREDENTIALS_DIRECTORY": credentials.path] : [:])
  }

  @Test func aKeyAndOtherSecretsAreCredentials() throws {
    try credentials.write("0123456789abcdef0123456789abcdef", to: "master.key")
    try credentials.write("admin-0123456789abcdef\n", to: "admin.token")
    let setting =
      "key = credential \"master.key\", admin = { address = \"127.0.0.1:9901\", token = credential \"admin.token\" },"
    let loaded = try folder(setting).load(environment: ["CREDENTIALS_DIRECTORY": credentials.path]).get()
    #expect(loaded.gateway.key == .credential(path: credentials.path("master.key")))
    #expect(loaded.gateway.allAdminTokens.map { $0.secret.reveal() } == ["admin-0123456789abcdef"])
  }

  @Test func withoutSystemdTheProblemNamesTheFix() throws {
    #expect(
      try problems("key = credential \"master.key\",", isThere: false) == [
        "gateway.lua:4: key: systemd hands this process no credentials (CREDENTIALS_DIRECTORY is not set): start it by its unit, with "
          + "LoadCredential=master.key:/etc/moongate/credentials/master.key. For a command, set CREDENTIALS_DIRECTORY to the folder with the "
          + "credential's file"
      ])
  }

  @Test func missingCredentialIsReportedAndNotCreated() throws {
    #expect(
      try problems("key = credential \"master.key\",") == [
        "gateway.lua:4: key: there is no credential master.key in \(credentials.path): add "
          + "LoadCredential=master.key:/etc/moongate/credentials/master.key to the unit"
      ])
    #expect(!FileManager.default.fileExists(atPath: credentials.path("master.key")))
  }

  /// Attack: another user of the machine reads the secret, because a replacement for systemd's folder has wrong
  /// permissions.
  @Test(arguments: [0o640, 0o604, 0o666]) func aCredentialThatOthersReadIsRefused(_ mode: Int) throws {
    try credentials.write("admin-0123456789abcdef", to: "admin.token")
    try credentials.setMode(mode, of: "admin.token")
    let told = try problems("admin = { address = \"127.0.0.1:9901\", token = credential \"admin.token\" },")
    #expect(
      told.count == 1
        && told.allSatisfy { $0.contains("the credential admin.token: has mode \(String(mode, radix: 8))") })
  }

  /// Attack: a name leads out of the folder, to a file that the service may read and its operators may not.
  @Test(arguments: ["../shadow", "a/b", "/etc/shadow", ".hidden", ""]) func aNameThatIsAPathIsRefused(_ name: String)
    throws
  {
    let told = try problems("key = credential \"\(name)\",")
    #expect(
      told == ["gateway.lua:4: key: \"\(name)\" is not a valid credential name, such as credential \"master.key\""])
  }
}
