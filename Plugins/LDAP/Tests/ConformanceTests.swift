import MoongateConformance
import MoongateSDK
import Testing

@testable import LDAP

@Suite("Conformance") struct ConformanceTests {
  /// A user of a directory with one entry.
  private static func subject() -> ConformanceSubject {
    var subject = ConformanceSubject(of: LDAP().descriptor)
    subject.settings = [
      "url": "ldap://localhost", "base": "dc=example", "bind.dn": "cn=search", "user": "(uid={name})",
      "groups": "(member={dn})", "group_base": "dc=example", "attributes": .list([]), "also": .list([]),
      "email_verified": "claim", "trusted_domains": .list([]), "nested_groups": false, "timeout": 5,
    ]
    subject.spellings = ["ada", " ADA ", "ａｄａ"].map { ["username": .text($0)] }
    subject.others = ["bob", "ada l"].map { ["username": .text($0)] }
    subject.malformedBegins = [["username": .text("")], ["username": .text("a\0")], ["username": .other]]
    subject.malformedSubmits = [
      ["password": .text("")], ["password": .text("\0")], ["password": .text(String(repeating: "x", count: 100_000))],
    ]
    subject.right = { _ in ["password": .text("ninety-nine quiet pigeons")] }
    subject.wrong = { _ in ["password": .text("ninety-nine quiet penguins")] }
    return subject
  }

  @Test("a provider with an identity elsewhere and a password typed here conforms") func holds() async {
    let directory = PretendedDirectory.open(password: "ninety-nine quiet pigeons")
    let search = PretendedDirectory(bind: directory.bind) {
      $0.filter.contains("uid=") ? directory.search(.of("ada")) : []
    }
    let report = await Conformance.run(search.provider(), Self.subject())
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(Set(held).isSuperset(of: [.descriptor, .spelling, .malformed, .proof, .refusals, .counted, .secrets]))
  }

  @Test("without a directory, nothing passes") func fails() async {
    let report = await Conformance.run(LDAP(), patience: .seconds(20))
    #expect(report.findings == [])
  }
}

extension DirectorySearch {
  fileprivate static func of(_ name: String) -> DirectorySearch {
    DirectorySearch(base: "dc=example", filter: "(uid=\(name))", attributes: [], most: 1)
  }
}
