import MoongateSDK
import Testing

@testable import LDAP

@Suite("Settings of a directory") struct SettingsTests {
  private func findings(_ values: [String: SettingValue], password: String? = "x") -> [String] {
    var secrets: [String: @Sendable () -> String] = [:]
    if let password { secrets["bind.password"] = { password } }
    let settings = StepSettings(
      secrets: secrets, values: ["url": "ldaps://a.example.com", "base": "dc=x"].merging(values) { _, own in own })
    return LDAP().findings(in: settings).map { "\($0.setting) \($0.message)" }
  }

  private func mistake(_ field: String, _ text: String) -> String? {
    DirectorySettings.fields.first { $0.name == field }?.check?(text, nil)
  }

  @Test(arguments: ["ldap://a", "ldaps://a.example.com:1636", "ldap://[::1]:389/", "ldaps://10.0.0.1"])
  func serversThatCanBeAsked(_ url: String) { #expect(mistake("url", url) == nil && mistake("also", url) == nil) }

  @Test(arguments: [
    "", "a.example.com", "https://a", "ldapi:///tmp/x", "ldap://", "ldap://u:p@a", "ldap://a/dc=x", "ldap://a?x",
    "ldap://a#x",
    "ldap://a:0", "ldap://a:70000", "cldap://a", "LDAP ://a",
  ]) func addressesOfNoServer(_ url: String) {
    #expect(
      mistake("url", url) == "is not the address of a server: write ldaps://dc1.example.com or ldap://dc1.example.com")
  }

  /// Attack: passwords are read on the way.
  @Test(arguments: [
    ("ldap://a.example.com", false, true), ("ldap://localhost", false, false), ("ldap://127.0.0.1:1389", false, false),
    ("ldap://[::1]", false, false), ("ldap://localhost", true, true), ("ldap://127.example.com", false, true),
    ("ldap://localhost.example.com", false, true), ("ldaps://localhost", false, true),
  ]) func onlyThisMachineMayDoWithoutTLS(_ url: String, _ hasAuthority: Bool, _ isEncrypted: Bool) throws {
    let server = try #require(DirectoryServer(url, hasAuthority: hasAuthority))
    #expect(server.isEncrypted == isEncrypted)
    #expect(server.startsTLS == (isEncrypted && url.hasPrefix("ldap:")))
  }

  @Test func filters() {
    #expect(mistake("user", "(uid={name})") == nil && mistake("groups", "(memberUid={uid})") == nil)
    #expect(mistake("user", "(uid=ada)") == "must compare {name}, and no other placeholder")
    #expect(mistake("user", "(|(uid={name})(cn={dn}))") == "must compare {name}, and no other placeholder")
    #expect(mistake("groups", "(cn=x)") == "finds the same groups for everyone: compare {dn}, as in (member={dn})")
    #expect(
      mistake("groups", "(member={name})")
        == "must not compare {name}, which was typed: write {dn} or an attribute such as {uid}")
    #expect(mistake("attributes", "a b") == "is not the name of an attribute: write one such as displayName")
  }

  @Test func settingsThatContradictEachOther() {
    #expect(findings(["bind.dn": "cn=a"]) == [])
    #expect(findings([:], password: nil) == [])
    let empty = "bind.password is empty, and the directory would be searched anonymously"
    #expect(findings(["bind.dn": "cn=a"], password: "") == [empty])
    #expect(
      findings(["also": .list((1...8).map { "ldaps://\($0)" })], password: nil)
        == ["also names more than 7 further servers"])
    let found = findings(["email_verified": "always", "trusted_domains": ["@x", "gmail.com"]], password: nil)
    #expect(found.count == 3)
    #expect(found[0].hasPrefix("trusted_domains \"@x\" is not the domain of an email address"))
    #expect(found[1].hasPrefix("trusted_domains gmail.com is a public mail provider"))
    #expect(found[2].hasPrefix("email_verified \"always\" is for directories"))
    #expect(findings(["ca": .text("/dev/null")], password: nil) == ["ca has no certificate in PEM form"])
  }
}
