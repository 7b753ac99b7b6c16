import Foundation
import MoongateCore
import MoongateProgram
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The lines of `moongate account import`.
@Suite struct AccountLineTests {
  private func problems(_ line: String, without missing: ProviderName? = nil) throws -> [String] {
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    defer { try? store.close() }
    let administration = AccountAdministration(
      store: store, providers: try Providers.registry(),
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), clock: ManualClock(), random: SystemRandom())
    let reader = AccountLine(
      administration: administration, region: "IN", allowsWeak: false, isConfigured: { $0 != missing },
      open: { _, _ in ExportedRecords(records: [:]) })
    do throws(AccountLine.Problems) {
      _ = try reader.read(Data(line.utf8))
      return []
    } catch {
      return error.sentences
    }
  }

  private static let identifiers = #""identifiers":[{"email":"asha@example.com","verified":true}]"#

  /// Attack: an account loses its second factor, because no policy asks for what was imported.
  @Test func aFactorOfAProviderThatIsNotConfiguredIsRefused() throws {
    let line = #"{\#(Self.identifiers),"totp":{"secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}}"#
    #expect(try problems(line).isEmpty)
    #expect(
      try problems(line, without: "totp") == [
        "it has a record of `totp`, and gateway.lua configures no such provider: add it first"
      ])
  }

  /// A flow that stores the record again would fail.
  @Test func aRecordThatIsTooLargeIsRefused() throws {
    // {1: 2, 3: -7, -1: 1, -2: x, -3: y, 100: 50,000 bytes}: the base point of P-256, and a member without a meaning.
    let x = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    let y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
    func key(_ padding: Int) -> String {
      var bytes: [UInt8] = [padding == 0 ? 0xa5 : 0xa6, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32] + Self.bytes(x)
      bytes += [0x22, 0x58, 32] + Self.bytes(y)
      if padding > 0 {
        bytes += [0x18, 100, 0x59, UInt8(padding >> 8), UInt8(padding & 0xff)] + [UInt8](repeating: 0, count: padding)
      }
      return Base64URL.encode(bytes)
    }
    func line(_ padding: Int) -> String {
      #"{\#(Self.identifiers),"passkeys":[{"id":"AAAA","public_key":"\#(key(padding))"}]}"#
    }
    #expect(try problems(line(0)).isEmpty)
    let told = try problems(line(50_000))
    #expect(told == ["its record of `passkey` is larger than 65536 bytes: leave some of it out"], "\(told)")
  }

  @Test func accountsWithoutAVerifiedIdentifierAreCounted() {
    func account(_ verified: Bool...) -> ImportedAccount {
      ImportedAccount(
        identifiers: verified.enumerated().map { index, isVerified in
          ImportedAccount.Name(
            identifier: Identifier(kind: .email, value: "a\(index)@example.com", display: "a\(index)@example.com"),
            isVerified: isVerified)
        })
    }
    #expect(ImportAccounts.advice(unverified: [account(true), account(false, true)]).isEmpty)
    #expect(
      ImportAccounts.advice(unverified: [account(false), account(true)]).first?
        .hasPrefix("1 account has no verified identifier: ") == true)
    #expect(
      ImportAccounts.advice(unverified: [account(false), account()]).first?
        .hasPrefix("2 accounts have no verified identifier: ") == true)
  }

  @Test func claimsThatTheImportTakesAreCounted() {
    func account(_ address: String, _ isVerified: Bool) -> ImportedAccount {
      let email = Identifier(kind: .email, value: address, display: address)
      return ImportedAccount(identifiers: [ImportedAccount.Name(identifier: email, isVerified: isVerified)])
    }
    let owner = account("a@example.com", true)
    let claimant = account("a@example.com", false)
    #expect(ImportAccounts.advice(contested: [owner, account("b@example.com", false)]).isEmpty)
    #expect(ImportAccounts.advice(contested: [claimant, claimant]).isEmpty)
    #expect(
      ImportAccounts.advice(contested: [claimant, owner]).first?
        .hasPrefix("1 account claims an address that another account of the file has verified. It loses ") == true)
    #expect(
      ImportAccounts.advice(contested: [claimant, owner, claimant]).first?.hasPrefix("2 accounts claim an address ")
        == true)
  }

  private static func bytes(_ hex: String) -> [UInt8] {
    stride(from: 0, to: hex.utf8.count, by: 2).compactMap { UInt8(hex.dropFirst($0).prefix(2), radix: 16) }
  }
}
