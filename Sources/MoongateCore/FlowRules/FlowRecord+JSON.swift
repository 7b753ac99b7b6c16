import MoongateSDK

// The stored form of flows: the same JSON as an encoder's, but faster, because each request of a sign-in stores its
// flow. `FlowRecordJSONTests` compares the two.

extension FlowRecord {
  /// The stored form in UTF-8.
  package var json: [UInt8] { JSONObjectText.record(self) }
}

extension [PassedStep] {
  /// The stored form in UTF-8.
  package var json: [UInt8] { JSONObjectText.record(self) }
}

extension FlowRecord: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("id", id)
    object.add("name", name)
    object.add("version", version)
    object.add("status", status.rawValue)
    object.add("createdAt", createdAt)
    object.add("expiresAt", expiresAt)
    object.add("purpose", purpose.rawValue)
    object.add("accountRule", accountRule.rawValue)
    object.add("registers", registers)
    object.add("steps", steps)
    object.add("session", session)
    object.add("next", next)
    object.add("codes", JSONPairs(codes))
    object.add("returnTo", returnTo)
    object.add("browser", browser)
    object.add("network", Base64URL.encode(network))
    object.add("position", position)
    object.add("step", step)
    object.add("accountChoice", accountChoice)
    object.add("passed", passed)
    object.add("proved", proved)
    object.add("account", account)
    object.add("pendingProofs", pendingProofs)
    object.add("basis", basis)
    object.add("startedIn", startedIn)
    object.add("grant", grant)
    object.add("grantCode", grantCode)
    object.add("isRemembered", isRemembered)
    object.add("invitation", invitation)
    object.add("isByOperator", isByOperator)
    object.add("isNewAccount", isNewAccount)
    object.add("completedNext", completedNext)
    object.add("origin", origin)
    object.add("registered", registered)
    object.add("facts", facts.map(JSONPairs.init))
  }
}

// MARK: - What is fixed when a flow begins

extension StepRule: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("choices", choices)
    object.add("isSkippable", isSkippable)
    object.add("when", when)
    object.add("requirement", requirement?.rawValue)
    object.add("isFallback", isFallback)
  }
}

extension FunctionName: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) { object.add("path", path) }
}

extension SessionRule: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("lifetime", lifetime)
    object.add("idle", idle)
    object.add("remember", remember)
  }
}

extension RememberedTimes: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("lifetime", lifetime)
    object.add("idle", idle)
  }
}

extension NextPaths: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("new", new)
    object.add("returning", returning)
  }
}

extension CodeTexts: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("rule", rule)
    object.add("message", message)
  }
}

extension CodeRule: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("length", length)
    object.add("alphabet", alphabet.rawValue)
    object.add("lifetime", lifetime)
  }
}

extension Grant: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("client", client)
    object.add("redirect", redirect)
    object.add("challenge", challenge)
    object.add("scopes", scopes)
    object.add("isAllowed", isAllowed)
  }
}

// MARK: - The step that was begun

extension StepRecord: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("provider", provider)
    object.add("identifier", identifier)
    object.add("isSkippable", isSkippable)
    object.add("account", account)
    object.add("epoch", epoch)
    object.add("holder", holder)
    object.add("claimants", claimants)
    object.add("challenge", challenge)
    object.add("alternatives", alternatives)
    object.add("unreachable", unreachable)
    object.add("state", Base64URL.encode(state))
    object.add("fields", fields)
    object.add("redirectTo", redirectTo)
    object.add("shown", shown)
    object.add("wait", wait)
    object.add("returned", returned)
    object.add("judgedBy", judgedBy)
  }
}

extension Challenge: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("mac", Base64URL.encode(mac))
    object.add("issuedAt", issuedAt)
    object.add("expiresAt", expiresAt)
    object.add("rule", rule)
  }
}

extension SentCode: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("provider", provider)
    object.add("challenge", challenge)
  }
}

extension SealedBytes: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) { object.add("bytes", Base64URL.encode(bytes)) }
}

extension StepWait: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("interval", interval)
    object.add("due", due)
  }
}

extension PostedCallback: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("handle", handle)
    object.add("fields", fields)
    object.add("expiresAt", expiresAt)
  }
}

// MARK: - What was proved

extension PassedStep: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("provider", provider)
    object.add("at", at)
    object.add("identifier", identifier)
    object.add("isMultiFactor", isMultiFactor)
    object.add("tooNewUntil", tooNewUntil)
    object.add("siteSession", siteSession)
  }
}

extension AccountChoice: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("provider", provider)
    object.add("identifier", identifier)
    object.add("accounts", accounts)
  }
}

extension AccountVersion: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("id", id)
    object.add("epoch", epoch)
  }
}

extension PendingProofs: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("claimed", claimed)
    object.add("firstName", firstName)
    object.add("lastName", lastName)
    object.add("records", JSONPairs(records))
    object.add("exposed", exposed)
    object.add("rechecks", rechecks.map(JSONPairs.init))
  }
}

extension PendingRecheck: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("identity", identity)
    object.add("sealed", sealed)
    object.add("at", at)
  }
}

extension StoredRecord: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("sealed", sealed)
    object.add("judgedBy", judgedBy)
    object.add("isRenewal", isRenewal)
  }
}

extension StoredRecord.Judged: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) { object.add("hash", hash) }
}

extension ProofBasis: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("epoch", epoch)
    object.add("held", held)
    object.add("introduced", introduced)
    object.add("holder", holder)
  }
}

extension GrantCode: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("hash", hash)
    object.add("expiresAt", expiresAt)
    object.add("factors", factors)
  }
}

// MARK: - Times and hashes

extension Timestamp: JSONWritable {
  func write(to text: inout JSONObjectText) { milliseconds.write(to: &text) }
}

extension TokenHash: JSONWritable {
  func write(to text: inout JSONObjectText) { text.append(Base64URL.encode(bytes)) }
}
