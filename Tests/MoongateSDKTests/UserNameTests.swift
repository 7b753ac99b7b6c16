import MoongateSDK
import Testing

@Suite("User names") struct UserNameTests {
  /// Attack: each spelling that is taken for another name is another account, and a fresh budget of guesses.
  @Test(
    "spellings of one name are one",
    arguments: [
      "jose.rao-9", "Jose.Rao-9", "JOSE.RAO-9", " jose.rao-9\t", "ｊｏｓｅ.ｒａｏ-9", "jose．rao－9", "jose.rao-９",
      "\u{200B}jose.rao-9\u{FEFF}", "\u{2068}jose.rao-9\u{2069}",
    ])
  func one(spelling: String) throws {
    let name = try #require(UserName(spelling))
    #expect(name.text == "jose.rao-9")
    #expect(Identifier(name) == Identifier(kind: .name, value: "jose.rao-9", display: ""))
  }

  @Test(
    "letters and marks are composed and in lower case",
    arguments: [
      ("Jose\u{301}", "josé"), ("JOSÉ", "josé"), ("Ada-Ünal", "ada-ünal"), ("ΟΔΟΣ", "οδος"), ("Straße", "straße"),
      ("ｶﾞｷﾞｸﾞ", "ガギグ"), ("राम_जी", "राम_जी"), ("Пётр", "пётр"), ("山田太郎", "山田太郎"), ("山田タロウ", "山田タロウ"),
      ("דוד1", "דוד1"), ("김철수", "김철수"),
    ])
  func mapped(typed: String, canonical: String) {
    #expect(UserName(typed)?.text.unicodeScalars.map(\.value) == canonical.unicodeScalars.map(\.value))
  }

  @Test("a name is read again as itself", arguments: ["josé", "οδος", "ガギグ", "राम_जी", "straße", "a1.", "1a-_."])
  func stable(name: String) { #expect(UserName(name)?.text == name) }

  @Test(
    "what is none is none",
    arguments: [
      "", " ", "ab", "a b c", "a\u{0}bc", "ada@example.com", "ada＠example", "+919999999999", "919999999999", "٩٩٩٩٩٩٩",
      "9876543210ー",
      "-ada", ".ada", "_ada", "...", "---", "a/b", "a\\b", "a:bc", "a'bc", "a,bc", "<abc>", "a%41c", "ada!",
      "ada\r\nbcc",
      // Marks and invisible characters.
      "\u{301}ada", "a\u{200D}da", "a\u{200C}da", "a\u{AD}da", "a\u{202E}da", "a\u{FE0F}da", "a\u{34F}da",
      "ad\u{E0061}a",
      // Compatibility characters, symbols, unassigned characters and private ones.
      "adaﬁ", "ada²", "ⅳ-ada", "𝐚𝐝𝐚", "ⓐⓓⓐ", "ada☺", "ada\u{E000}", "ada\u{378}", "ada·b", "adaʼ",
      // Lengtheners, repetition marks and parts of letters.
      "محمـد", "あ〱あ", "\u{1100}\u{1161}\u{11A8}\u{1100}a", "ﾡﾢﾣ",
    ])
  func refused(text: String) { #expect(UserName(text) == nil) }

  @Test("3 to 32 characters") func lengths() {
    #expect(UserName("abc") != nil && UserName(String(repeating: "a", count: 32)) != nil)
    #expect(UserName(String(repeating: "a", count: 33)) == nil)
    // Composed letters count once.
    #expect(UserName(String(repeating: "e\u{301}", count: 32))?.text.unicodeScalars.count == 32)
    #expect(UserName(String(repeating: "a", count: 100_000)) == nil)
  }

  /// Attack: letters of another script in the middle of a name, which look the same.
  @Test(
    "letters of several scripts are refused",
    arguments: ["pаypal", "аda.lovelace", "раypal", "οdos", "ada-дa", "a山田", "אbג", "ada٣", "राम৩"])
  func mixed(text: String) { #expect(UserName(text) == nil) }

  /// Attack: a mark that the letter below it hides: `i` has a dot already.
  @Test("hidden and repeated marks are refused", arguments: ["adi\u{307}la", "İlker", "ade\u{301}\u{301}la"])
  func hidden(text: String) { #expect(UserName(text) == nil) }

  /// Attack: digits and letters that are written from right to left are shown in another order than they are compared.
  @Test("parts that are shown in another order are refused", arguments: ["1דוד", "דודabc", "דוד-", "م١1د"])
  func direction(text: String) { #expect(UserName(text) == nil) }

  /// Attack: a name that is another account's ID in the commands of operators.
  @Test("the form of account IDs is refused", arguments: ["ac_abcdef", "AC_abcdef", "ａｃ_abcdef"])
  func ids(text: String) { #expect(UserName(text) == nil) }

  /// Attack: a name of another script looks like one that exists, and its owner is taken for the other.
  @Test(
    "names that look alike have one skeleton",
    arguments: [
      ("scope", "ѕсоре"), ("paypal", "paypa1"), ("userl", "user1"), ("modern", "rnodern"), ("aee-", "аее-"),
      ("ilk", "ılk"),
    ])
  func alike(name: String, other: String) throws {
    let (name, other) = (try #require(UserName(name)), try #require(UserName(other)))
    #expect(name != other)
    #expect(Identifier(name).skeleton == Identifier(other).skeleton)
  }

  @Test(
    "other names have another skeleton",
    arguments: [("ada", "bea"), ("ada-1", "ada_1"), ("straße", "strasse"), ("josé", "jose"), ("राम", "श्याम")])
  func different(name: String, other: String) throws {
    #expect(
      Identifier(try #require(UserName(name))).skeleton != Identifier(try #require(UserName(other))).skeleton)
  }

  @Test("other identifiers have no skeleton") func none() {
    #expect(Identifier(kind: .email, value: "ada@example.com", display: "").skeleton == nil)
  }

  @Test("a name is claimed and never verified") func kinds() {
    #expect(IdentifierKind.allCases.filter { !$0.canBeVerified } == [.name])
    #expect(IdentifierKind.allCases.filter(\.isExclusive) == [.name])
    #expect(IdentifierKind.allCases.filter { $0.channel == nil } == [.federated, .name])
  }
}
