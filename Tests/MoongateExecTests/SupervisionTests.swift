import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// Programs that exit, hang or flood.
@Suite struct SupervisionTests {
  /// Attack: an attacker keeps all processors busy, for example with sign-ins. A program with the low priority of the
  /// loader thread would not be able to answer.
  @Test func aProgramHasThePriorityOfTheGateway() async throws {
    let which = __priority_which_t(PRIO_PROCESS.rawValue)
    let own = getpriority(which, 0)
    let fixture = try ProgramFixture()
    let specification = try fixture.write(
      """
      def answer(method, params):
          if method == "begin": return {"ask": {"fields": [{"name": "word", "kind": "text"}]}}
          return {"proved": {}} if str(os.nice(0)) == params["fields"]["word"] else {"refused": "invalid_word"}
      """)
    let provider = try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<any Provider, any Error>) in
      Thread.detachNewThread { [programs = fixture.programs] in
        setpriority(which, 0, 15)
        continuation.resume(
          with: Result {
            try programs.configure(try programs.introduce([specification])[0].get(), values: [:], secrets: [:])
          })
      }
    }
    let full = try #require(provider as? any FullProvider)
    #expect(try await full.judge("\(own)").isProof)
  }

  /// Repeats the call until it is proved, after an earlier failure.
  private func recovers(_ provider: any FullProvider) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < end { if (try? await provider.judge("open").isProof) ?? false { return true } }
    return false
  }

  @Test(arguments: [
    ("os._exit(3)", "ended with status 3"), ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9"),
    (#"sys.stdout.write('{"jsonrpc": "2.0", "id"'); sys.stdout.flush(); os._exit(0)"#, "ended with status 0"),
    ("os.close(1); time.sleep(60)", "closed its standard output"), ("print('x' * 140000)", "longer than 131072 bytes"),
    ("print('x' * 100_000_000)", "longer than 131072 bytes"),
    ("print('x\\n' * 100_000, flush=True)", "floods the gateway"),
  ])
  func crashedProgramFailsItsCallAndIsRestarted(_ how: (body: String, words: String)) async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      """
      old = take
      def take(message):
          if not os.path.exists("broken"):
              open("broken", "w").close()
              \(how.body)
          old(message)
      """)
    do {
      _ = try await provider.judge("open")
      Issue.record("a fault")
    } catch {
      #expect("\(error)".contains(how.words), "\(error)")
    }
    #expect(try await recovers(provider))
    #expect(try await fixture.heard("started again in"))
  }

  @Test func aProgramThatHangsIsReplaced() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      """
      old = take
      def take(message):
          if not os.path.exists("hung"):
              open("hung", "w").close()
              signal.signal(signal.SIGTERM, signal.SIG_IGN)
              time.sleep(1000)
          old(message)
      """, timeout: .milliseconds(400))
    for _ in 0..<3 { await #expect(throws: ProgramFault.late(.milliseconds(400))) { try await provider.judge("open") } }
    #expect(try await fixture.heard("it hangs"))
    #expect(try await recovers(provider))
  }

  @Test func aSlowProgramIsNotTakenForOneThatHangs() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      """
      old = take
      def take(message):
          time.sleep(0.15)
          old(message)
      """, timeout: .milliseconds(100))
    for _ in 0..<8 { await #expect(throws: ProgramFault.late(.milliseconds(100))) { try await provider.judge("open") } }
    #expect(try await fixture.heard("answered a call after its time"))
    #expect(!fixture.log.lines.contains { $0.contains("hangs") || $0.contains("started again") })
  }

  @Test func floodOfErrorsIsBounded() async throws {
    let fixture = try ProgramFixture { $0.errorBytes = 4_096 }
    let provider = try fixture.full(
      """
      import threading
      def flood():
          while True: os.write(2, b'noise noise noise noise noise\\n' * 100)
      threading.Thread(target=flood, daemon=True).start()
      """)
    for _ in 0..<20 { #expect(try await provider.judge("open").isProof) }
    #expect(fixture.log.lines.count < 400)
  }

  @Test func fewLinesOfAProgramReachTheLog() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      """
      old = take
      def take(message):
          for number in range(500): say({"jsonrpc": "2.0", "method": "log", "params": {"message": "line %d" % number}})
          old(message)
      """)
    #expect(try await provider.judge("open").isProof)
    #expect((40...80).contains(fixture.log.lines.filter { $0.contains("says: line") }.count))
  }

  @Test func processGroupIsKilledWithTheProgram() async throws {
    let fixture = try ProgramFixture()
    var provider: (any FullProvider)? = try fixture.full(
      """
      import subprocess
      signal.signal(signal.SIGTERM, signal.SIG_IGN)
      child = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
      with open("pids", "w") as file: file.write("%d %d" % (os.getpid(), child.pid))
      def run():
          for line in sys.stdin:
              message = json.loads(line)
              if message["method"] in ("hello", "configure"):
                  say({"jsonrpc": "2.0", "id": message["id"], "result": introduce(message["params"]) if message["method"] == "hello" else {}})
          time.sleep(1000)
      """)
    let pids = try String(contentsOfFile: fixture.folder.path("pids"), encoding: .utf8).split(separator: " ").compactMap
    {
      Int32($0)
    }
    #expect(pids.count == 2 && pids.allSatisfy { kill($0, 0) == 0 })
    #expect(provider != nil)
    provider = nil
    fixture.programs.end()
    // The grandchild is reaped by another process: it is dead or already reaped.
    func lives(_ pid: Int32) -> Bool {
      guard let status = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else { return false }
      return !status.contains(") Z ") && !status.contains(") X ")
    }
    #expect(try await holds(within: .seconds(5)) { !pids.contains(where: lives) })
  }

  @Test func programInheritsNothingFromTheGateway() async throws {
    let fixture = try ProgramFixture()
    // Without O_CLOEXEC, like a careless library.
    let leaked = open("/dev/null", O_RDONLY)
    defer { close(leaked) }
    let provider = try fixture.full(
      """
      def answer(method, params):
          held = sorted(int(name) for name in os.listdir("/proc/self/fd"))
          return {"ask": {"fields": [], "state": json.dumps({"held": [n for n in held if os.path.exists("/proc/self/fd/%d" % n)],
              "group": os.getpgid(0) == os.getpid(), "core": __import__("resource").getrlimit(__import__("resource").RLIMIT_CORE)[0],
              "pipe": signal.getsignal(signal.SIGPIPE) != None, "mask": len(signal.pthread_sigmask(signal.SIG_BLOCK, []))})}}
      """)
    guard case .ask(_, let state, _) = try await provider.begin(.some(), .words([:])) else { return }
    #expect(
      String(decoding: state, as: UTF8.self)
        == #"{"held": [0, 1, 2], "group": true, "core": 0, "pipe": true, "mask": 0}"#)
  }

  @Test func nothingIsLeftBehind() async throws {
    func descriptors() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0 }
    func children() -> String {
      (try? String(contentsOfFile: "/proc/self/task/\(getpid())/children", encoding: .utf8)) ?? ""
    }
    let fixture = try ProgramFixture()
    let specification = try fixture.write("")
    _ = try fixture.programs.introduce([specification]).first?.get()
    fixture.programs.end()
    let before = descriptors()
    for _ in 0..<10 {
      let provider = try #require(try fixture.start(specification) as? any FullProvider)
      #expect(try await provider.judge("open").isProof)
      fixture.programs.end()
    }
    #expect(descriptors() <= before + 2, "\(descriptors()) instead of \(before)")
    #expect(!children().contains(" defunct"))
  }

  @Test func restartDelaysGrowWithJitter() {
    var delays = RestartDelays(ProgramLimits())
    let grown = (0..<12).map { _ in delays.next(afterRunning: .seconds(1), jitter: 0.5) }
    #expect(grown.prefix(4) == [.milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800)])
    #expect(grown.suffix(2) == [.seconds(30), .seconds(30)])
    #expect(delays.next(afterRunning: .seconds(61), jitter: 0) == .milliseconds(80))
    #expect((.milliseconds(239) ... .milliseconds(241)).contains(delays.next(afterRunning: nil, jitter: 1)))
  }

  @Test func restartedProgramWithAnotherIntroductionIsRefused() async throws {
    let fixture = try ProgramFixture { $0.firstDelay = .milliseconds(10) }
    let provider = try fixture.full(
      """
      old_introduce = introduce
      def introduce(params):
          said = old_introduce(params)
          if os.path.exists("again"): said["outcomes"] = []
          open("again", "w").close()
          return said
      def take(message): os._exit(0)
      """, timeout: .milliseconds(500))
    await #expect(throws: ProgramFault.self) { try await provider.judge("open") }
    #expect(try await fixture.heard("changed its introduction"))
  }

  @Test func reloadStartsTheCurrentProgram() async throws {
    let fixture = try ProgramFixture { $0.firstDelay = .milliseconds(10) }
    let specification = try fixture.write(
      """
      old_introduce = introduce
      def introduce(params):
          said = old_introduce(params)
          if os.path.exists("again"): said["outcomes"] = [{"reason": "invalid_egg", "sentence": "No."}]
          open("again", "w").close()
          return said
      old_take = take
      def take(message):
          if not os.path.exists("broken"):
              open("broken", "w").close()
              os._exit(0)
          old_take(message)
      """)
    let before = try #require(try fixture.start(specification) as? any FullProvider)
    await #expect(throws: ProgramFault.self) { try await before.judge("open") }
    #expect(try await fixture.heard("changed its introduction"))
    #expect(!fixture.programs.areWhole([before]))
    let after = try #require(try fixture.start(specification) as? any FullProvider)
    #expect(after.descriptor.outcome("invalid_egg") != nil && fixture.programs.areWhole([after]))
    #expect(try await after.judge("open").isProof)
  }
}
