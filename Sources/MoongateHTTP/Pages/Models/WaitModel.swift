/// What `wait.mustache` shows: a step that waits for an approval on another device. A script polls; without scripts,
/// the page reloads by itself.
struct WaitModel: PageModel {
  static let template = PageTemplate.wait
  static let isForFrames = true

  let heading: String
  let instruction: String?
  let parts: [StepModel.Part]
  let id: String
  /// The address of this page.
  let here: String
  let back: String
  /// The time until the next poll.
  let milliseconds: Int64
  let seconds: Int
  /// Other providers that pass the step.
  let others: [StepModel.Choice]
  let canSkip: Bool
}
