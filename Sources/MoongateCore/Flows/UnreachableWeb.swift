import MoongateSDK

/// For engines that must reach nobody: policy cases, the simulator, tests.
package struct UnreachableWeb: WebClient {
  package init() {}

  package func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    throw WebFault(reason: "this gateway reaches no other site")
  }
}
