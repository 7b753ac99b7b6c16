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
  /// Whether the configuration is accepted all the same.
  public let isWarning: Bool

  public init(_ setting: String, _ message: String, isWarning: Bool = false) {
    self.setting = setting
    self.message = message
    self.isWarning = isWarning
  }
}
