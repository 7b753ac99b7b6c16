import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// `moongate init FOLDER`: writes a production configuration from four answers.
struct Init: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a production configuration, and list the next steps.",
    discussion: """
      Asks four questions, or takes the answers as options: the public URL, the service to protect, the store, and how messages are sent. \
      A password in an answer is written to a separate file that only the gateway's user can read. Give it on standard input rather than by an option, \
      because process lists show options. FOLDER must be empty or missing; no file is overwritten. Exit status: 2 if nothing was written.
      """)

  @Argument(help: "The folder for the configuration.") var folder: String
  @Option(help: "The public URL of the gateway: https://auth.example.com.") var publicURL: String?
  @Option(help: "The service to protect: http://127.0.0.1:3000.") var upstream: String?
  @Option(help: "The store: sqlite, or postgres://user@host/database.") var store: String?
  @Option(help: "How messages are sent: smtp://…, twilio://…, or the https:// URL of a webhook.") var messages: String?
  @Option(
    help:
      "The folder for the master key and a SQLite store. Default: data, in the configuration folder.")
  var state = "data"
  @Option(help: "The two-letter country code for phone numbers without +. Default: IN if messages are sent by SMS.")
  var region: String?
  @Option(help: "The site's name in messages and pages. Default: the host of the public URL.") var service: String?

  func run() async throws {
    try SetupFolder.demandEmpty(folder)
    let asked = SetupQuestions()
    let publicURL = try asked.answer(
      "How will people reach the gateway?", "https://auth.example.com", publicURL, SetupAnswers.publicURL)
    let upstream = try asked.answer(
      "Which service does it protect?", "http://127.0.0.1:3000", upstream
    ) { text throws(SetupAnswers.Problem) in try SetupAnswers.upstream(text, gateway: publicURL) }
    let store = try asked.answer("Where does it store its state?", "sqlite", store, SetupAnswers.store)
    let messages = try asked.answer("How does it send messages?", "smtp://localhost", messages) {
      text throws(SetupAnswers.Problem) in
      try SetupAnswers.messages(text, host: publicURL.host)
    }
    let answers = SetupAnswers(publicURL: publicURL, upstream: upstream, store: store, messages: messages)
    let files = SetupFolder(
      answers, state: state, region: region ?? answers.defaultRegion, service: service ?? publicURL.host)
    let written = try files.write(to: folder)
    // Check the written configuration in the same way as a start.
    let judged = await ConfigurationFolder(path: folder, providers: try Providers.registry()).load()
    if case .failure(let refused) = judged {
      written.remove()
      let list = refused.problems.map { "\n  \(SetupAnswers.sentence(for: $0))" }.joined()
      throw StartProblem(
        "Nothing was written, because the gateway would refuse this configuration.\(list)", status: .couldNotRun)
    }
    let secrets = files.secrets.map { "\(folder)/\($0)" } + (files.secrets.isEmpty ? [] : ["\(folder)/secrets"])
    let user = ServiceUser.giveSecrets(secrets)
    ServiceUser.allowReading(([folder] + written.folders + written.files).filter { !secrets.contains($0) })
    // Root owns the configuration, so the service could not create the folder of its key and store.
    if user != nil {
      do throws(StartProblem) {
        if let made = try SetupFolder.makeState(state, in: folder) { ServiceUser.giveSecrets([made]) }
      } catch {
        written.remove()
        throw StartProblem("Nothing was written. \(error.sentence)", status: .couldNotRun)
      }
    }
    print("Wrote \(files.files.count) files to \(folder); `moongate check` finds nothing wrong with them.")
    let steps = NextSteps(
      folder: folder, answers: answers, state: state, user: user, tools: .found, isRegionGiven: region != nil)
    print(steps.text)
  }
}

/// Asks for the answers that the command line does not give.
struct SetupQuestions {
  /// - Parameters:
  ///   - standard: the default, for an empty line.
  ///   - given: the answer on the command line.
  ///   - judge: parses an answer.
  /// - Throws: an error with exit status 2 if the answer on the command line is invalid or if there is no answer.
  func answer<Value>(
    _ question: String, _ standard: String, _ given: String?, _ judge: (String) throws(SetupAnswers.Problem) -> Value
  ) throws(StartProblem) -> Value {
    if let given {
      do { return try judge(given) } catch { throw StartProblem(error.sentence, status: .couldNotRun) }
    }
    while true {
      LineLog.standardError("\(question) [\(standard)] ")
      guard let line = readLine() else {
        throw StartProblem("There is no answer to \"\(question)\": nothing was written.", status: .couldNotRun)
      }
      let said = line.trimmingCharacters(in: .whitespaces)
      do {
        return try judge(said.isEmpty ? standard : said)
      } catch {
        guard isatty(STDIN_FILENO) == 1 else { throw StartProblem(error.sentence, status: .couldNotRun) }
        LineLog.standardError("\(error.sentence)\n")
      }
    }
  }
}
