import Logging
import MoongateSDK

// Delivers codes, and reports the deliveries that failed.

/// A failed delivery of a code.
struct FailedDelivery: Sendable {
  /// The redacted error, for the operator.
  let fault: String
  /// The provider's declared reason, if it gave one.
  let reason: DeliveryReason?
}

extension CodeStep {
  /// Returns the closure that delivers the code. It returns the failure, if any.
  func deliverer(
    _ provider: any CodeProvider, _ code: String, _ texts: CodeTexts, _ identifier: Identifier,
    _ request: RequestContext
  ) -> @Sendable () async -> FailedDelivery? {
    let gateway = request.generation.gateway
    let language = request.messageLanguage ?? messengers.language(request.client.languages, request)
    let message = CodeMessage(
      code: code, text: texts.text(code: code, service: gateway.service, in: language),
      domainBoundLine: "@\(gateway.publicURL.host) #\(code)",
      service: gateway.service, language: language.tag, translate: { language.translated($0) })
    let name = provider.descriptor.name
    let redaction = calls.redaction(of: name, nil, [identifier], code: message, request)
    let tools = calls.tools(for: provider, redaction, request)
    let descriptor = registry(request).descriptor(name)
    return { [metrics = calls.metrics, sendMetrics] () async in
      let start = ContinuousClock.now
      do throws(DeliveryFault) {
        try await provider.deliver(message, to: identifier, with: tools)
        metrics.record(.deliver, of: name, .delivered, since: start)
        sendMetrics.record(name, to: identifier, isDelivered: true)
        return nil
      } catch {
        // An undeclared reason is treated as a fault, because it may reveal something about the user.
        let reason = error.declared.flatMap { descriptor?.deliveryReason($0) }
        sendMetrics.record(name, to: identifier, isDelivered: false)
        metrics.record(.deliver, of: name, reason == nil ? .fault : .undeliverable, since: start)
        // The text is redacted because it goes into the log and the audit trail.
        return FailedDelivery(fault: redaction(error.reason), reason: reason)
      }
    }
  }

  /// Logs a failed delivery.
  /// - Returns: its audit event.
  func report(_ failed: FailedDelivery, of step: StepRecord, _ flow: FlowTransaction) -> AuditEvent {
    var event = event(.deliveryFailed, flow, step: step)
    var metadata: Logger.Metadata = [
      "provider": "\(step.provider)", "fault": "\(failed.fault)", "decision": "\(event.id)",
      "request": "\(flow.request.client.decision)",
    ]
    if let reason = failed.reason {
      event.detail["reason"] = reason.reason.rawValue
      event.detail["fault"] = failed.fault
      metadata["reason"] = "\(reason.reason.rawValue)"
    } else {
      event.detail.merge(calls.faultDetail(failed.fault, of: step.provider, in: .deliver, at: clock.now())) { $1 }
    }
    logger.log(level: failed.reason == nil ? .error : .notice, "a code could not be delivered", metadata: metadata)
    return event
  }
}
