// The run sends events; the page does not poll.
const SECONDS_MAX = 512;
const FAILURES_MAX = 10;
const at = (id) => document.getElementById(id);
const number = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });
const phases = { warm_up: "warm-up", measure: "measuring", drain: "draining" };
const source = new EventSource("events");
let seconds = [];
let failures = 0;
let drawing = false;

const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
// Each connection, new or repeated, receives everything from the start.
source.addEventListener("open", () => { seconds = []; failures = 0; });
source.addEventListener("error", () => {
  failures += 1;
  if (source.readyState === EventSource.CLOSED || failures >= FAILURES_MAX) {
    end("The program is not there any more, or too many viewers are connected. This page does not change again; reload it to try once more.");
  } else {
    at("title").textContent = "The connection is lost; trying again.";
  }
});
on("point", (news) => { at("title").textContent = `${news.title}: begins`; });
on("second", (second) => {
  seconds.push(second);
  if (seconds.length > SECONDS_MAX) seconds.shift();
  // A page in the background is not drawn, and would put off each second.
  if (!drawing) requestAnimationFrame(showNow);
  drawing = true;
});
on("report", (news) => {
  showReport(news.html);
  at("said").textContent = news.said;
});
on("over", (news) => end(news.said));

function end(text) {
  source.close();
  at("title").textContent = text;
  at("said").textContent = "";
  at("going").hidden = true;
}

function showNow() {
  drawing = false;
  const last = seconds.at(-1);
  if (!last || source.readyState === EventSource.CLOSED) return;
  at("going").hidden = false;
  at("title").textContent = `${last.title}: second ${last.second + 1}, ${phases[last.phase]}`;
  at("rate").textContent = `${number(last.ops_per_s, 0)} ops/s`;
  const chunks = last.chunks_per_s > 0 ? `, ${number(last.chunks_per_s, 0)} chunks/s` : "";
  at("data").textContent = `${number(last.bytes_per_s / 1048576, 2)} MiB/s${chunks}`;
  at("p50").textContent = time(last.p50_ns);
  at("p99").textContent = time(last.p99_ns);
  at("errors").textContent = number(last.errors, 0);
  at("busy").textContent = `${number(last.busy_ratio * 100, 0)} %`;
  at("rate-top").textContent = `${number(draw("rates", (second) => second.ops_per_s), 0)} ops/s`;
  at("p99-top").textContent = time(draw("p99s", (second) => second.p99_ns));
  const begins = (second, i) => i > 0 && second.title !== seconds[i - 1].title;
  at("borders").setAttribute("d", seconds.map((s, i) => begins(s, i) ? `M${x(i - 0.5)} 0V120` : "").join(""));
}

function time(ns) {
  if (ns === null) return "–";
  if (ns < 1e6) return `${number(ns / 1e3, 0)} µs`;
  return ns < 1e9 ? `${number(ns / 1e6, 2)} ms` : `${number(ns / 1e9, 2)} s`;
}

// A minute at least has the whole width.
const x = (i) => (1000 * (i + 0.5) / Math.max(seconds.length, 60)).toFixed(1);

// Draws the line, broken where there is no value; answers with the highest one.
function draw(id, value) {
  const top = Math.max(...seconds.map(value));
  let line = "";
  let down = false;
  seconds.forEach((second, i) => {
    const known = value(second);
    const y = (118 - 114 * (known ?? 0) / (top || 1)).toFixed(1);
    if (known !== null) line += down ? `L${x(i)} ${y}` : `M${x(i)} ${y}h0`;
    down = known !== null;
  });
  at(id).setAttribute("d", line);
  return top;
}

// What the reader has opened stays open, and the keyboard stays where it is.
function showReport(html) {
  const report = at("report");
  // Numbers in it may have changed.
  const words = (element) => element.textContent.replace(/\d+/g, "");
  const named = (element) => (element.closest(".section, section")?.querySelector("h2")?.textContent ?? "") + words(element);
  const open = new Set([...report.querySelectorAll("details[open] > summary")].map(named));
  const stops = () => [...report.querySelectorAll("summary, button, [tabindex]")];
  const held = stops().indexOf(document.activeElement);
  const name = held < 0 ? null : named(document.activeElement);
  report.innerHTML = html;
  for (const summary of report.querySelectorAll("summary")) {
    if (open.has(named(summary))) summary.parentElement.open = true;
  }
  addCopyButtons();
  if (held >= 0) (stops().find((stop) => named(stop) === name) ?? stops()[held])?.focus({ preventScroll: true });
  const heading = report.querySelector("h1");
  if (heading) document.title = `${heading.textContent} · Plimsoll`;
}
