import MoongateSDK

extension SignInRequirements {
  /// Adds a step in which the user replaces a secret that the account may not keep (`Account.dueChanges`). Every flow
  /// that opens a session comes here, by whichever provider the user has signed in.
  ///
  /// Attack: someone who has found the password in a leaked list, or by the weak hash of the old system, signs in with
  /// it, sets another one, and the owner is locked out. Something else that the account holds is therefore proved
  /// first, if it has anything.
  /// - Returns: false if nothing must be replaced.
  func requireChange(of account: Account, _ flow: inout FlowTransaction) -> Bool {
    let (record, request) = (flow.record, flow.request)
    guard let due = dueChanges(of: account, request).first(where: { !record.replacesSecret(of: $0) }) else {
      return false
    }
    let authority = checks.authority(over: account, request)
    let isProved = record.passed.contains { $0.provider != due && authority.isHeld($0) }
    let others = registry(request).all.map(\.descriptor.name).filter { name in
      name != due && record.purpose.step(of: name) == .prove && checks.hasSettledFactor(account, name, request)
    }
    if isProved || others.isEmpty {
      flow.machine.require([due], .replace)
    } else {
      flow.machine.require(others, .prove)
    }
    return true
  }

  /// The providers whose secrets the account must replace before its next session, sorted.
  func dueChanges(of account: Account, _ request: RequestContext) -> [ProviderName] {
    account.dueChanges.keys.sorted().filter { provider in
      account.credentials.contains(provider) && request.generation.policies[provider] != nil
        && registry(request)[provider] is any FullProvider
    }
  }
}
