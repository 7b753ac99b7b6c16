-- Prints wrk's figures as one line of JSON when it ends; adds nothing to the requests.
done = function(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    'JSON {"per_second":%.1f,"p50_ms":%.3f,"p99_ms":%.3f,"refused":%d,"broken":%d}\n',
    summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
      errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
