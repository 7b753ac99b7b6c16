import Foundation
import MoongateConformance
import MoongateProgram
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProviderTools

/// Subject files: their contents, messages about mistakes, and computed answers.
@Suite struct ConformanceSubjectFileTests {
  private static func file(_ text: String, in scratch: ScratchFolder) throws -> ConformanceSubjectFile {
    try scratch.write(text, to: "subject.json")
    return try ConformanceSubjectFile(path: scratch.path("subject.json"))
  }

  @Test func aSubjectIsReadFromAFile() throws {
    let scratch = try ScratchFolder()
    let file = try Self.file(
      #"{"spellings":[{"word":"a"}],"right":{"word":"x","flag":true,"n":1},"settings":{"birds":3,"on":false,"names":["a"],"loft":"n"},"one_time":true,"lifetime":"90s","record":"r","old_records":{"1":"o"},"secrets":{"token":"t"},"sends_by":{"site":"url"},"site_answers":{"/a":[1]},"uncompared":["n"]}"#,
      in: scratch)
    var subject = ConformanceSubject(of: Providers.shipped[2].descriptor)
    file.change(&subject)
    #expect(
      subject.spellings == [["word": .text("a")]] && subject.isOneTime && subject.setsUp && subject.uncompared == ["n"])
    #expect(subject.settings == ["birds": 3, "on": false, "names": ["a"], "loft": "n"])
    #expect(
      subject.lifetime == .seconds(90) && subject.record == Array("r".utf8)
        && subject.oldRecords == [1: Array("o".utf8)]
        && subject.secrets == ["token": "t"])
    #expect(file.sendsBy == .site(setting: "url") && file.siteAnswers == ["/a": Array("[1]".utf8)])
  }

  /// Each mistake is reported with its line and how to correct it.
  @Test(arguments: [
    ("", "subject.json:1: this is not a subject file"), ("[]", "subject.json:1: this is not a subject file"),
    ("{\n\"right\": }", "subject.json:2: this is not a subject file"),
    ("{\n  \"rigth\": {}\n}", "subject.json:2: `rigth` is not a member of a subject file; did you mean `right`?"),
    ("{\"right\":1}", "subject.json:1: `right` must be an object: write {\"NAME\": …}."),
    ("{\n\n\"lifetime\": \"soon\"}", "subject.json:3: `lifetime` is not a duration"),
    ("{\"sends_by\":{}}", "`sends_by` must be {\"site\": \"SETTING\"}"),
    ("{\"site_answers\":1}", "`site_answers` must be an object"),
    ("{\"old_records\":{\"one\":\"x\"}}", "`old_records.one` is not a record version: write {\"1\": \"RECORD\"}."),
    ("{\"sets_up\":\"yes\"}", "`sets_up` must be true or false."),
    ("{\"uncompared\":\"a\"}", "`uncompared` must be a list of strings"),
    ("{\"spellings\":[1]}", "subject.json:1: `spellings.0` must be an object"),
    ("{\"settings\":{\"a\":null}}", "`settings.a` must be a string, a number"),
    (
      "{\n  \"right\": {\n    \"a\": 1,\n    \"code\": { \"from_show\": \"list.0\" }\n  }\n}",
      "subject.json:4: `right.code` does not say how it is computed: `from_show` is unknown; did you mean `from_shown`?"
    ),
    (
      "{\"right\": {\"code\": {\n\"from_shown\": \"lists.0\"}}}",
      "subject.json:2: `right.code.from_shown` is not a place in shown content: write \"text\", \"secret\", \"qr\", \"list.0\" or \"ceremony\"."
    ),
    ("{\"wrong\": {\"code\": {\"from_shown\": 1}}}", "`wrong.code.from_shown` must be a string: write \"list.0\"."),
    ("{\"right\": {\"code\": {}}}", "write {\"from_shown\": \"list.0\"}, {\"totp_of\": \"key\"} or"),
    (
      "{\"right\": {\"code\": {\"totp_of\": \"key\", \"from_shown\": \"text\"}}}",
      "names `from_shown` and `totp_of`: use exactly one of them"
    ),
    (
      "{\"right\": {\"code\": {\"totp_of\": \"kee\"}}}",
      "`right.code.totp_of` names `kee`, which is neither shown nor kept"
    ),
    (
      "{\"right\": {\"code\": {\"totp_of\": \"key\", \"digit\": 8}}}",
      "`right.code.digit` is not a member of `totp_of`; did you mean `digits`?"
    ),
    (
      "{\"right\": {\"code\": {\"totp_of\": \"key\", \"digits\": 80}}}",
      "`right.code.digits` must be a whole number from 6 to 10."
    ),
    (
      "{\"right\": {\"code\": {\"totp_of\": \"key\", \"algorithm\": \"MD5\"}}}",
      "`right.code.algorithm` must be one of `SHA1` and `SHA256`."
    ),
    (
      "{\"right\": {\"code\": {\"program\": \"./answer.py\"}}}",
      "`right.code.program` must be a list: write [\"./answer.py\"]."
    ),
    ("{\"right\": {\"code\": {\"program\": []}}}", "`right.code.program` is not a command"),
    (
      "{\"right\": {\"code\": {\"program\": [\"./answer.py\"]}}}",
      "names a program that cannot be run: make sure that `./answer.py` exists"
    ),
  ]) func mistakeIsReportedWithItsLine(_ text: String, _ told: String) throws {
    let scratch = try ScratchFolder()
    #expect {
      try Self.file(text, in: scratch)
    } throws: { error in
      let sentence = (error as? StartProblem)?.sentence ?? ""
      return sentence.contains(told) && !sentence.contains("?.")
    }
  }

  @Test func missingFileIsReported() {
    #expect(throws: StartProblem.self) { try ConformanceSubjectFile(path: "/nowhere/subject.json") }
  }

  // MARK: answer programs

  private static let step = ConformanceSubject.Step(
    purpose: .prove, fields: [InputField(name: "code", kind: .text)], shown: [.text("drow")], redirect: nil, now: 7)

  private static func program(_ text: String, in scratch: ScratchFolder, timeLimit: Duration = .seconds(20)) throws
    -> AnswerProgram
  {
    try scratch.write("#!/usr/bin/env python3\nimport json, sys, time\n" + text, to: "answer.py")
    try scratch.setMode(0o700, of: "answer.py")
    return AnswerProgram(command: ["./answer.py", "b"], folder: scratch.path, timeLimit: timeLimit)
  }

  @Test func aProgramGetsTheRoundAndAnswersIt() async throws {
    let scratch = try ScratchFolder()
    let program = try Self.program(
      "r = json.load(sys.stdin)\nprint(json.dumps({'code': ' '.join([r['shown'][0]['text'][::-1], r['shown_before'][0]['items'][1], r['purpose'], r['fields'][0]['name'], str(r['now']), sys.argv[1]])}))",
      in: scratch)
    #expect(program.canRun)
    #expect(
      try await program.answer(to: Self.step, [.list(["x", "y"])], field: "code") == .text("word y prove code 7 b"))
  }

  @Test(arguments: [
    ("print('x')", "did not answer with a JSON object of fields"),
    ("print('{}')", "did not answer with a `code`: print {\"code\": \"…\"}"),
    ("sys.exit('no such luck')", "ended with status 1: no such luck"),
    ("print('x' * 70000)", "wrote more than 65536 bytes"),
  ]) func unresponsiveProgramIsReported(_ text: String, _ told: String) async throws {
    let scratch = try ScratchFolder()
    let program = try Self.program(text, in: scratch)
    await #expect {
      try await program.answer(to: Self.step, [], field: "code")
    } throws: {
      "\($0)".contains("the program ./answer.py \(told)")
    }
  }

  /// Attack: an answer program that never ends, or with endless output.
  @Test(arguments: ["while True: time.sleep(1)", "sys.stdout.close(); sys.stderr.close()\nwhile True: time.sleep(1)"])
  func aProgramHasItsTime(_ text: String) async throws {
    let scratch = try ScratchFolder()
    let program = try Self.program(text, in: scratch, timeLimit: .milliseconds(300))
    await #expect(throws: ScriptProblem.self) { try await program.answer(to: Self.step, [], field: "code") }
  }

  /// The answer to a changing question; and the same with a mistake.
  @Test(arguments: [true, false]) func aProviderIsAnsweredByAProgram(_ isWhole: Bool) async throws {
    let scratch = try ScratchFolder()
    try scratch.write(BrokenProgramsTests.riddle(isWhole: isWhole), to: "toy.py")
    try scratch.setMode(0o700, of: "toy.py")
    _ = try Self.program(
      "r = json.load(sys.stdin)\nprint(json.dumps({'answer': r['shown'][0]['text'][::-1 if sys.argv[1] == 'right' else 1]}))",
      in: scratch)
    let file = try Self.file(
      #"{"right": {"answer": {"program": ["./answer.py", "right"]}}, "wrong": {"answer": {"program": ["./answer.py", "wrong"]}}}"#,
      in: scratch)
    let tried = try TriedProgram(scratch.path("toy.py"), file)
    defer { tried.end() }
    var subject = ConformanceSubject(of: tried.provider.descriptor)
    file.change(&subject)
    let report = await Conformance.run(tried.provider, subject)
    #expect(report.findings.map(\.rule) == (isWhole ? [] : [.wholeAnswer]))
    #expect(report.lines.contains { $0.rule == .proof && $0.verdict == .held })
  }

  /// Content that the subject needs but the provider does not show is reported with its line.
  @Test func missingContentIsReportedWithItsLine() async throws {
    let scratch = try ScratchFolder()
    try scratch.write(BrokenProgramsTests.riddle(isWhole: true), to: "toy.py")
    try scratch.setMode(0o700, of: "toy.py")
    let file = try Self.file("{\n\"right\": {\n\"answer\": {\"from_shown\": \"secret\"}}}", in: scratch)
    let tried = try TriedProgram(scratch.path("toy.py"), file)
    defer { tried.end() }
    var subject = ConformanceSubject(of: tried.provider.descriptor)
    file.change(&subject)
    let report = await Conformance.run(tried.provider, subject)
    #expect(report.findings.map(\.rule) == [.proof])
    #expect(report.findings.first?.seen.hasPrefix("The subject has no answer: ") ?? false)
    #expect(
      report.findings.first?.seen.hasSuffix(
        "subject.json:3: `right.answer`: the provider has shown no `secret` yet (it has shown text)") ?? false)
  }

  // MARK: one rule

  @Test func aRuleIsNamedAsItIs() throws {
    #expect(try ProviderTest.rule(named: "whole_answer") == .wholeAnswer)
    for (name, told) in [
      ("whole_anser", "did you mean `whole_answer`?"), ("everything", "available: `asked_fields`, `begin_twice`,"),
    ] {
      #expect {
        try ProviderTest.rule(named: name)
      } throws: {
        ($0 as? StartProblem)?.sentence.contains(told) ?? false
      }
    }
  }

  /// A trace contains the messages of the protocol, but not the answer.
  @Test func aTraceOfAProgramHasItsMessages() async throws {
    let scratch = try ScratchFolder()
    let program = BrokenProgramsTests.setting().replacing(
      "\"sentence\": \"This is not the word.\"", with: "\"sentence\": \"This is not the word.\", \"counts\": False")
    try scratch.write(program, to: "toy.py")
    try scratch.setMode(0o700, of: "toy.py")
    let file = try Self.file(BrokenProgramsTests.chosen, in: scratch)
    let tried = try TriedProgram(scratch.path("toy.py"), file)
    defer { tried.end() }
    var subject = ConformanceSubject(of: tried.provider.descriptor)
    file.change(&subject)
    let report = await Conformance.run(tried.provider, subject, rules: [.counted], trace: .withoutSecrets)
    let text = ProviderTest.text(report, colour: false)
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines[1].contains("✗ counted"))
    #expect(
      lines[2].contains(
        "is not counted: it is refused with `wrong_word`, whose outcome is declared with `\"counts\": false`."))
    #expect(lines[3] == "      Field: word")
    #expect(
      text.contains("→ {") && text.contains("\"method\":\"submit\"") && text.contains("{\"refused\": \"wrong_word\"}"))
    #expect(text.contains("‹answer›") && !text.contains("a quiet pigeon") && !text.contains("some loud geese"))
    #expect(!tried.provider.descriptor.outcomes.isEmpty)
  }
}

extension BrokenProgramsTests {
  /// A program that shows a text and asks for its reverse.
  static func riddle(isWhole: Bool) -> String {
    head + """
      import random
      FIELD = {"name": "answer", "kind": "text"}

      def hello(params):
          return {"protocol": 1, "shape": "full", "policy": POLICY.replace("email", "account"), "submit": [FIELD],
                  "outcomes": [{"reason": "wrong_answer", "sentence": "No."}]}

      def begin(params):
          text = "".join(random.sample("abcdefghijkmnpqrstuvwxyz", 8))
          return {"ask": {"fields": [FIELD], "state": text[::-1], "show": [{"kind": "text", "text": text}]}}

      def submit(params):
          size = \(isWhole ? "99" : "4")
          if params["fields"]["answer"][:size] != params["state"][:size]: return {"refused": "wrong_answer"}
          return {"proved": {}}

      METHODS = {"hello": hello, "configure": configure, "begin": begin, "submit": submit}
      FAULT = lambda error: type(error).__name__

      """ + tail
  }
}
