import Foundation
import Testing

/// A function has at most five parameters and 60 lines, or the first line of its doc comment says why. A computed
/// property is measured like a function.
@Suite struct FunctionShapeTests {
  @Test(arguments: ["Sources", "Plugins"]) func functionsAreSmallOrSayWhyNot(_ folder: String) throws {
    let functions = try FunctionShape.all(below: folder)
    #expect(functions.count > 100)
    #expect(functions.flatMap(\.violations) == [])
  }

  @Test func functionsInCAreSmallOrSayWhyNot() throws {
    let functions = try ["Sources", "Plugins"].flatMap(FunctionShape.allInC(below:))
    #expect(functions.count > 100)
    #expect(functions.flatMap(\.violations) == [])
  }

  @Test func functionsInCAreMeasured() {
    let source = """
      #define CALL(a, b, c, d, e, f) { }
      struct pair { int a, b; };
      int declared(int a, int b, int c, int d, int e, int f);
      static const int list[] = { size(1, 2) };
      static int none(void) { return 0; }
      // More than five parameters: a reason.
      // And more.
      int six(int a, int (*b)(int, int), int c, // {
              int d, int e, int f) {
        call(a, b);
        return 0;
      }
      """
    let found = FunctionShape.allInC(in: source, file: "a.c")
    #expect(found.map(\.line) == [5, 8])
    #expect(found.map(\.parameters) == [0, 6])
    #expect(found.map(\.lines) == [0, 2])
    #expect(found.flatMap(\.violations).isEmpty)
    let long = "void f(void) {\n" + String(repeating: "  a();\n", count: 61) + "}\n"
    #expect(FunctionShape.allInC(in: long, file: "a.c").flatMap(\.violations).count == 1)
  }

  @Test func manyParametersAreSeen() {
    let four = "_ a: Int, b: [Int: Int], c: Result<Int, Fault>, d: (Int, Int) -> Void"
    #expect(shapes("func f(\(four), e: Int = (1 + 2)) {}").map(\.parameters) == [5])
    #expect(shapes("init?<A, B>(\n  \(four), // , f\n  e: String = \", ) {\", f: Int) {\n}").map(\.parameters) == [6])
    #expect(shapes("func < (a: Int, b: Int) {}\nsubscript(a: Int) -> Int { a }").map(\.parameters) == [2, 1])
    #expect(shapes("Type.init(a, b, c, d, e, f)\nself.init(a, b, c, d, e, f)").isEmpty)
    let six = "func f(\(four), e: Int, f: Int) {}"
    #expect(complaints(six) == 1)
    #expect(complaints("/// Does it.\n/// More than five parameters: a reason.\n\(six)") == 1)
    #expect(complaints("/// Does it. More than five parameters: a reason.\n@inlinable\n\(six)") == 0)
  }

  @Test func longBodiesAreSeen() {
    let sixty = String(repeating: "    a(\"}\\(b { \"{\" })\") // }\n", count: 60)
    #expect(shapes("protocol P {\n  func g()\n  func f()\n}\nfunc f() {\n\(sixty)}").map(\.lines) == [0, 0, 60])
    let kept = "  func f()\n  where A == B {\n\(sixty)  }\n"
    let long = "  func f()\n  where A == B {\n\(sixty)    a()\n  }\n"
    #expect(complaints(kept) == 0)
    #expect(complaints(long) == 1)
    #expect(complaints("  /// More than 60 lines: a reason.\n\(long)") == 0)
  }

  @Test func longPropertiesAreSeen() {
    let sixty = String(repeating: "    a { \"}\" }\n", count: 60)
    let stored = "var a: Int { get }\nvar b = [1]\nvar c: T? =\n  {\n\(sixty)}()\n"
    #expect(shapes("\(stored)static var d: [Int: () -> T] {\n\(sixty)}").map(\.lines) == [0, 0, 60])
    #expect(complaints("  private var e: Int {\n\(sixty)    a()\n  }\n") == 1)
    #expect(complaints("  /// More than 60 lines: a reason.\n  var e: Int {\n\(sixty)    a()\n  }\n") == 0)
  }

  @Test func aReasonThatIsNotNeededIsSeen() {
    #expect(complaints("/// More than five parameters: a reason.\nfunc f() {}") == 1)
    #expect(complaints("/// More than five parameters and 60 lines: one.\nfunc f() {}") == 2)
  }

  private func complaints(_ source: String) -> Int { shapes(source).flatMap(\.violations).count }

  private func shapes(_ source: String) -> [FunctionShape] { FunctionShape.all(in: source, file: "F.swift") }
}
