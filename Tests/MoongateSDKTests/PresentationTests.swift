import MoongateSDK
import Testing

/// How providers declare their presentation.
@Suite struct PresentationTests {
  private static func mistakes(
    _ presentation: Presentation? = nil, entrance: Entrance? = nil, page: String? = nil, flows: [PolicySource] = [],
    words: StepWords? = nil
  ) -> [String] {
    ProviderDescriptor(
      name: "vault", beginFields: [],
      submitFields: [
        InputField(name: "pin", kind: .digits, length: 6), InputField(name: "new_code", kind: .digits, length: 6),
        InputField(name: "word", kind: .text),
      ], settings: [], policy: PolicySource(file: "policy.lua", text: ""), flows: flows, identifierKinds: [.email],
      words: words,
      presentation: presentation, entrance: entrance, page: page
    ).mistakes
  }

  @Test func validPresentationHasNoMistake() {
    #expect(Self.mistakes() == [])
    #expect(Self.mistakes(.digitPad(count: 6, current: "pin", new: "new_code"), page: "vault") == [])
    #expect(Self.mistakes(.codeEntry, entrance: .field(kind: .email, priority: 1), page: "vault") == [])
    #expect(
      Self.mistakes(.externalSite(button: "Continue"), entrance: .button(label: "Continue", icon: nil, priority: 1))
        == [])
    #expect(
      Self.mistakes(words: StepWords(title: "Vault", name: "Vault code", page: ["enter_passcode": "Open the vault"]))
        == [])
  }

  @Test(arguments: [
    (mistakes(page: "login"), "it cannot have the page `login`: the gateway has one of this name"),
    (mistakes(page: "handoff"), "it cannot have the page `handoff`: the gateway has one of this name"),
    (
      mistakes(page: "My Page"),
      "it cannot have the page `My Page`: lower-case letters, digits and underscores, a letter first, 48 characters at most"
    ),
    (mistakes(.form, page: "vault"), "it can have its own page only with boxes for a code or a pad for digits"),
    (mistakes(.digitPad(count: 3, current: "pin", new: "new_code")), "a pad takes 4 to 12 digits"),
    (
      mistakes(.digitPad(count: 6, current: "word", new: "new_code")),
      "its pad is for the field `word`, which is not a submit field of digits"
    ),
    (
      mistakes(.digitPad(count: 6, current: "pin", new: "other")),
      "its pad is for the field `other`, which is not a submit field of digits"
    ),
    (
      mistakes(entrance: .field(kind: .phone, priority: 1)),
      "it is offered by a field for an identifier that it does not read"
    ),
    (
      mistakes(flows: [PolicySource(file: "flows/Bad Name.lua", text: "")]),
      "the flow `Bad Name` is ill-formed: lower-case letters, digits and underscores, a letter first, 48 characters at most"
    ),
    (
      mistakes(flows: ["a/vault_set.lua", "b/vault_set.lua"].map { PolicySource(file: $0, text: "") }),
      "the flow `vault_set` is declared twice"
    ),
    (
      mistakes(words: StepWords(title: "Vault", page: ["enter_passcode": "Open\nit"])),
      "its words must be plain text of at most 300 bytes each, and its title not empty"
    ),
  ])
  func mismatchIsReported(_ found: [String], _ mistake: String) { #expect(found == [mistake]) }

  private static func ceremony(
    _ submit: [InputField], as presentation: Presentation = .ceremony(button: "Use your key"), begin: [InputField] = []
  )
    -> [String]
  {
    ProviderDescriptor(
      name: "vault", beginFields: begin, submitFields: submit, settings: [],
      policy: PolicySource(file: "policy.lua", text: ""), identifierKinds: [],
      presentation: presentation
    ).mistakes
  }

  @Test func aCeremonyHasOneFieldForTheAnswer() {
    let answer = InputField(name: "answer", kind: .json)
    #expect(
      Self.ceremony([answer]) == []
        && Self.ceremony([answer, InputField(name: "name", kind: .text, isRequired: false)]) == [])
    let missing = ["its ceremony needs one submit field of kind json, which takes the answer of the browser"]
    #expect(Self.ceremony([InputField(name: "answer", kind: .text)]) == missing)
    #expect(Self.ceremony([answer, InputField(name: "other", kind: .json)]) == missing)
    #expect(
      Self.ceremony([answer], as: .form) == [
        "its field `answer` of kind json is filled in by a ceremony: declare the presentation `.ceremony`"
      ])
    #expect(
      Self.ceremony([answer], begin: [answer]) == [
        "its begin field `answer` is of kind json: only submit fields can be"
      ])
    #expect(
      Self.ceremony([answer], as: .ceremony(button: "")) == [
        "the button of its ceremony needs words: plain text of at most 300 bytes"
      ])
  }

  @Test func wordsOfAFileAreReadByLine() {
    let file = "# A comment\n\nOpen the vault = तिजोरी खोलें\nA = b = c\nno separator\n"
    #expect(StepWords.translations(in: Array(file.utf8)) == ["Open the vault": "तिजोरी खोलें", "A": "b = c"])
  }

  @Test func aFlowHasTheNameOfItsFile() {
    #expect(PolicySource(file: "Plugins/PIN/flows/pin_set.lua", text: "").name == "pin_set")
    #expect(PolicySource(file: "./vault.py flows/vault_set.lua", text: "").name == "vault_set")
  }
}
