import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Messages are in the language of the account's owner, not of the client that sent the request.
@Suite struct MessageLanguageTests {
  /// Prefixes every text with the language tag.
  private struct Marked: MessageLanguages {
    struct Language: MessageLanguage {
      let tag: String
      var isRightToLeft: Bool { tag == "ar" }
      func translated(_ english: String) -> String { "[\(tag)] \(english)" }
      func spoken(_ duration: Duration) -> String { "[\(tag)] \(duration.spokenLength)" }
      func device(userAgent: String?) -> String? { userAgent == nil ? nil : "a device" }
    }

    func language(_ wanted: [String], of generation: any PolicyGeneration, providers: [StepWords])
      -> any MessageLanguage
    {
      Language(tag: wanted.first { ["en", "hi", "ar"].contains($0) } ?? "en")
    }
  }

  private func client(_ bench: EngineTestBench, _ languages: [String], device: SecretText? = nil) -> ClientContext {
    var client = bench.client(device: device)
    client.languages = languages
    return client
  }

  private func language(of account: String?, _ bench: EngineTestBench) async throws -> String? {
    try await bench.store.account(try #require(account))?.language
  }

  @Test func codesAreInTheLanguageOfTheRequestUntilTheAccountHasOne() async throws {
    let bench = try await EngineTestBench.full(languages: Marked())
    let made = try await bench.pass("register", EngineTestBench.phone, "911111", by: client(bench, ["xx", "hi"]))
    #expect(bench.delivery.messages.last?.text.hasPrefix("[hi] ") == true)
    #expect(bench.delivery.messages.last?.style?.language == "hi")
    #expect(try await language(of: made.account?.id, bench) == "hi", "the account speaks it from now on")
  }

  /// Attack: somebody who holds the password or the number signs in with a language that the owner cannot read.
  @Test func languageOfAnUnknownDeviceIsNotUsed() async throws {
    let bench = try await EngineTestBench.full(languages: Marked())
    let made = try await bench.pass("register", EngineTestBench.phone, "911111", by: client(bench, ["hi"]))
    _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: client(bench, ["ar"]))
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.messages.last?.style?.language == "hi", "the code goes to the owner")
    let notice = try #require(bench.delivery.notices.last)
    #expect(notice.style?.language == "hi" && notice.text.contains("[hi] Someone signed in"))
    #expect(!notice.text.contains("[ar]") && notice.style?.isRightToLeft == false)
    #expect(try await language(of: made.account?.id, bench) == "hi")
  }

  @Test func aKnownDeviceChangesTheLanguage() async throws {
    let bench = try await EngineTestBench.full(languages: Marked())
    let made = try await bench.pass("register", EngineTestBench.phone, "911111", by: client(bench, ["hi"]))
    let device = try #require(made.deviceToken)
    _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: client(bench, ["ar"], device: device))
    #expect(bench.delivery.messages.last?.style?.language == "ar")
    #expect(try await language(of: made.account?.id, bench) == "ar")
    _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: client(bench, [], device: device))
    #expect(try await language(of: made.account?.id, bench) == "ar", "a request that wants no language changes none")
  }

  @Test func newDeviceNoticeContainsNameAndTime() {
    let notice = Notice.newDevice(userAgent: "x", at: Timestamp(milliseconds: 1_000_000_000_000))
    let english = Marked.Language(tag: "hi")
    let mail = notice.text(service: "Wallet", by: .mail, in: english)
    #expect(mail.contains("\n\n[hi] Device: a device\n[hi] Time: 2001-09-09 01:46 UTC\n\n"))
    let sms = notice.text(service: "Wallet", by: .sms, in: english)
    #expect(sms.contains("Device: a device. [hi] Time: 2001-09-09 01:46 UTC. ") && !sms.contains("\n"))
    let unknown = Notice.newDevice(userAgent: nil, at: Timestamp(milliseconds: 0)).text(
      service: "Wallet", by: .mail, in: english)
    #expect(!unknown.contains("Device"), "what is not known is left out")
  }

  /// Attack: a service or a factor that is called `{code}`.
  @Test func placeholdersAreFilledOnce() {
    let language = Marked.Language(tag: "en")
    #expect(language.text("{code} of {service}", ["service": "{code}", "code": "123"]) == "[en] 123 of {code}")
    #expect(language.text("{none} {a}", ["a": "b"]) == "[en] {none} b")
  }
}
