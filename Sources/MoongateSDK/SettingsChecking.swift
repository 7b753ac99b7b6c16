/// A provider that checks its settings beyond their types, such as two fields that contradict each other. The findings
/// are reported with the file and line of the setting when the configuration is loaded.
public protocol SettingsChecking: Provider {
  /// The findings, in the order of the settings. Must not contact other sites.
  /// - Parameter settings: values of the declared types. A secret may be missing.
  func findings(in settings: StepSettings) -> [SettingFinding]
}

/// What a provider finds in its settings.
public struct SettingFinding: Sendable, Equatable {
  /// The name of the setting.
  public let setting: String
  /// What is wrong and what to do, to be read behind the setting's name: `must be a domain, such as "example.com"`.
  /// Must not contain a secret.
  public let message: String
  public let effect: Effect

  /// What follows for the configuration.
  public enum Effect: Sendable, Equatable {
    case refused
    /// It is accepted all the same.
    case warning
    /// It is accepted while no other machine reaches the gateway, as a site of a demo that signs in anyone. The gateway
    /// then creates the provider's secret files that do not exist, for the demo's site.
    case localOnly
  }

  public init(_ setting: String, _ message: String, _ effect: Effect = .refused) {
    self.setting = setting
    self.message = message
    self.effect = effect
  }
}
