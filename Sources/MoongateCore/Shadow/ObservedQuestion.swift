import MoongateSDK
import Synchronization

/// A question to policies that a shadow has recorded, with everything needed to ask two generations again.
struct ObservedQuestion: Sendable {
  enum Question: Sendable {
    case step(ObservedStep)
    /// Whether a `when` condition holds.
    case condition(FunctionName, Facts)
    /// Whether `admit` of accounts.lua lets a flow open a session.
    case admission(Facts)
    /// A client began the flow of this name, with an invitation or without one.
    case flow(String, isInvited: Bool)
    /// A flow has verified a user without an account, and may create one.
    case registration(ObservedRegistration)
    case request(ObservedRequest)
  }

  let decision: DecisionID
  let at: Timestamp
  let question: Question
}

/// An account that a flow is about to create.
struct ObservedRegistration: Sendable {
  let flow: String
  /// The identifiers that were verified.
  let verified: [Identifier]
  let isInvited: Bool
}

/// A send, an attempt, a begin or a registration.
struct ObservedStep: Sendable {
  let action: LimitAction
  var subject: StepSubject
  var facts: Facts
  /// When the current code expired, if it has.
  let expiredAt: Timestamp?
  /// Whether a secret is set and not proved. Limits that count by user then do not apply.
  var isSetting = false
  /// The outcome; nil if the step was refused before it was charged.
  var outcome: Settlement.Outcome?
}

/// A request to a service.
package struct ObservedRequest: Sendable {
  let facts: RequestFacts
  let address: ClientAddress
  let userAgent: String?
  let session: SessionSnapshot?

  /// - Parameter session: the live session; nil if none exists.
  package init(facts: RequestFacts, address: ClientAddress, userAgent: String?, session: SessionSnapshot?) {
    self.facts = facts
    self.address = address
    self.userAgent = userAgent
    self.session = session
  }
}

/// Collects the questions to policies in one request of a flow. Only created while a shadow is active.
final class RequestWatch: Sendable {
  struct State: Sendable {
    fileprivate var latest: (subject: StepSubject, facts: Facts, expiredAt: Timestamp?, verify: Int)?
    fileprivate var questions: [ObservedQuestion.Question] = []
    /// The index of each reservation's step in `questions`.
    fileprivate var places: [ReservationID: Int] = [:]
  }

  /// The maximum number of questions per request. Further ones are ignored.
  private static let most = 64
  private let state = Mutex(State())

  /// Everything that was recorded so far.
  var recorded: State {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  var questions: [ObservedQuestion.Question] { state.withLock { $0.questions } }

  /// Records that the limits of a step were resolved. The next questions are about that step.
  func settled(_ subject: StepSubject, _ facts: Facts, expiredAt: Timestamp?, verify: Int) {
    state.withLock { $0.latest = (subject, facts, expiredAt, verify) }
  }

  /// Records a step that was charged, or refused before that.
  /// - Parameters:
  ///   - charged: the number of limits that count it; nil if it was refused before being charged.
  ///   - reservation: the reservation by which it will be settled.
  func asked(_ action: LimitAction, charged: Int? = nil, by reservation: ReservationID? = nil) {
    state.withLock { state in
      guard let latest = state.latest, state.questions.count < Self.most else { return }
      var step = ObservedStep(action: action, subject: latest.subject, facts: latest.facts, expiredAt: latest.expiredAt)
      step.isSetting = action == .verify && (charged.map { $0 < latest.verify } ?? false)
      if let reservation { state.places[reservation] = state.questions.count }
      state.questions.append(.step(step))
    }
  }

  /// Records the outcome of a charged step. If several outcomes are reported, the most significant one counts.
  func ended(_ reservation: ReservationID, _ outcome: Settlement.Outcome) {
    state.withLock { state in
      guard let place = state.places[reservation], case .step(var step) = state.questions[place] else { return }
      if (step.outcome?.weight ?? -1) < outcome.weight { step.outcome = outcome }
      state.questions[place] = .step(step)
    }
  }

  func asked(_ question: ObservedQuestion.Question) {
    state.withLock { if $0.questions.count < Self.most { $0.questions.append(question) } }
  }
}

extension Settlement.Outcome {
  fileprivate var weight: Int {
    switch self {
    case .refund: 0
    case .refundPerson: 1
    case .success: 2
    case .failure: 3
    }
  }
}
