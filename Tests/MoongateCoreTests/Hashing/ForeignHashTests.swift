import MoongateSDK
import Testing

@testable import MoongateCore

/// Hashes that other programs made, of "correct horse" if nothing else is said. The name of the program is beside each.
@Suite struct ForeignHashTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    let program: String
    let hash: String
    let kind: SecretHashKind
    let work: String
    var isWeak = false
    private(set) var password = "correct horse"

    init(_ program: String, _ kind: SecretHashKind, _ work: String, isWeak: Bool = false, _ hash: String) {
      self.program = program
      self.hash = hash
      self.kind = kind
      self.work = work
      self.isWeak = isWeak
    }

    /// The same, made of another password.
    func of(_ password: String) -> Vector {
      var vector = self
      vector.password = password
      return vector
    }

    var testDescription: String { "\(program): \(hash.prefix(24))" }
  }

  static let vectors: [Vector] = [
    Vector(
      "Django 5.2", .pbkdf2, "pbkdf2-sha256 1000",
      "pbkdf2_sha256$1000$aBcDeFgHiJkLmNoPqRsTuV$sBhz6SiQZR6f4FpeVTDdVpW1T+zS7A1qNhK4pS4OU1w="),
    Vector(
      "Django 5.2 with its default cost", .pbkdf2, "pbkdf2-sha256 1000000",
      "pbkdf2_sha256$1000000$aBcDeFgHiJkLmNoPqRsTuV$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE="),
    Vector(
      "Django 5.2", .pbkdf2, "pbkdf2-sha1 1000",
      "pbkdf2_sha1$1000$aBcDeFgHiJkLmNoPqRsTuV$sQwfzongpzbrJl9GDJ8Kxres4Hw="),
    Vector(
      "Django 5.2", .scrypt, "scrypt 14 8 5",
      "scrypt$16384$aBcDeFgHiJkLmNoPqRsTuV$8$5$is+Vz6n9xjtHvt+6vnAf39WizscZ4okL6O6aFmgENFXZ5DOV9CQf2iQZ1AzjArbi0JhwJhjXrUx/nYgsM/s4lw=="
    ),
    Vector(
      "Django 5.2", .md5, "digest-md5", isWeak: true, "md5$aBcDeFgHiJkLmNoPqRsTuV$cecda2521f06ecc9022d7b6a93aff70d"),
    Vector(
      "passlib 1.7", .pbkdf2, "pbkdf2-sha256 1000",
      "$pbkdf2-sha256$1000$RWitNaZUao2RMqa0FmKMEQ$1ZDpurFnG3Ctb19azm8FL94EAb9UEIUwfQDAXz7d3m4"),
    Vector(
      "passlib 1.7", .pbkdf2, "pbkdf2-sha512 1000",
      "$pbkdf2-sha512$1000$oPSes1bq/b.3VkopZcwZww$O0kttGSPxHBQSN0D43N.l1bjqzKlCBmJj1DS.8y16enizh5zXhfOIk0XhHg6eYwPNHxGRPMDEBJEgpCkPdoCcA"
    ),
    Vector(
      "passlib 1.7", .pbkdf2, "pbkdf2-sha1 1000", "$pbkdf2$1000$RShFSOk9h3CO8R7jPCdEaA$UCw2ZOUdJ3FddfX.6BwX22vYAH8"),
    Vector(
      "passlib 1.7", .scrypt, "scrypt 10 8 1",
      "$scrypt$ln=10,r=8,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA"),
    Vector(
      "passlib 1.7 with its default cost", .scrypt, "scrypt 16 8 1",
      "$scrypt$ln=16,r=8,p=1$nbMWgnAOYeydc+4dI2QMwQ$tAe30GG8GGFr/ivfsQ1278GcR6VaV/dWkKD44pLzSUA"),
    Vector(
      "passlib 1.7", .shaCrypt, "crypt-sha256 1000 16",
      "$5$rounds=1000$sGw0oQRecPN6Z9CV$s2Dj6n.1c0JA/9N10QiXQs0g179o2WFCTitWx.SKJk6"),
    Vector(
      "passlib 1.7", .shaCrypt, "crypt-sha512 5000 16",
      "$6$ITOBNyyAsw4bjxAx$nLXKa4xT3uz/Tb./i2EyLlny0cVXbNera1yr2a/8nRyel740hOfKGKGERQex4Y49ouiOiiWLclNJTHdZeMlzL0"),
    Vector(
      "passlib 1.7", .saltedDigest, "digest-sha512",
      "{SSHA512}AV/PMWdJWgWjvtvcbf2bLZlDvzWgAhyHnBU6yu90MlxnM48tBFKbhiCGtX8JnSuJgMwdaGi1lqsgGXny555FTZbSuncOoRRi"),
    Vector("passlib 1.7", .md5, "crypt-md5 1000 8", isWeak: true, "$1$EEpJ8WZP$WsXNXvVjtta42pH5rw6Z9/"),
    Vector(
      "Werkzeug 3.1", .pbkdf2, "pbkdf2-sha256 1000",
      "pbkdf2:sha256:1000$3ke46vHt8NKL9Of9$64c9b9a6a90e2759a9720a21f84f244b80983f2d37639c0bfc0d411f52219dd0"),
    Vector(
      "Werkzeug 3.1", .pbkdf2, "pbkdf2-sha512 1000",
      "pbkdf2:sha512:1000$p9ShYym1ANSsJren$9eb703456e5dec18dd667536adb9a0527ea88f8c2fef1e76a3b2ffe494547bc4504b7d54f10a2fd0fbe5a2d30649b879bd506c78369dba82a0d8f364b8e5920f"
    ),
    Vector(
      "Werkzeug 3.1", .scrypt, "scrypt 15 8 1",
      "scrypt:32768:8:1$in1uGjN9njxFlH5K$f0cc91caa539de83551aca8c7c201930d8920976731b1019230131d568626573148b7a1ecc073f4c2a28d46e3b1792d8c0ff568a5f8c3a5d8084beed16435c97"
    ),
    Vector(
      "Node 20: scryptSync(password, salt, 64)", .scrypt, "scrypt 14 8 1",
      "$scrypt$ln=14,r=8,p=1$AAECAwQFBgcICQoLDA0ODw==$JbN2hANm9NOw4h5BRHZnbjzQ6Jr0QwNWojTOC2WgIbViM+ewsk8HvJNAGV8ZyQodp1YlFO0HYqba48J/9bB9Yg=="
    ),
    Vector(
      "Node 20: scryptSync with r 16", .scrypt, "scrypt 14 16 1",
      "$scrypt$ln=14,r=16,p=1$AAECAwQFBgcICQoLDA0ODw==$ti4MgdlEtPqP7RHnw2RB2PHR3tjLDjaUagxLn32CcHDG5U6CJuQYBZMfV0zRRu/3x4xo3uYMsM5JMwl2cgmNYw=="
    ),
    Vector(
      "Node 20: pbkdf2Sync", .pbkdf2, "pbkdf2-sha512 1000",
      "$pbkdf2-sha512$1000$AAECAwQFBgcICQoLDA0ODw==$Xpx07WjVx4vCIvrmBRj8uOoVVtGqJqtUv2J5bhizSQs7osCteF7W4A61dZDqSIqQjO+dxO6p5FT/Uy7QRBXSXA=="
    ),
    // Stored by Keycloak: 32 bytes in one realm, 64 in another.
    Vector(
      "Keycloak", .pbkdf2, "pbkdf2-sha256 27500",
      "$pbkdf2-sha256$27500$P5rtFkGtPfoaryJ6PizUJw==$JsfNbCOIdZUbyBJ+BT+VoGI91Ec2rWLOvkLPDaX8e9k="
    ).of("password"),
    Vector(
      "Keycloak", .pbkdf2, "pbkdf2-sha256 55000",
      "$pbkdf2-sha256$27500$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w=="
    ).of("admin"),
    // Not made by Keycloak, but from the format that it documents.
    Vector(
      "Keycloak's format", .pbkdf2, "pbkdf2-sha256 55000",
      "$pbkdf2-sha256$27500$AAECAwQFBgcICQoLDA0ODw==$qnA427fe69fAjkevcHZvnm7vp3MewnxKL4g2WLfI7U6teQVH1eR2L5DfcV0psPIfjGPtlZbkpnogYX+2TaSl6w=="
    ),
    Vector(
      "Keycloak's format", .pbkdf2, "pbkdf2-sha512 210000",
      "$pbkdf2-sha512$210000$AAECAwQFBgcICQoLDA0ODw==$l4pqr0UVqxiWEnbGDBV//hzeVcB7ZgsFnr5Z+SZYIYjhXWCECCVC/oKM2WWMwBzQGCBfe2yb+20zK3Rr1rkPjg=="
    ),
    // From the tests of ASP.NET Core Identity itself.
    Vector(
      "ASP.NET Core Identity", .pbkdf2, "pbkdf2-sha256 10000",
      "AQAAAAEAACcQAAAAEAABAgMEBQYHCAkKCwwNDg+yWU7rLgUwPZb1Itsmra7cbxw2EFpwpVFIEtP+JIuUEw=="
    ).of("my password"),
    Vector(
      "ASP.NET Core Identity", .pbkdf2, "pbkdf2-sha512 250",
      "AQAAAAIAAAD6AAAAIJbVi5wbMR+htSfFp8fTw8N8GOS/Sje+S/4YZcgBfU7EQuqv4OkVYmc4VJl9AGZzmRTxSkP7LtVi9IWyUxX8IAAfZ8v+ZfhjCcudtC1YERSqE1OEdXLW9VukPuJWBBjLuw=="
    ).of("my password"),
    Vector(
      "ASP.NET Core Identity", .pbkdf2, "pbkdf2-sha512 50",
      "AQAAAAIAAAAyAAAAEOMwvh3+FZxqkdMBz2ekgGhwQ4B6pZWND6zgESBuWiHw"
    ).of("my password"),
    // Not made by ASP.NET Core Identity, but from the format that its sources document.
    Vector(
      "ASP.NET Core Identity's version 3, until .NET 6", .pbkdf2, "pbkdf2-sha256 10000",
      "AQAAAAEAACcQAAAAEAABAgMEBQYHCAkKCwwNDg/lFQcOA1On2wE5YZhLh7q7ntzP9Krf9NCBoM//wxbovw=="),
    Vector(
      "ASP.NET Core Identity's version 3, since .NET 7", .pbkdf2, "pbkdf2-sha512 100000",
      "AQAAAAIAAYagAAAAEAABAgMEBQYHCAkKCwwNDg8LJ1+nXP1HCEVtkGVQ8YRRub3RhgjMuQMQ6K7+XxmQVQ=="),
    Vector(
      "OpenSSL 3.0: passwd -5", .shaCrypt, "crypt-sha256 5000 8",
      "$5$abcdefgh$ruMep1ijHnJPZbETDNiumskxcX3kN4lzZd5VlsqE7eB"),
    Vector(
      "OpenSSL 3.0: passwd -6", .shaCrypt, "crypt-sha512 5000 8",
      "$6$abcdefgh$yIZAF3gQPvtKZO/9qOJKffAKKbtS3ef3qmwyugk4uWVjX8YZf/GV3A8SkFxEPY0T56CcilGrHKLffBsp6dLMG."),
    Vector("OpenSSL 3.0: passwd -1", .md5, "crypt-md5 1000 8", isWeak: true, "$1$abcdefgh$y6iHhJNbuC0xpbk0w9pm80"),
    Vector("OpenLDAP 2.5", .saltedDigest, "digest-sha1", "{SSHA}45t+zCEyMYRqQvOJu7mAKpQLKklC9sfq"),
    Vector(
      "OpenLDAP 2.5", .saltedDigest, "digest-sha256",
      "{SSHA256}rlnHAIbmWkQ5c3Se3rVnrMgyMknzN6mFMxmpc/Ct94uaTWnoLQKfNA=="),
    Vector(
      "OpenLDAP 2.5", .saltedDigest, "digest-sha512",
      "{SSHA512}f3gYv3ecW2iwL0epO7Q5Dni2oaJ8YaYDsiJUDEYX6gQQH6sEhl33wK2u9uunXTN8GbYTNf+SbKpqhSMMa8vGOGHsThL3iDXF"),
    Vector(
      "OpenLDAP 2.5", .shaCrypt, "crypt-sha512 5000 12",
      "{CRYPT}$6$4EL9DVSUZkAB$RnyhgNDCRdjVmNkVbMhECsRhLpLtOSx6Lgn7AWvaS7AqVSG7TrHqw/uMV1LYpVA4kLJL7lcNSyylaj/Ocz7.s."),
    Vector("OpenLDAP 2.5", .md5, "digest-md5", isWeak: true, "{SMD5}fr+NzT1Gkp39W/Iz625XdD1u3XQ="),
    Vector("OpenLDAP 2.5", .md5, "digest-md5", isWeak: true, "{MD5}PLTnMmMfR+brlh80VUt83g=="),
    Vector("OpenLDAP 2.5", .saltedDigest, "digest-sha1", isWeak: true, "{SHA}L55TUjtiq8FBorTWAZ0jy6g129A="),
    Vector(
      "firebase-scrypt 0.1 of PyPI", .scrypt, "scrypt 10 8 1",
      "$firebase-scrypt$ln=10,r=8$Bw==$\(signerKey)$42xEC+ixf3L2lw==$tm34/go+iWJJV9JUbbiyfO9fF6yfO/o71kdU4jZ3MrwhpmgzJLmIsaDwiiHV97yTIXx3nUrVen71smZcm35BrQ=="
    ),
  ]

  /// That of the example in https://github.com/firebase/scrypt.
  private static let signerKey =
    "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="

  private let hashing: SecretHashing

  init() throws {
    hashing = SecretHashing(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: .cheap)
  }

  @Test("a hash of another program is verified, and hashed anew with the pepper", arguments: vectors)
  func vector(_ vector: Vector) throws {
    let stored = try StoredHash(vector.hash)
    #expect(stored.kind == vector.kind && stored.isWeak == vector.isWeak && stored.isForeign)
    #expect(stored.work.description == vector.work)
    #expect(HashWork(vector.work) == stored.work, "the stored form is read back")
    // Debug builds of BoringSSL take seconds for the costs that programs use by default.
    guard stored.work.size < 300_000 else { return }
    let secret = Array(vector.password.utf8)
    guard case .right(let rehashed?) = try hashing.verify(secret, against: vector.hash) else {
      Issue.record("refused")
      return
    }
    #expect(rehashed.hasPrefix("$argon2id$v=19$m=8,t=1,p=1,keyid="))
    #expect(try hashing.verify(secret, against: rehashed) == .right(rehashed: nil))
    // Attack: HMAC fills keys up with NUL, and C strings end at one.
    guard stored.work.size < 50_000 else { return }
    let right = vector.password
    let capital = right.prefix(1).uppercased() + String(right.dropFirst())
    for wrong in [String(right.dropLast()), right + " ", capital, right + "\0", right + "\0x", ""] {
      #expect(try hashing.verify(Array(wrong.utf8), against: vector.hash) == .wrong, "\(wrong.debugDescription)")
    }
  }

  /// The example in the sources of Firebase: https://github.com/firebase/scrypt.
  @Test func firebaseExample() throws {
    let hash =
      "$firebase-scrypt$ln=14,r=8$Bw==$\(Self.signerKey)$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="
    guard case .right(_?) = try hashing.verify(Array("user1password".utf8), against: hash) else {
      Issue.record("refused")
      return
    }
    #expect(try hashing.verify(Array("user2password".utf8), against: hash) == .wrong)
    #expect(try hashing.verify(Array("user1password".utf8), against: hash.replacing("Bw==", with: "")) == .wrong)
  }

  /// Attack: SHA-crypt hashes the secret in each round, so a long password keeps a thread busy for seconds.
  @Test func shaCryptJudgesAtMost64Bytes() throws {
    // crypt of libxcrypt 4.4: of 64 and of 65 times "x".
    let most =
      "$6$rounds=1000$881oO5KiTl.AKOfo$8JzDUD81tDeh17ZxQus0LpF2pDRoZJncEsqZoPaW/0pzsJXXG1WOLdqu24GMArVgCbXBrtpC0t2IFNtjjcloo0"
    let more =
      "$6$rounds=1000$xy38DbO2LyIBqTFJ$YqJAwmjCUdUqVren1ZIvBwqGlVsnJcTSuadCe/Gv/aS.Kl9jOK5I.Qys6nDMLdzk4kajZluhsecyZ3qwc2nYP/"
    guard case .right(_?) = try hashing.verify([UInt8](repeating: 0x78, count: 64), against: most) else {
      Issue.record("refused")
      return
    }
    for (count, hash) in [(65, most), (63, most), (65, more), (64, more), (4096, most)] {
      #expect(try hashing.verify([UInt8](repeating: 0x78, count: count), against: hash) == .wrong)
    }
  }

  @Test(
    "a hash that cannot be verified says why",
    arguments: [
      // Attack: an imported hash keeps a hashing thread busy for hours.
      ("pbkdf2_sha256$1099511627776$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .tooExpensive),
      ("pbkdf2_sha256$99999999999999999999$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .tooExpensive),
      ("pbkdf2_sha256$1572865$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .tooExpensive),
      (
        "$pbkdf2-sha256$786433$AAECAwQFBgcICQoLDA0ODw==$qnA427fe69fAjkevcHZvnm7vp3MewnxKL4g2WLfI7U6teQVH1eR2L5DfcV0psPIfjGPtlZbkpnogYX+2TaSl6w==",
        .tooExpensive
      ),
      ("AQAAAAH/////AAAAEAABAgMEBQYHCAkKCwwNDg/lFQcOA1On2wE5YZhLh7q7ntzP9Krf9NCBoM//wxbovw==", .tooExpensive),
      ("$scrypt$ln=63,r=8,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .tooExpensive),
      ("$scrypt$ln=18,r=8,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .tooExpensive),
      ("$scrypt$ln=14,r=17,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .tooExpensive),
      (
        "$scrypt$ln=4,r=8,p=999999999$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .tooExpensive
      ),
      ("$5$rounds=999999999$sGw0oQRecPN6Z9CV$s2Dj6n.1c0JA/9N10QiXQs0g179o2WFCTitWx.SKJk6", .tooExpensive),
      ("pbkdf2_sha256$0$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .illFormed),
      ("pbkdf2_sha256$-5$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .illFormed),
      ("pbkdf2_sha256$01000$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .illFormed),
      ("pbkdf2_sha256$1000$salt", .illFormed),
      ("pbkdf2_sha256$1000$$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=", .illFormed),
      ("pbkdf2_sha256$1000$salt$rd6X9YcXK13HGhDzP8PeG5ltL1HpeUukb68KKMoFMpE=$", .illFormed),
      ("pbkdf2_sha256$1000$salt$rd6X9YcXK13HGhDzP8PeG5lt!", .illFormed),
      ("pbkdf2_sha256$1000$salt$rd6X", .tooWeak),
      ("pbkdf2_md5$1000$salt$rd6X9YcXK13HGhDzP8PeGw==", .unknownKind),
      ("pbkdf2:sha256:1000$salt$64c9b9a6a90e2759a9720a21f84f244g", .illFormed),
      ("pbkdf2:sha256:1000$salt$64c", .illFormed),
      ("scrypt$16383$salt$8$5$is+Vz6n9xjtHvt+6vnAf39WizscZ4okL6O6aFmgENFU=", .illFormed),
      ("scrypt:1:8:1$salt$97e47610c69919dfa068283f989dbc77770cc4200d0b55cb7975412aaa59734e", .illFormed),
      ("$scrypt$ln=10,p=1,r=8$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .illFormed),
      ("$firebase-scrypt$ln=14,r=8$Bw==$AAAA$42xEC+ixf3L2lw==$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .illFormed),
      // Attack: without a salt, one table has the passwords of all accounts.
      ("$pbkdf2-sha256$1000$=$1ZDpurFnG3Ctb19azm8FL94EAb9UEIUwfQDAXz7d3m4", .tooWeak),
      ("$scrypt$ln=10,r=8,p=1$=$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .tooWeak),
      (
        "$firebase-scrypt$ln=10,r=8$Bw==$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA$=$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA",
        .tooWeak
      ),
      // N < 2^(128 * r / 8) (RFC 7914 section 2).
      ("$scrypt$ln=16,r=1,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA", .illFormed),
      ("AQAAAAE=", .illFormed),
      ("AQAAAAkAACcQAAAAEAABAgMEBQYHCAkKCwwNDg/lFQcOA1On2wE5YZhLh7q7ntzP9Krf9NCBoM//wxbovw==", .illFormed),
      ("AQAAAAEAACcQ/////wABAgMEBQYHCAkKCwwNDg/lFQcOA1On2wE5YZhLh7q7ntzP9Krf9NCBoM//wxbovw==", .illFormed),
      ("$5$rounds=999$sGw0oQRecPN6Z9CV$s2Dj6n.1c0JA/9N10QiXQs0g179o2WFCTitWx.SKJk6", .illFormed),
      ("$5$rounds=1000$sGw0oQRecPN6Z9CV$s2Dj6n", .illFormed),
      ("$5$salt:$s2Dj6n.1c0JA/9N10QiXQs0g179o2WFCTitWx.SKJk6", .illFormed),
      (
        "$6$abcdefghijklmnopq$yIZAF3gQPvtKZO/9qOJKffAKKbtS3ef3qmwyugk4uWVjX8YZf/GV3A8SkFxEPY0T56CcilGrHKLffBsp6dLMG.",
        .illFormed
      ),
      ("$1$abcdefgh$y6iHhJNbuC0xpbk0w9p", .illFormed),
      ("{SSHA}L55TUjtiq8FBorTWAZ0jy6g129A=", .tooWeak), ("{SSHA}AAAA", .tooWeak), ("{SHA}AAAA", .illFormed),
      ("{CRYPT}plain", .unknownKind), ("{CRYPT}", .unknownKind), ("{X-OTHER}AAAA", .unknownKind),
      ("md5$salt$cecda2521f06ecc9022d7b6a93aff7", .illFormed), ("md5$$cecda2521f06ecc9022d7b6a93aff70d", .illFormed),
    ] as [(String, StoredHash.Problem)])
  func refused(text: String, problem: StoredHash.Problem) {
    #expect(throws: problem) { try StoredHash(text) }
    #expect(throws: HashingFault.unreadable(problem)) { try hashing.verify(Array("x".utf8), against: text) }
  }

  @Test func beginningsAreDistinct() {
    let all = ForeignFormat.all.flatMap(\.beginnings.keys)
    for (index, one) in all.enumerated() {
      for other in all[(index + 1)...] { #expect(!one.hasPrefix(other) && !other.hasPrefix(one), "\(one) \(other)") }
    }
    #expect(ForeignFormat.all.allSatisfy { !$0.programs.isEmpty && !$0.form.isEmpty })
  }

  @Test func otherTextIsNoWork() {
    for text in [
      "pbkdf2-sha256", "pbkdf2-sha256 0", "pbkdf2-sha257 1", "pbkdf2 1", "scrypt 14 8", "scrypt 64 8 1",
      "scrypt 16 1 1", "scrypt-sha256 14 8 1", "crypt-sha1 5000 8", "crypt-sha512 5000", "crypt-sha512 5000 17",
      "crypt-md5 1000 9", "digest-sha1 1", "digest", "digest-sha1-sha1",
    ] {
      #expect(HashWork(text) == nil, "\(text)")
    }
  }

  @Test func everyKindCanBePerformed() throws {
    let secret = Array("correct\0horse".utf8)
    for vector in Self.vectors where try StoredHash(vector.hash).work.size < 50_000 {
      try StoredHash(vector.hash).work.perform(of: secret)
    }
  }

  /// Attack: the time of a wrong password tells which accounts were imported, and with how many iterations.
  @Test func refusedAttemptsDoTheSameWork() throws {
    let hashes = [
      "pbkdf2_sha256$1000$aBcDeFgHiJkLmNoPqRsTuV$sBhz6SiQZR6f4FpeVTDdVpW1T+zS7A1qNhK4pS4OU1w=",
      "pbkdf2_sha256$3000$aBcDeFgHiJkLmNoPqRsTuV$sBhz6SiQZR6f4FpeVTDdVpW1T+zS7A1qNhK4pS4OU1w=",
      "$5$rounds=1000$sGw0oQRecPN6Z9CV$s2Dj6n.1c0JA/9N10QiXQs0g179o2WFCTitWx.SKJk6",
      "{SSHA}45t+zCEyMYRqQvOJu7mAKpQLKklC9sfq",
      "$scrypt$ln=10,r=8,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA",
    ]
    let kinds = Set(try hashes.map { try StoredHash($0).work })
    var iterations: Set<Int> = []
    var others: Set<[HashWork]> = []
    for stored in [nil, try hashing.hash([9])] + hashes {
      let done = AttemptHashes()
      #expect(try hashing.verify(Array("wrong".utf8), against: stored, remembering: done) == .wrong)
      try hashing.balance(kinds, done)
      var sum = 0
      for case .foreign(.pbkdf2(.sha256, let count)) in done.works { sum += count }
      iterations.insert(sum)
      others.insert(done.works.filter { if case .foreign(.pbkdf2) = $0 { false } else { true } })
      try hashing.balance(kinds, done)
    }
    #expect(iterations == [3000] && others.count == 1, "\(iterations) \(others)")
    #expect(others.first?.count == 4)
  }

  /// Attack: a longer salt takes longer in each round, so the time of a wrong password tells which accounts were
  /// imported. What is hashed for an unknown account has the function, the rounds and the salt's length of a stored
  /// hash.
  @Test func shaCryptOfUnknownAccountsHashesAsMuch() throws {
    let secret = Array("wrong horse".utf8)
    let crypts = Self.vectors.filter { $0.work.hasPrefix("crypt-") }
    var lengths: Set<Int> = []
    for vector in crypts {
      guard case .foreign(let stored) = try StoredHash(vector.hash) else { continue }
      let text = String(decoding: try stored.work.perform(of: secret), as: UTF8.self)
      guard case .foreign(let made) = try StoredHash(text), case .right = try hashing.verify(secret, against: text)
      else {
        Issue.record("\(text)")
        continue
      }
      for (hash, whole) in [(stored, vector.hash.replacing("{CRYPT}", with: "")), (made, text)] {
        let fields = whole.split(separator: "$")
        lengths.insert(fields[fields.count - 2].utf8.count)
        guard case .crypt(let function, let rounds, let saltLength, _) = hash.function else {
          Issue.record("\(whole)")
          continue
        }
        let length: Int = fields[fields.count - 2].utf8.count
        #expect(saltLength == length)
        #expect(whole.hasPrefix(function.prefix))
        let work = ForeignWork.crypt(function, rounds: rounds, saltLength: saltLength)
        #expect(stored.work == work, "\(whole)")
      }
    }
    #expect(lengths == [8, 12, 16])
    // Beside each other, both lengths are computed.
    let kinds = Set([8, 16].map { HashWork.foreign(.crypt(.sha512, rounds: 5000, saltLength: $0)) })
    #expect(HashWork.missing(kinds, after: []).count == 2)
  }

  /// Attack: a file in which each account has another number of iterations.
  @Test func iterationsAreRememberedWithTwoDigits() {
    func remembered(_ iterations: Int) -> HashWork {
      HashWork.foreign(.pbkdf2(.sha256, iterations: iterations)).remembered
    }
    let expected: [(Int, Int)] = [
      (1, 1), (99, 99), (100, 100), (101, 110), (990, 990), (991, 1000), (1000, 1000), (29_000, 29_000),
      (29_001, 30_000), (600_000, 600_000), (1_000_000, 1_000_000), (1_572_864, 1_600_000),
    ]
    for (iterations, rounded) in expected {
      let kind = HashWork.foreign(.pbkdf2(.sha256, iterations: rounded))
      #expect(remembered(iterations) == kind, "\(iterations)")
    }
    let distinct: Set<HashWork> = Set((1...100_000).map(remembered))
    #expect(distinct.count == 370)
    for work in ["scrypt 14 8 1", "crypt-sha512 5001 16", "bcrypt 12", "digest-sha1"] {
      let kept: String? = HashWork(work)?.remembered.description
      #expect(kept == work)
    }
    // An account with 1,234 iterations and an unknown one compute as many.
    let kinds: Set<HashWork> = [remembered(1234)]
    #expect(
      HashWork.missing(kinds, after: [.foreign(.pbkdf2(.sha256, iterations: 1234))])
        == [.foreign(.pbkdf2(.sha256, iterations: 66))])
    #expect(HashWork.missing(kinds, after: []) == [.foreign(.pbkdf2(.sha256, iterations: 1300))])
  }

  /// Django raises its iterations with each release, and old hashes keep theirs.
  @Test func manyNumbersOfIterationsCostAsMuchAsTheLargest() {
    let kinds = Set(
      [150_000, 260_000, 390_000, 600_000, 870_000, 1_000_000].map {
        HashWork.foreign(.pbkdf2(.sha256, iterations: $0))
      })
    #expect(HashWork.missing(kinds, after: []) == [.foreign(.pbkdf2(.sha256, iterations: 1_000_000))])
    #expect(HashWork.missing(kinds, after: [.foreign(.pbkdf2(.sha256, iterations: 1_000_000))]).isEmpty)
    #expect(
      HashWork.missing(kinds, after: [.foreign(.pbkdf2(.sha256, iterations: 390_000))])
        == [.foreign(.pbkdf2(.sha256, iterations: 610_000))])
    #expect(HashWork.missing(kinds, after: [.foreign(.pbkdf2(.sha512, iterations: 390_000))]).count == 1)
  }
}
