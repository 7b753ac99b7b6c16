import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// Programs that are refused in the handshake, with a sentence that says what to do.
@Suite struct HandshakeTests {
  private func sentences(_ specification: ProgramSpecification, _ fixture: ProgramFixture) -> [String] {
    switch fixture.programs.introduce([specification])[0] {
    case .success: []
    case .failure(let problem): problem.sentences
    }
  }

  static let answers: [(introduction: String, words: String)] = [
    (
      #"{"protocol": 2}"#,
      "speaks version 2 of the protocol, and this gateway version 1: update the gateway, or let the program answer `protocol`: 1"
    ),
    (#"{"protocol": 0}"#, "speaks version 0 of the protocol, and this gateway version 1: update the program"),
    (#"{"protocol": 2, "shape": "a shape of version 2", "policy": 7}"#, "speaks version 2 of the protocol"),
    (#"{}"#, "`result.protocol` is missing"),
    ("7", "sent an invalid answer to `hello`"),
    (#"{"protocol": 1, "policy": "x"}"#, "`result.shape` is missing"),
    (#"{"protocol": 1, "shape": "code", "policy": "x"}"#, "is a code provider without `identifier`"),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "presentation": {"kind": "code_entry"}}"#,
      "has the presentation `code_entry` but is not a code provider"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "presentation": {"kind": "digit_pad", "count": 6}}"#,
      "its `digit_pad` needs `count`, `current` and `new`"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "entrance": {"kind": "field"}}"#,
      "its `entrance` of kind `field` needs `identifier`: \"phone\" or \"email\""
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "entrance": {"kind": "link"}}"#,
      "its `entrance` needs `label`"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "role": ["owner"]}"#,
      "its `role` names `owner`: use \"identifier\", \"factor\", \"several\" and \"finds_account\""
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "flows": {"vault_set": ""}}"#,
      "its flow `vault_set` must be the text of a flows/NAME.lua, at most 32 KiB"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "words": {"title": "x", "notices": {"prove": {"subject": "a", "event": "b"}}}}"#,
      "its `words` have a notice for `prove`: use set, change or disable"
    ),
    (
      #"{"protocol": 1, "shape": "code", "identifier": "phone", "policy": "x"}"#, "which this gateway cannot read"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "A b", "kind": "text"}]}"#,
      "the submit field `A b` is ill-formed"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}] * 2}"#,
      "the submit field `a` is declared twice"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "settings": [{"name": "env", "kind": "text"}]}"#,
      "`env`, which is reserved for the gateway"
    ),
    // Attack: a program reads what the operator writes for the gateway, by a setting within it.
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "settings": [{"name": "env.token", "kind": "text"}]}"#,
      "declares a setting `env.token`: a name has no dot"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "settings": [{"name": "bind.dn", "kind": "text"}]}"#,
      "declares a setting `bind.dn`: a name has no dot"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "settings": [{"name": "n", "kind": "number", "maximum": 3, "default": 5}]}"#,
      "the default of the setting `n` does not fit its kind"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "outcomes": [{"reason": "No!", "sentence": "x"}]}"#,
      "is not a valid outcome reason"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "words": {"title": "a\nb"}}"#,
      "its words must be plain text"
    ),
    (
      #"{"protocol": 1, "shape": "code", "identifier": "email", "policy": "x", "facts": [{"name": "floor", "kind": "text"}]}"#,
      "is a code provider with `facts`"
    ),
    (
      #"{"protocol": 1, "shape": "full", "identifier": "email", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "facts": [{"name": "domain", "kind": "text"}]}"#,
      "the fact `email_domain` is declared twice"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "text"}], "facts": [{"name": "a", "kind": "age"}]}"#,
      "sent an invalid answer to `hello`"
    ),
    (
      #"{"protocol": 1, "shape": "full", "policy": "", "submit": [{"name": "a", "kind": "text"}]}"#,
      "`policy` must be the text"
    ),
  ]

  @Test(arguments: answers) func invalidIntroductionIsReported(_ answer: (introduction: String, words: String)) throws {
    let fixture = try ProgramFixture()
    let told = sentences(try fixture.write("def introduce(params): return \(answer.introduction)"), fixture)
    #expect(told.contains { $0.contains(answer.words) }, "\(told)")
  }

  @Test func unrunnableProgramIsReported() throws {
    let fixture = try ProgramFixture()
    #expect(sentences(try fixture.script("#!/bin/sh\n", mode: 0o644), fixture)[0].contains("chmod +x"))
    #expect(
      sentences(try fixture.script("#!/no/such/interpreter\n"), fixture)[0].contains("interpreter in its first line"))
    #expect(sentences(try fixture.script("just text"), fixture)[0].contains("needs a first line like"))
    #expect(sentences(try fixture.script("#!/bin/sh\nexit 7\n"), fixture)[0].contains("ended with status 7"))
    // The last line of its output (the end of a traceback) is more useful than its exit status.
    let last = sentences(
      try fixture.script("#!/bin/sh\nprintf 'one\\nSyntaxError: \\033[1mno' >&2\nexit 7\n"), fixture)[0]
    #expect(last.contains(#"ended with status 7, after it wrote "SyntaxError: [1mno""#), "\(last)")
    let absent = ProgramSpecification(
      name: "word", path: fixture.folder.path("none"), folder: fixture.folder.path, digest: "")
    #expect(sentences(absent, fixture)[0].contains("the file does not exist"))
  }

  @Test func silentProgramTimesOut() throws {
    let fixture = try ProgramFixture { $0.handshake = .milliseconds(300) }
    let started = ContinuousClock.now
    #expect(
      sentences(try fixture.script("#!/bin/sh\nexec sleep 100\n"), fixture)[0].contains(
        "did not answer `hello` within 300ms")
    )
    #expect(ContinuousClock.now - started < .seconds(5))
  }

  @Test func refusedSettingsAreReported() throws {
    let fixture = try ProgramFixture()
    let specification = try fixture.write(
      #"""
      old = say
      def say(message):
          if message.get("result") == "no": message = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "the hub knows no such token"}}
          old(message)
      def configure(params): return "no"
      """#)
    let introduced = try fixture.programs.introduce([specification])[0].get()
    do {
      _ = try fixture.programs.configure(introduced, values: [:], secrets: [:])
      Issue.record("a problem")
    } catch {
      #expect(error.sentences == ["refused its settings: the hub knows no such token"])
    }
  }

  @Test func anEntryThatDidNotChangeKeepsItsProgram() async throws {
    let fixture = try ProgramFixture()
    let specification = try fixture.write(
      #"def answer(method, params): return {"ask": {"fields": [], "state": str(os.getpid())}}"#)
    let first = try fixture.start(specification, values: ["a": 1])
    let same = try fixture.start(specification, values: ["a": 1])
    let other = try fixture.start(specification, values: ["a": 2])
    #expect(try await pid(first) == pid(same))
    #expect(try await pid(first) != pid(other))
  }

  @Test func replacedProgramExitsAfterItsLastUse() async throws {
    let fixture = try ProgramFixture { $0.linger = .milliseconds(200) }
    let tells = #"def answer(method, params): return {"ask": {"fields": [], "state": str(os.getpid())}}"#
    let old = try #require(try fixture.start(try fixture.write(tells, as: "old.py")) as? any FullProvider)
    let new = try #require(try fixture.start(try fixture.write("", as: "new.py")) as? any FullProvider)
    fixture.programs.keep(only: [new])
    // Calls that began with the old program are still served by it.
    let pid = try #require(Int32(try await self.pid(old)))
    #expect(try await holds(within: .seconds(10)) { kill(pid, 0) != 0 })
    await #expect(throws: ProgramFault.stopped) { try await old.judge("open") }
    #expect(try await new.judge("open").isProof)
  }

  private func pid(_ provider: any Provider) async throws -> String {
    let full = try #require(provider as? any FullProvider)
    guard case .ask(_, let state, _) = try await full.begin(.some(), .words([:])) else { return "" }
    return String(decoding: state, as: UTF8.self)
  }
}
