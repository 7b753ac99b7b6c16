import MoongateCore
import NIOCore

/// Makes the access tokens that services of routes with `bearer` receive, for one event loop. `CachedSession` keeps
/// them.
///
/// The rules of an app and the signature of a token can take milliseconds, so they do not run on the event loop.
final class BearerTokens {
  private static let maxWaiting = 1024

  private struct Question: Hashable {
    let session: ObjectIdentifier
    let key: BearerKey
  }

  private let shared: SharedState
  private let eventLoop: any EventLoop
  private var asking: [Question: [(SessionCache.LookupResult) -> Void]] = [:]
  private var waiting = 0

  init(_ shared: SharedState, eventLoop: any EventLoop) {
    self.shared = shared
    self.eventLoop = eventLoop
  }

  /// Asks for a token. The callback runs later on the event loop, with the session, which then has the token or knows
  /// that there is none.
  func ask(
    _ asked: BearerQuestion, for session: CachedSession, _ callback: @escaping (SessionCache.LookupResult) -> Void
  ) {
    guard waiting < Self.maxWaiting else { return callback(.unavailable) }
    waiting += 1
    // Requests after a change of the session have another object, so none of them joins a question from before.
    let question = Question(session: ObjectIdentifier(session), key: asked.key)
    if asking[question] != nil {
      asking[question]?.append(callback)
      return
    }
    asking[question] = [callback]
    let promise = eventLoop.makePromise(of: ServiceAuthorization?.self)
    let (dependencies, snapshot) = (shared.dependencies, session.snapshot)
    let call = AppCall(
      generation: dependencies.generation.current, client: asked.client,
      decision: DecisionID(from: dependencies.random))
    Task { promise.succeed(await dependencies.apps?.serviceToken(of: asked.app, for: snapshot, call)) }
    promise.futureResult.assumeIsolated().whenComplete { result in
      session.bearers.keep(asked.key, self.token(try? result.get(), asked), at: dependencies.clock.now())
      let callbacks = self.asking.removeValue(forKey: question) ?? []
      self.waiting -= callbacks.count
      for callback in callbacks { callback(.live(session)) }
    }
  }

  private func token(_ answer: ServiceAuthorization?, _ asked: BearerQuestion) -> BearerLines.Token? {
    var reason = "this gateway has no apps"
    var rule = ""
    switch answer {
    case .token(let text, let end): return (text, end)
    case .refused(let verdict):
      reason = verdict.reason
      let judge = asked.app.rule(of: verdict)
      rule = judge.name + (judge.location.map { " (\($0))" } ?? "")
      if case .judged(.failed(let fault)) = verdict {
        shared.dependencies.policyFaults.report(fault, rule: judge.name, decision: nil)
      }
    case .failed(.policy(let fault)):
      reason = "policy_error"
      shared.dependencies.policyFaults.report(fault, rule: asked.app.claims?.path, decision: nil)
    case .failed(.store(let fault)): reason = "\(fault)"
    case .failed(.oauth(let error)): reason = error.description
    case nil: break
    }
    let isRefusal = if case .refused = answer { true } else { false }
    shared.missingTokens.report(
      LoggedMissingToken(
        app: asked.app.id, route: asked.route.location.description, reason: reason, rule: rule, isRefusal: isRefusal))
    return nil
  }
}
