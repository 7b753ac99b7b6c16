import MoongateConformance
import MoongateSDK

/// A full provider with two questions. Tests break its parts one by one.
struct ToyRounds: FullProvider {
  static let first = InputField(name: "first", kind: .text)
  static let second = InputField(name: "second", kind: .text)
  static let answers = ["first": "a quiet pigeon", "second": "a loud goose"]

  /// The fields of the first round.
  var asks: [InputField] = [first]
  /// Whether the first answer is judged together with the second.
  var judgesAtEnd = false
  /// The round after a wrong answer; nil to keep the same round open.
  var then: (@Sendable (_ isFirst: Bool) -> StepAnswer.Round)?
  /// Whether the rounds never end.
  var isEndless = false
  /// Whether it also reads the first answer in the second round.
  var readsBoth = false

  let descriptor = ProviderDescriptor(
    name: "toy", beginFields: [], submitFields: [first, InputField(name: "second", kind: .text, isRequired: false)],
    settings: [],
    policy: PolicySource(file: "toy.lua", text: ToyChannel.goodPolicy), identifierKinds: [],
    outcomes: [Outcome("wrong_answer", "Wrong.")])

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(asks, state: Array("1".utf8))
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let parts = String(decoding: step.state, as: UTF8.self).split(
      separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.first == "1" {
      let typed = (try? input.text("first")) ?? ""
      let isRight = typed == Self.answers["first"]
      guard isRight || judgesAtEnd else { return refused(isFirst: true) }
      return .ask([Self.second], state: Array("2;\(isRight)".utf8))
    }
    if readsBoth { _ = try input.text("first") }
    if isEndless { return .ask([Self.second], state: step.state) }
    guard parts.last == "true", try input.text("second") == Self.answers["second"] else {
      return refused(isFirst: false)
    }
    return .proved(Proof())
  }

  private func refused(isFirst: Bool) -> StepAnswer {
    then.map { .refused("wrong_answer", then: $0(isFirst)) } ?? .refused("wrong_answer")
  }

  static let subject: ConformanceSubject = {
    var subject = ConformanceSubject(of: ToyRounds().descriptor)
    subject.answers(
      right: answers.mapValues { .fixed(.text($0)) },
      wrong: ["first": .fixed(.text("a loud penguin")), "second": .fixed(.text("a quiet gull"))])
    return subject
  }()
}
