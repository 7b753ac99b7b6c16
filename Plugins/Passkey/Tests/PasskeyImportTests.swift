import Foundation
import MoongateSDK
import Testing

@testable import Passkey

@Suite struct PasskeyImportTests {
  private static func json(_ key: SoftAuthenticator, name: String? = "Phone", padding: String = "") throws -> String {
    let id = Base64URL.encode(key.id) + padding
    let name = name.map { #","name":"\#($0)""# } ?? ""
    return
      #"{"id":"\#(id)","public_key":"\#(Base64URL.encode(try key.key.cose().bytes))","counter":\#(key.count)\#(name)}"#
  }

  private static func fixture(_ keys: SoftAuthenticator...) throws -> PasskeyFixture {
    var fixture = PasskeyFixture()
    let list = "[\(try keys.map { try json($0) }.joined(separator: ","))]"
    fixture.record = try fixture.provider.record(importing: Array(list.utf8), at: fixture.now)
    return fixture
  }

  private func problem(_ json: String) -> String? {
    do throws(FactorImportProblem) {
      _ = try Passkey().record(importing: Array(json.utf8), at: 0)
      return nil
    } catch {
      return error.sentence
    }
  }

  @Test("passkeys of another system sign in, whatever their user handle and backup state") func imported() async throws
  {
    for flags: UInt8 in [0x1d, 0x05] {
      var key = SoftAuthenticator()
      key.userHandle = Base64URL.encode("user 17 of the old system".utf8)
      key.flags = flags
      key.count = 41
      var other = SoftAuthenticator()
      other.userHandle = nil
      let fixture = try Self.fixture(key, other)
      #expect(try fixture.kept.credentials.map(\.name) == ["Phone", "Phone"])
      #expect(try fixture.kept.credentials.first?.signCount == 41)
      key.count = 42
      #expect(try await fixture.assertion(key) == nil)
      #expect(try await fixture.assertion(other) == nil)
      #expect(try await fixture.assertion(SoftAuthenticator()) == "invalid_passkey")
    }
  }

  /// Attack: a copy of the public key lets somebody claim another backup state or user handle later.
  @Test("the first assertion settles what the import did not tell") func settled() async throws {
    var key = SoftAuthenticator()
    key.userHandle = Base64URL.encode("user 17".utf8)
    var fixture = try Self.fixture(key)
    let begun = try await fixture.begin(.prove)
    guard
      case .proved(let proof) = try await fixture.submit(.prove, begun, ["credential": try key.get(try begun.options)])
    else {
      Issue.record("refused")
      return
    }
    switch proof.record {
    case .replace(let bytes), .replaceOnce(let bytes): fixture.record = bytes
    default: Issue.record("not updated")
    }
    let credential = try #require(try fixture.kept.credentials.first)
    #expect(credential.isBackupEligible && credential.isBackedUp && credential.foreign?.isUsed == true)
    #expect(credential.foreign?.userHandle == key.userHandle)
    #expect(try await fixture.assertion(key) == nil)
    for change: (inout SoftAuthenticator) -> Void in [
      { $0.userHandle = Base64URL.encode("user 18".utf8) }, { $0.userHandle = Base64URL.encode("ac_1".utf8) },
      { $0.flags = 0x05 },
    ] {
      var changed = key
      change(&changed)
      #expect(try await fixture.assertion(changed) == "invalid_passkey")
    }
  }

  /// A browser refuses to make a passkey on a device that holds an excluded one.
  @Test("a device with an imported passkey can add one that is made here") func addedBeside() async throws {
    struct Shape: Decodable {
      struct Item: Decodable { let id: String }
      let excludeCredentials, allowCredentials: [Item]?
    }
    func shape(_ open: PasskeyFixture.Open) throws -> Shape {
      try JSONDecoder().decode(Shape.self, from: Data(try open.options.utf8))
    }
    let imported = SoftAuthenticator()
    var fixture = try Self.fixture(imported)
    #expect(try shape(try await fixture.begin(.set)).excludeCredentials?.isEmpty == true)
    let made = SoftAuthenticator()
    try await fixture.add(made)
    #expect(try shape(try await fixture.begin(.set)).excludeCredentials?.map(\.id) == [Base64URL.encode(made.id)])
    let ids = try shape(try await fixture.begin(.prove)).allowCredentials?.map(\.id)
    #expect(Set(ids ?? []) == [Base64URL.encode(imported.id), Base64URL.encode(made.id)])
    #expect(try await fixture.registration(imported) != nil, "the same credential again is refused")
  }

  @Test("a user handle is base64url of at most 64 bytes") func handles() async throws {
    for (handle, isAccepted) in [
      (Base64URL.encode([UInt8](repeating: 1, count: 64)), true),
      (Base64URL.encode([UInt8](repeating: 1, count: 65)), false),
      ("!", false), ("", true),
    ] {
      var key = SoftAuthenticator()
      key.userHandle = handle
      #expect((try await Self.fixture(key).assertion(key) == nil) == isAccepted, "\(handle)")
    }
  }

  @Test("what cannot be imported says why") func refused() throws {
    let key = SoftAuthenticator()
    let good = try Self.json(key)
    #expect(problem("[\(good)]") == nil)
    #expect(problem("[\(try Self.json(key, name: nil, padding: "=="))]") == nil, "without a name, with padding")
    for json in [
      "null", "{}", "[]", good, "[5]", #"[{"id":"AAAA"}]"#,
      "[\(good.replacing("\"counter\":0", with: "\"counter\":-1"))]",
    ] {
      #expect(problem(json)?.hasPrefix("must be a list of 1 to 20 objects") == true, "\(json)")
    }
    #expect(problem("[\(good),\(good)]") == "has the id of passkey 2 twice")
    #expect(problem("[\(good.dropLast()),\"rp\":1}]")?.hasPrefix("has the unknown field `rp`") == true)
    #expect(problem(#"[{"id":"","public_key":"AAAA"}]"#)?.hasPrefix("has an `id` in passkey 1") == true)
    #expect(problem(#"[{"id":"AAAA","public_key":"AAAA"}]"#)?.hasPrefix("has a `public_key` in passkey 1") == true)
    #expect(problem("[\(try Self.json(key, name: "a\\u0007"))]")?.hasPrefix("has a `name` in passkey 1") == true)
    #expect(Passkey().importedField == "passkeys")
  }
}
