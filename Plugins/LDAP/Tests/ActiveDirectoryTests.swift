import Foundation
import MoongateSDK
import Testing

@testable import LDAP

/// Answers of Active Directory, as its documentation and its servers give them.
@Suite("Active Directory") struct ActiveDirectoryTests {
  private static let name = "CN=Ada Lovelace,OU=Staff,DC=contoso,DC=com"
  private static let nested = "1.2.840.113556.1.4.1941"

  private static func refused(_ code: String) -> String {
    "80090308: LdapErr: DSID-0C09044E, comment: AcceptSecurityContext error, data \(code), v2580"
  }

  private static func directory(_ answer: BindAnswer) -> PretendedDirectory {
    PretendedDirectory(
      bind: { given, _ in given == name ? answer : BindAnswer(code: 0) },
      search: { search in
        guard search.filter.contains(nested) else {
          var entry = DirectoryEntry(
            name: name,
            [
              "sAMAccountName": ["ada"], "userPrincipalName": ["ada@contoso.com"], "mail": ["Ada@contoso.com"],
              "givenName": ["Ada"], "sn": ["Lovelace"], "displayName": ["Ada Lovelace"],
            ])
          // The bytes of {6f9619ff-8b86-d011-b42d-00c04fc964ff}.
          entry.add(
            [
              0xff, 0x19, 0x96, 0x6f, 0x86, 0x8b, 0x11, 0xd0, 0xb4, 0x2d, 0x00, 0xc0, 0x4f, 0xc9, 0x64, 0xff,
            ], to: "objectGUID")
          return [entry]
        }
        return ["Domain Users", "VPN", "Grafana Admins"].map {
          DirectoryEntry(name: "CN=\($0),OU=Groups,DC=contoso,DC=com", ["cn": [$0]])
        }
      })
  }

  private static func attempt(_ answer: BindAnswer) -> (PretendedDirectory, Attempted) {
    let directory = directory(answer)
    var attempt = Attempted(provider: directory.provider())
    attempt.settings = Attempted.settings([
      "user": "(&(objectCategory=person)(objectClass=user)(|(sAMAccountName={name})(userPrincipalName={name})))",
      "groups": .text("(&(objectClass=group)(member:\(nested):={dn}))"), "base": "DC=contoso,DC=com",
    ])
    return (directory, attempt)
  }

  @Test func nestedGroupsByTheMatchingRule() async throws {
    let (directory, attempt) = Self.attempt(BindAnswer(code: 0))
    let proof = try #require(try await attempt.signIn("ADA@contoso.com").proof)
    #expect(proof.proved.first?.value == "ldap 6f9619ff-8b86-d011-b42d-00c04fc964ff")
    #expect(proof.proved.first?.groups == ["Domain Users", "Grafana Admins", "VPN"])
    let group = #"CN\3dAda\20Lovelace\2cOU\3dStaff\2cDC\3dcontoso\2cDC\3dcom"#
    #expect(directory.taken().last == "search (&(objectClass=group)(member:\(Self.nested):=\(group)))")
  }

  /// Attack: a stranger learns from the refusal that an account exists, is locked or does not. Only those that Active
  /// Directory answers to the right password are told.
  @Test(arguments: [
    ("525", "invalid_credentials", "user not found"), ("52e", "invalid_credentials", "wrong password"),
    ("775", "invalid_credentials", "account locked"), ("532", "password_expired", "password expired"),
    ("773", "password_expired", "password must be changed"), ("533", "directory_denied", "account disabled"),
    ("701", "directory_denied", "account expired"), ("530", "directory_denied", "not at this time"),
    ("531", "directory_denied", "not from this computer"),
    ("568", "directory_denied", "too many context identifiers"),
  ]) func subcodes(_ code: String, _ reason: String, _ text: String) async throws {
    let (_, attempt) = Self.attempt(BindAnswer(code: 49, text: Self.refused(code)))
    #expect(try await attempt.refusal() == [reason, "result 49, data \(code): \(text)"])
  }

  @Test func anUnknownSubcodeIsAWrongPassword() async throws {
    let (_, attempt) = Self.attempt(BindAnswer(code: 49, text: Self.refused("80070005")))
    #expect(try await attempt.refusal() == ["invalid_credentials", "result 49, data 80070005: unknown"])
  }

  /// Result codes of other servers, and of slapd with a password policy.
  @Test(arguments: [
    (BindAnswer(code: 0, policy: 2), "password_expired", "result 0: password must be changed"),
    (BindAnswer(code: 0, policy: 1), "directory_denied", "result 0: account locked"),
    (BindAnswer(code: 49, policy: 0), "password_expired", "result 49: password expired"),
    (BindAnswer(code: 49, policy: 1), "invalid_credentials", "result 49: account locked"),
    (BindAnswer(code: 49), "invalid_credentials", "result 49: wrong password"),
    (
      BindAnswer(code: 53, text: "Account inactivated. Contact system administrator."), "invalid_credentials",
      "result 53: Account inactivated. Contact system administrator."
    ),
    (
      BindAnswer(code: 19, text: "Exceed password retry limit. Please try later."), "invalid_credentials",
      "result 19: Exceed password retry limit. Please try later."
    ),
    (BindAnswer(code: 32), "invalid_credentials", "result 32"),
    (BindAnswer(code: 10), "invalid_credentials", "result 10"),
  ]) func otherResults(_ answer: BindAnswer, _ reason: String, _ text: String) async throws {
    let (_, attempt) = Self.attempt(answer)
    #expect(try await attempt.refusal() == [reason, text])
  }

  /// Attack: a directory answers guesses with an error of its own. A fault would not be counted, and each further
  /// server would get the same guess.
  @Test(arguments: [1, 2, 8, 13, 51, 52, 80]) func otherResultsCount(_ code: Int) async throws {
    let (directory, made) = Self.attempt(BindAnswer(code: code))
    var attempt = made
    attempt.settings = Attempted.settings([
      "also": ["ldap://b.example.com"], "base": "DC=contoso,DC=com", "user": "(userPrincipalName={name})",
    ])
    let text = "no answer to the bind: ldap: the bind of a user failed with result \(code)"
    #expect(try await attempt.refusal("ada@contoso.com") == ["directory_silent", text])
    #expect(directory.taken().filter { $0.hasPrefix("bind CN") }.count == 1)
  }

  /// Attack: while a server is busy, its answers tell known names from unknown ones.
  @Test func aBusyServerTellsNothing() async throws {
    let busy = PretendedDirectory(
      bind: { name, _ in BindAnswer(code: name == "cn=search" ? 0 : 51) }, search: PretendedDirectory.open().search)
    let known = try await Attempted(provider: busy.provider()).refusal()
    #expect(try await Attempted(provider: busy.provider()).refusal("nobody") == known)
  }

  @Test func identities() {
    #expect(DirectoryEntry(name: "a").identity == nil)
    #expect(DirectoryEntry(name: "a", ["entryUUID": ["no UUID"]]).identity == nil)
    #expect(DirectoryEntry(name: "a", ["objectGUID": ["short"]]).identity == nil)
  }
}
