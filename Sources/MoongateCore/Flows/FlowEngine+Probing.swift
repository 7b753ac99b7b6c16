import Logging
import MoongateSDK

// Tries the sites at which users sign in.

extension FlowEngine {
  /// Tries the site of each configured provider once. One that does not answer as it should is a warning: it may be
  /// down just now, and other ways to sign in work.
  package func probeSites() async {
    let request = maintenanceRequest(generations.current)
    for provider in (request.generation.registry ?? providers).all {
      let name = provider.descriptor.name
      guard request.generation.policies[name] != nil, let site = provider as? any SiteProbing else { continue }
      let redaction = calls.redaction(of: name, nil, [], request)
      do { _ = try await site.probe(with: calls.tools(for: site, redaction, request)) } catch {
        if Task.isCancelled { return }
        logger.warning(
          "the site of a provider does not answer as it should, so users cannot sign in there",
          metadata: ["provider": "\(name)", "fault": "\(redaction("\(error)"))"])
      }
    }
  }
}
