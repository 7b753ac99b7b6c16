import MoongateCore
import MoongateSDK

extension WaitModel {
  /// More than five parameters: the values of the page that differ between requests.
  /// - Parameters:
  /// - wait: the time until the next poll.
  /// - others: the other choices of the step that need no input to begin.
  init(
    _ form: StepForm, _ step: StepView, wait: Duration, _ provider: ProviderPage?, others: [ProviderPage],
    _ words: Words, here: String
  ) {
    let spoken = words.withTranslations(of: provider?.descriptor.words)
    heading = provider?.title(spoken) ?? words["confirm_title"]
    parts = step.shown.flatMap { StepModel.Part.parts(of: $0, spoken) }
    let isTold = parts.contains { $0.text != nil }
    instruction =
      isTold
      ? nil : provider?.descriptor.words.flatMap { $0.instruction.isEmpty ? nil : spoken.translated($0.instruction) }
    id = form.id ?? ""
    self.here = here
    back = StepModel.back(form)
    milliseconds = wait.wholeMilliseconds
    seconds = wait.retryAfterSeconds
    self.others = others.map {
      StepModel.Choice(name: $0.name.rawValue, label: words.text("use_other", ["name": $0.shortName(words)]))
    }
    canSkip = step.isSkippable
  }
}
