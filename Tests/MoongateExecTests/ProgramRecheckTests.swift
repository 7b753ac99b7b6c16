import Foundation
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateExec

/// Programs that are asked about an identity again.
@Suite struct ProgramRecheckTests {
  private static let frame = #"""
    def introduce(params):
        return {"protocol": 1, "shape": "full", "federated": True, "recheck": True,
                "facts": [{"name": "floor", "kind": "text"}],
                "policy": "return policy \"%s\" {}" % params["name"]}

    """#

  private final class Kept: Sendable {
    let states = Mutex<[String]>([])
  }

  private let kept = Kept()
  private let tools = StepTools(
    randomBytes: { [UInt8](repeating: 7, count: $0) }, web: NoWeb(), clock: StepClock { 1_000 })

  private func recheck(_ body: String) async throws -> RecheckAnswer {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(Self.frame + body)
    #expect(provider.descriptor.rechecks)
    let identity = Identifier(kind: .federated, value: "\(provider.descriptor.name) 7", display: "Asha")
    let known = RecheckedIdentity(identity: identity, state: Array("old".utf8)) { [kept] state in
      kept.states.withLock { $0.append(String(decoding: state, as: UTF8.self)) }
    }
    return try await (try #require(provider as? any Rechecking)).recheck(known, with: tools)
  }

  @Test func programConfirmsWithNewGroups() async throws {
    let answer = try await recheck(
      """
      def answer(method, params):
          assert method == "recheck" and params["state"] == "old" and params["now"] == 1000, params
          said = {"kind": "federated", "value": params["identity"]["value"], "groups": ["dev"], "attributes": {"floor": "3", "x": "y"}}
          return {"confirmed": said, "state": "new"}
      """)
    guard case .confirmed(let identity) = answer else {
      Issue.record("\(answer)")
      return
    }
    #expect(identity.groups == ["dev"] && identity.attributes == ["floor": "3"] && identity.display == "Asha")
    #expect(kept.states.withLock { $0 } == ["new"])
  }

  @Test func programSaysThatTheUserIsGone() async throws {
    let answer = try await recheck("def answer(method, params): return {\"ended\": \"invalid_grant\"}")
    #expect(answer == .ended(because: "invalid_grant"))
  }

  /// Attack on ourselves: the site has replaced the token, and the rest fails. The new one is kept all the same.
  @Test(arguments: ["\"failed\": \"no answer\"", "\"confirmed\": 3", "\"ended\": None"])
  func stateOfAFailedRecheckIsKept(rest: String) async throws {
    await #expect(throws: ProgramFault.self) {
      try await recheck("def answer(method, params): return {\(rest), \"state\": \"new\"}")
    }
    #expect(kept.states.withLock { $0 } == ["new"])
  }

  /// Attack: a program answers about the identity of another provider, or with nothing.
  @Test(arguments: [
    "{\"confirmed\": {\"kind\": \"federated\", \"value\": \"google 1\"}}",
    "{\"confirmed\": {\"kind\": \"email\", \"value\": \"a@example.com\"}}", "{}",
    "{\"ended\": \"gone\", \"failed\": \"no answer\"}",
  ])
  func otherAnswersAreFaults(answer: String) async throws {
    await #expect(throws: ProgramFault.self) { try await recheck("def answer(method, params): return \(answer)") }
  }
}
