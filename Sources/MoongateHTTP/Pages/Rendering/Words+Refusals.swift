import MoongateCore
import MoongateSDK

extension Words {
  /// The message of a refusal on a page that sends codes or verifies them.
  /// - Parameter failure: the message if the gateway has failed, or if a code could not be sent for a reason that the
  ///   provider does not declare.
  func sentence(of refusal: Refusal, failing failure: String, _ exchange: Exchange) -> String {
    switch refusal.code {
    case .invalidCode, .invalidPassword: sentenceWithAttempts(of: refusal)
    // The countdown of the page shows the time.
    case .resendTooSoon: translated(refusal.code.sentence)
    case .tooManyAttempts, .sendLimit, .rateLimited:
      refusal.retryAfter.map { text("too_many_in", ["wait": wait($0)]) } ?? sentence(of: refusal)
    case .deliveryFailed: deliverySentence(of: refusal, exchange) ?? failure
    case .busy, .storeUnavailable, .policyError: failure
    default: sentence(of: refusal)
    }
  }

  /// The reason for a failed delivery in the provider's words; nil if the provider has declared none.
  private func deliverySentence(of refusal: Refusal, _ exchange: Exchange) -> String? {
    guard let reason = refusal.deliveryReason, let provider = refusal.provider.flatMap(exchange.page(of:)) else {
      return nil
    }
    return withTranslations(of: provider.descriptor.words).translated(reason.sentence)
  }
}
