import MoongateCore
import MoongateSDK

/// The refusal of a request: the response's contents, and the record for the operator.
struct RequestRefusal {
  let code: RefusalCode
  /// For the operator, under `/decisions/{id}`. Never contains the query.
  var detail: [String: String]
  /// Replaces the sentence of the code in the response.
  var sentence: String?
  /// The step that the session lacks.
  var provider: ProviderName?
  /// The flow in which that step can be passed.
  var flow: String?
  /// The groups of which the requester is in none.
  var groups: GroupRequirement?
  /// The signed-in user, if the page names the user.
  var visitor: RefusedVisitor?
  /// The account for the record, if it is known.
  var account: String?
  var retryAfter: Duration?
  /// The rate that the request exceeds.
  var excess: RateExcess?
  /// Why the policy failed. It is logged.
  var fault: PolicyFault?
  /// Why no upstream responded. It is counted and logged.
  var failure: (cause: UpstreamFailureCause, reason: String, route: RoutePlan)?

  init(_ code: RefusalCode, detail: [String: String] = [:]) {
    self.code = code
    self.detail = detail
  }

  /// - Parameters:
  ///   - reason: for the operator.
  ///   - sentence: for the client.
  init(_ code: RefusalCode, reason: String, sentence: String? = nil, account: String? = nil) {
    self.init(code, detail: ["reason": reason])
    self.sentence = sentence
    self.account = account
  }

  /// The refusal with further detail for the operator. Existing entries have priority.
  func about(_ request: [String: String]) -> Self {
    var refusal = self
    refusal.detail.merge(request) { own, _ in own }
    return refusal
  }
}
