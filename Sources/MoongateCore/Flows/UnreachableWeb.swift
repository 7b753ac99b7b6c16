import MoongateSDK

/// An HTTP client that fails every request, for policy cases, the simulator and tests.
package struct UnreachableWeb: WebClient {
  package init() {}

  package func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    throw WebFault(reason: "this gateway sends no requests to other sites")
  }
}
