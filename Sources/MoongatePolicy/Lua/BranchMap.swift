/// The branches of a file's functions, and the text of the file with a call at each branch.
///
/// Branches are the conditions of `if` and `elseif`, the operands before `and` and `or`, and the bodies of loops.
/// Several branches often stand on one line, so counting lines would not distinguish them. Instead, each condition is
/// wrapped in `_moongate_took(number, (…))`, which records whether the condition was true and returns it. The
/// instrumented text has the same lines.
struct BranchMap: Sendable {
  /// A branch.
  struct Branch: Sendable {
    let line: Int
    /// The source text of the branch, on one line.
    let code: String
    /// A loop body has one side: it is entered or not. All other branches have two sides.
    let isLoop: Bool
  }

  /// In the order of their numbers, which begin at `first`.
  let branches: [Branch]
  /// The text with the added calls.
  let instrumented: [UInt8]

  /// - Parameters:
  /// - source: text that Lua can parse.
  /// - first: the number of its first branch. Several files share one numbering.
  init(_ source: [UInt8], first: Int) {
    var tokens = LuaTokens(source)
    var marker = BranchMarker(source: source, first: first)
    while let token = tokens.next() { marker.take(token) }
    branches = marker.branches
    instrumented = marker.finish()
  }
}

/// Finds the branches token by token (Lua 5.4 Reference Manual, sections 3.3 and 3.4.8).
private struct BranchMarker {
  /// The start of an expression whose value is recorded.
  private struct Start {
    let offset: Int
    let line: Int
  }

  /// A block, or the contents of brackets.
  private struct Frame {
    let opening: String
    /// Whether the next token begins an operand, and therefore possibly a condition.
    var expectsOperand = false
    var expectsCondition = false
    /// The current operand. It ends before `and` or `or`, which bind more loosely than all other operators.
    var operand: Start?
    /// The condition after `if` or `elseif`.
    var condition: Start?
    /// The loop header whose `do` follows.
    var loop: Start?

    mutating func expect(condition: Bool = false) { (expectsOperand, expectsCondition) = (true, condition) }
  }

  private let source: [UInt8]
  private let first: Int
  private var frames = [Frame(opening: "")]
  private var functions = 0
  private var previousEnd = 0
  private var edits: [(offset: Int, order: Int, text: String)] = []
  private(set) var branches: [BranchMap.Branch] = []

  init(source: [UInt8], first: Int) {
    self.source = source
    self.first = first
  }

  private var frame: Frame {
    get { frames[frames.count - 1] }
    set { frames[frames.count - 1] = newValue }
  }

  mutating func take(_ token: LuaToken) {
    beginOperand(with: token)
    let start = Start(offset: token.range.lowerBound, line: token.line)
    switch token.kind {
    case .keyword("and"), .keyword("or"):
      if let operand = frame.operand { mark(operand) }
      frame.operand = nil
      frame.expect()
    case .keyword("then"):
      if let condition = frame.condition { mark(condition, as: "if ") }
      (frame.condition, frame.operand) = (nil, nil)
    case .keyword("elseif"): frame.expect(condition: true)
    case .keyword("return"), .keyword("in"), .symbol(.separator), .symbol(.assign): frame.expect()
    case .keyword("while"), .keyword("for"):
      frame.loop = start
      frame.expect()
    case .opener("do"):
      if let loop = frame.loop { markBody(of: loop, behind: token) }
      (frame.loop, frame.operand) = (nil, nil)
      frames.append(Frame(opening: "do"))
    case .opener(let word):
      if word == "function" { functions += 1 }
      frames.append(Frame(opening: word))
      if word == "if" { frame.expect(condition: true) }
    case .closer(let word):
      if frame.opening == "function" { functions -= 1 }
      close()
      if word == "until" { frame.expect() }
    case .symbol(.openParen), .symbol(.openBracket), .symbol(.openBrace):
      frames.append(Frame(opening: "("))
      frame.expect()
    case .symbol(.closeParen), .symbol(.closeBracket), .symbol(.closeBrace): close()
    default: break
    }
    previousEnd = token.range.upperBound
  }

  private mutating func close() { if frames.count > 1 { frames.removeLast() } }

  private mutating func beginOperand(with token: LuaToken) {
    guard frame.expectsOperand else { return }
    frame.expectsOperand = false
    switch token.kind {
    // `return` may stand alone, and brackets may be empty.
    case .closer, .keyword("else"), .keyword("elseif"), .symbol(.closeParen), .symbol(.closeBrace), .symbol(.separator):
      return
    default: break
    }
    let start = Start(offset: token.range.lowerBound, line: token.line)
    frame.operand = start
    if frame.expectsCondition { frame.condition = start }
    frame.expectsCondition = false
  }

  /// Wraps the text from the start to the last token.
  private mutating func mark(_ start: Start, as prefix: String = "") {
    guard functions > 0 else { return }
    edit(start.offset, "_moongate_took(\(first + branches.count),(")
    edit(previousEnd, "))")
    branches.append(BranchMap.Branch(line: start.line, code: prefix + code(start.offset..<previousEnd), isLoop: false))
  }

  private mutating func markBody(of loop: Start, behind token: LuaToken) {
    guard functions > 0 else { return }
    edit(token.range.upperBound, " _moongate_took(\(first + branches.count),true);")
    branches.append(BranchMap.Branch(line: loop.line, code: code(loop.offset..<token.range.lowerBound), isLoop: true))
  }

  private mutating func edit(_ offset: Int, _ text: String) { edits.append((offset, edits.count, text)) }

  private func code(_ range: Range<Int>) -> String {
    String(decoding: source[range], as: UTF8.self).split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  /// The text with all edits. At the same position, a later edit covers more text, so it is placed outside an earlier
  /// one.
  func finish() -> [UInt8] {
    var output: [UInt8] = []
    var copied = 0
    for edit in edits.sorted(by: { ($0.offset, -$0.order) < ($1.offset, -$1.order) }) {
      output += source[copied..<edit.offset]
      output += Array(edit.text.utf8)
      copied = edit.offset
    }
    return output + source[copied...]
  }
}
