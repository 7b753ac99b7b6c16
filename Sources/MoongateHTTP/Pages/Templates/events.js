// Reports events that only the browser knows to the gateway: names from a closed list, never input.
const queue = [];
const address = document.body.dataset.events;
let timer;

export function record(name, parameters = {}) {
  if (!address) return;
  queue.push({ name, ...Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined)) });
  clearTimeout(timer);
  timer = setTimeout(flush, 1000);
}

function flush() {
  if (!queue.length) return;
  const events = queue.splice(0, 50);
  const flow = document.querySelector("form[data-flow]")?.dataset.flow;
  fetch(address, {
    method: "POST", keepalive: true, headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ events, ...(flow && { flow }) }),
  }).catch(() => {});
}

addEventListener("pagehide", flush);
