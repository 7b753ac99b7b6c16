import Testing

@testable import LDAP

private let invalid = "is not valid, or nested more than 15 times"

@Suite("Filters of a directory") struct FilterTests {
  @Test(
    "accepts filters",
    arguments: [
      "(uid={name})", "(&(objectClass=person)(|(uid={name})(mail={name})))", "(!(a=b))", "(cn=Ad*a*)", "(cn=*)",
      "(a>=1)", "(a<=1)", "(a~=b)", #"(a=\28b\29)"#, "(member:1.2.840.113556.1.4.1941:={dn})", "(ou:dn:2.4.6:=x)",
      "(cn;lang-de=ü)", "(userAccountControl:1.2.840.113556.1.4.803:=2)", "(proxyAddresses=smtp:{name})",
    ]) func accepts(_ text: String) throws
  {
    #expect(try DirectoryFilter(text).filled { _ in "ada" } == text.replacing(/\{\w+\}/, with: "ada"))
  }

  @Test(
    "refuses what is no filter, and comparisons by which a name has several spellings",
    arguments: [
      ("", invalid), ("uid={name}", invalid), ("(&)", invalid), ("(=x)", invalid), ("({name}=x)", invalid),
      ("(uid)", invalid), ("(uid:1.2={name})", invalid), ("(a=b\0)", invalid), ("((uid=x))", invalid),
      ("(!(a=b)(c=d))", invalid), ("(a=b)(c=d)", invalid), (")a=b(", invalid), ("\0", invalid),
      ("(uid={name}", "has 1 opening and 0 closing parentheses"),
      ("(uid={name}))", "has 1 opening and 2 closing parentheses"),
      ("(uid:={name}", "has 1 opening and 0 closing parentheses"),
      (#"(uid=\2)"#, #"has a \ without two hexadecimal digits"#),
      ("(uid=a{b)", #"has a brace that is no placeholder (a brace itself is \7b or \7d)"#),
      ("(uid={na me})", #"has a brace that is no placeholder (a brace itself is \7b or \7d)"#),
      ("(uid={name}*)", "compares a placeholder in another way than exactly"),
      ("(uid~={name})", "compares a placeholder in another way than exactly"),
      (#"(uid=\61{name})"#, "compares a placeholder in another way than exactly"),
    ]) func refuses(_ text: String, _ said: String)
  {
    #expect(throws: DirectoryFilter.Problem(said)) { try DirectoryFilter(text) }
  }

  @Test func aFilterIsNotDeepOrLong() {
    let deep = { String(repeating: "(!", count: $0) + "(a=b)" + String(repeating: ")", count: $0) }
    #expect((try? DirectoryFilter(deep(15))) != nil)
    #expect((try? DirectoryFilter(deep(16))) == nil)
    #expect((try? DirectoryFilter(deep(100_000))) == nil)
    #expect((try? DirectoryFilter("(a=\(String(repeating: "b", count: 5_000)))")) == nil)
  }

  /// Attack: a user name that is a filter.
  @Test(arguments: [
    ("*", #"\2a"#), ("ada)(uid=*", #"ada\29\28uid\3d\2a"#), (#"a\2a"#, #"a\5c2a"#), ("a\0b", #"a\00b"#),
    ("ü", #"\c3\bc"#), ("ada@example.com", "ada@example.com"), ("{dn}", #"\7bdn\7d"#), ("a b", #"a\20b"#),
  ]) func valuesAreEscaped(_ name: String, _ escaped: String) throws {
    #expect(DirectoryFilter.escaped(name) == escaped)
    #expect(try DirectoryFilter("(uid={name})").filled { _ in name } == "(uid=\(escaped))")
  }

  @Test func namesWhatItCompares() throws {
    let filter = try DirectoryFilter("(&(objectClass=person)(|(UID={name})(proxyAddresses=smtp:{name})))")
    #expect(filter.placeholders == ["name"])
    #expect(
      filter.comparisons == [
        .init(attribute: "uid", value: "{name}"), .init(attribute: "proxyaddresses", value: "smtp:{name}"),
      ])
    #expect(try DirectoryFilter("(memberUid={uid})").filled { _ in nil } == nil)
  }
}
