import MoongateConformance
import MoongateSDK
import Synchronization
import Testing

@testable import Passkey

@Suite("Conformance") struct ConformanceTests {
  /// A user with an authenticator that answers the shown ceremonies.
  private final class Person: Sendable {
    private let key = Mutex(SoftAuthenticator())

    func forget() { key.withLock { $0 = SoftAuthenticator() } }

    func answer(_ step: ConformanceSubject.Step, isRight: Bool) throws -> [String: InputValue] {
      for case .ceremony(let call, let options) in step.shown {
        var own = key.withLock { $0 }
        own.userHandle = nil
        if !isRight { own.signs = { $0.dropLast() + [($0.last ?? 0) ^ 1] } }
        return ["credential": .text(try call == .create ? own.create(options) : own.get(options))]
      }
      if let choice = step.fields.first?.choices?.first { return [step.fields[0].name: .text(choice.value)] }
      return [:]
    }
  }

  @Test("a provider of single-use ceremonies conforms") func holds() async {
    let person = Person()
    var subject = ConformanceSubject(of: Passkey().descriptor)
    subject.setsUp = true
    subject.right = { step in try person.answer(step, isRight: true) }
    subject.wrong = { step in try person.answer(step, isRight: false) }
    subject.malformedSubmits = [["credential": .text("{}")], ["credential": .other], ["credential": .flag(true)]]
    subject.lifetime = .milliseconds(Options.lifetime)
    subject.reset = { person.forget() }
    let report = await Conformance.run(Passkey(), subject)
    #expect(report.findings == [])
  }
}
