import MoongateSDK
import Synchronization

/// What policies were asked about while a shadow looked on: enough to ask two generations again.
struct WatchedAct: Sendable {
  enum Question: Sendable {
    case step(WatchedStep)
    /// Whether a condition holds: `when`.
    case condition(FunctionName, Facts)
    /// Somebody began a flow of this name.
    case flow(String)
    case request(WatchedRequest)
  }

  let decision: DecisionID
  let at: Timestamp
  let question: Question
}

/// A send, a try, a begin or a registration.
struct WatchedStep: Sendable {
  let action: LimitAction
  let subject: StepSubject
  let facts: Facts
  /// When the code at hand expired, where it has.
  let expiredAt: Timestamp?
  /// Whether a secret is made, not proved: then what counts by person does not apply.
  var isSetting = false
  /// How it ended; nil: nothing came of it.
  var outcome: Settlement.Outcome?
}

/// A request to a service.
package struct WatchedRequest: Sendable {
  let facts: RequestFacts
  let address: ClientAddress
  let userAgent: String?
  let session: SessionSnapshot?

  /// - Parameter session: alive at the moment; nil: nobody's.
  package init(facts: RequestFacts, address: ClientAddress, userAgent: String?, session: SessionSnapshot?) {
    self.facts = facts
    self.address = address
    self.userAgent = userAgent
    self.session = session
  }
}

/// Collects what one request of a flow asks policies about. Made only while a shadow looks on.
final class RequestWatch: Sendable {
  private struct State {
    var latest: (subject: StepSubject, facts: Facts, expiredAt: Timestamp?, verify: Int)?
    var questions: [WatchedAct.Question] = []
    /// Where the step of each reservation stands.
    var places: [ReservationID: Int] = [:]
  }

  /// One request asks no more; what is beyond is not looked at.
  private static let most = 64
  private let state = Mutex(State())

  var questions: [WatchedAct.Question] { state.withLock { $0.questions } }

  /// The limits of a step were settled: what is asked next is about it.
  func settled(_ subject: StepSubject, _ facts: Facts, expiredAt: Timestamp?, verify: Int) {
    state.withLock { $0.latest = (subject, facts, expiredAt, verify) }
  }

  /// The step is charged, or refused before it is.
  /// - Parameters:
  ///   - charged: how many limits count it; nil: it was refused before.
  ///   - reservation: by which it is settled.
  func asked(_ action: LimitAction, charged: Int? = nil, by reservation: ReservationID? = nil) {
    state.withLock { state in
      guard let latest = state.latest, state.questions.count < Self.most else { return }
      var step = WatchedStep(action: action, subject: latest.subject, facts: latest.facts, expiredAt: latest.expiredAt)
      step.isSetting = action == .verify && (charged.map { $0 < latest.verify } ?? false)
      if let reservation { state.places[reservation] = state.questions.count }
      state.questions.append(.step(step))
    }
  }

  /// How a charged step ends. Several ends may be prepared, of which the one that says most is meant.
  func ended(_ reservation: ReservationID, _ outcome: Settlement.Outcome) {
    state.withLock { state in
      guard let place = state.places[reservation], case .step(var step) = state.questions[place] else { return }
      if (step.outcome?.weight ?? -1) < outcome.weight { step.outcome = outcome }
      state.questions[place] = .step(step)
    }
  }

  func asked(_ question: WatchedAct.Question) {
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
