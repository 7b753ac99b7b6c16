import MoongateProxy
import ServiceLifecycle

/// Reloads when the certificate or key file changes. Renewal tools write the files without notifying the gateway.
struct CertificateReload: Service {
  private static let interval: Duration = .seconds(1)

  let reload: ConfigurationReload

  func run() async throws {
    await cancelWhenGracefulShutdown {
      var isChanging = false
      while !Task.isCancelled {
        // Certificate and key are written one after the other, so wait for a second without changes.
        if isChanging { await reload.reloadCertificate() }
        isChanging = await reload.certificateHasChanged
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }
}
