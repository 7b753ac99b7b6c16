/// A provider whose name and button depend on its settings, such as on the site that they choose.
public protocol SettingsNaming: Provider {
  /// - Parameter settings: values of the declared types.
  /// - Returns: nil for the words of the descriptor. The operator's `label` or `title` takes precedence.
  func naming(for settings: StepSettings) -> SiteNaming?
}

/// How pages name another site. Translated if the provider's words contain the texts.
public struct SiteNaming: Sendable, Equatable {
  /// In lists: `Microsoft`.
  public let name: String
  /// The label of its button: `Continue with Microsoft`.
  public let button: String

  public init(name: String, button: String) {
    self.name = name
    self.button = button
  }
}
